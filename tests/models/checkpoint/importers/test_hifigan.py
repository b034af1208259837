from pathlib import Path

import pytest
import torch

from models.checkpoint.importers._hifigan import generator_in, unused_in
from utils.errors import InputError

FILE = Path("checkpoints/g_1")


def test_tensors_are_counted_in_containers_in_containers_each_once():
    shared = torch.ones(2)
    values = {"state": {0: {"exp_avg": shared, "step": 3}, 1: [torch.ones(1), (torch.ones(1),)]}}
    values["again"] = shared
    loop: list[object] = [torch.ones(1)]
    loop.append(loop)

    assert unused_in({"optimizer": values, "loop": loop, "epoch": 3}, FILE, "why") == (
        "g_1: optimizer (3 tensors): why",
        "g_1: loop (1 tensors): why",
        "g_1: epoch (0 tensors): why",
    )


def test_a_generator_is_under_its_key_or_alone():
    tensors = {"conv_pre.bias": torch.ones(1)}

    assert generator_in({"generator": tensors, "x": 1}, "generator", FILE) == (
        tensors,
        ("g_1: x (0 tensors)",),
    )
    assert generator_in(tensors, "generator", FILE) == (tensors, ())
    with pytest.raises(InputError, match="g_1: holds one list, expected a generator"):
        generator_in([tensors], "generator", FILE)
