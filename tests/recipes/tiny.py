"""Sections of a configuration that make a vocoder train in no time."""

from typing import Any

import json5

from tests.recipes.runs import EGS

TWO_UPDATES = {"batch_size": 2, "cut_mel_frame": 16, "max_steps": 2, "valid_samples": 0}
TWO_UPDATES |= {"tracker": "none", "dataloader": {"num_worker": 0}}


def tiny_model(name: str) -> dict[str, Any]:
    """Reads the `model` section of `config/tiny`."""
    text = (EGS.parent / "config" / "tiny" / f"{name}.json").read_text(encoding="utf-8")
    return dict(json5.loads(text)["model"])
