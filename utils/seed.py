"""Reproducible random numbers."""

import hashlib
import random


def seed_everything(seed: int) -> None:
    """Seeds the global generators of Python, NumPy and PyTorch (every device) with any integer."""
    import numpy as np  # both here: the text front end needs seeds without them
    import torch

    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002  (libraries draw from the global generator)
    torch.manual_seed(seed % 2**63)


def derived_seed(*parts: str | int | float) -> int:
    """Derives a seed of 63 bits from names and numbers, the same on every machine and run.

    The parts are what the randomness belongs to, such as `(seed, epoch, utterance_id)`. `1`, `1.0`
    and `"1"` are different parts.
    """
    text = "\0".join(f"{type(part).__name__}:{len(str(part))}:{part}" for part in parts)
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") >> 1
