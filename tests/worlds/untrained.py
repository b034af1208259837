"""Untrained models in folders, as training leaves them."""

from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import nn

from models.base.assets import Assets
from models.base.registry import find_model, load_config
from utils.files import write_json


def write_model(
    folder: Path, task: str, model_type: str, sizes: object, assets: Assets, **sections: object
) -> nn.Module:
    """Writes an experiment; returns its network, whose weights `save_weights` writes."""
    config = {"task": task, "model_type": model_type, "model": sizes, "train": {"max_steps": 1}}
    config |= {"dataset": ["tiny"], "dataset_path": {"tiny": "data/tiny"}}
    config["log_dir"] = f"ckpts/{task}"
    write_json(folder / "config.json", config | sections)
    assets.save(folder)
    torch.manual_seed(0)
    sizes = load_config(folder / "config.json").model
    return find_model(task, model_type).network.build(sizes, assets)


def save_weights(network: nn.Module, folder: Path) -> Path:
    save_file(network.state_dict(), folder / "model.safetensors")
    return folder
