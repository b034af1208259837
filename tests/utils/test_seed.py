import random

import numpy as np
import torch

from utils.seed import derived_seed, seed_everything


def test_the_same_seed_gives_the_same_numbers_everywhere():
    draws = []
    for seed in (0, 0, 1234, 1234, 2**62, 2**62):
        seed_everything(seed)
        draws.append((random.random(), np.random.rand(), torch.rand(1).item()))  # noqa: NPY002
    assert draws[::2] == draws[1::2]


def test_a_derived_seed_is_a_fixed_number_of_63_bits_and_another_for_other_parts():
    assert derived_seed(10086, 3, "LJ001-0001") == 7127792632001875190
    assert all(0 <= derived_seed(i) < 2**63 for i in range(100))
    parts = [(1,), ("1",), (1.0,), (1, 2), (12,), ("1\0002",), ("a", "b"), ("ab",), ("ab", "")]
    assert len({derived_seed(*part) for part in parts}) == len(parts)
