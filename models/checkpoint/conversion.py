"""Converts a checkpoint of another project into an ordinary experiment folder."""

from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors.torch import save
from torch import Tensor

from models.checkpoint.folders import write_manifest
from models.checkpoint.foreign import kinds
from models.checkpoint.history import History
from models.checkpoint.hub_files import fetch
from models.checkpoint.loading import INFERENCE_NETWORK, foreign_checkpoint, load_model
from models.checkpoint.model_card import Card, write_card
from modules.layers.normalisation import adapt_weight_norm
from utils.config import to_plain
from utils.errors import InputError
from utils.files import new_folder, write_json
from utils.logging import get_logger


def convert_to_experiment(source: str, target: Path) -> None:
    """Writes a checkpoint of another project as an experiment; logs its used and unused tensors.

    Args:
        source: A local path or a name on the Hub, as for `load_model`.
        target: Folder to make; empty or missing.

    Raises:
        InputError: If the checkpoint is of unknown kind, broken or incomplete, or if `target` is
            not empty.
    """
    log = get_logger(__name__)
    with new_folder(target) as folder:
        path = fetch(source, for_training=True)
        checkpoint = foreign_checkpoint(path)
        if checkpoint is None:
            raise InputError(
                f"{source}: no checkpoint of another project that can be read; these can: {kinds()}"
            )
        config = load_model(path).config  # also checks that the weights fit it
        imported = checkpoint.read()
        others = imported.training_networks()
        log.info("found: %s: %s", checkpoint.kind, imported.weights)
        log.info("settings: %s", imported.tree.path)
        for name, tensors in {INFERENCE_NETWORK: imported.tensors, **others.tensors}.items():
            # not by save_file, which makes files that only their owner can read
            (folder / f"{name}.safetensors").write_bytes(save(_storable(tensors)))
            log.info("used: %d tensors in %s.safetensors", len(tensors), name)
        unused = (*imported.unused, *others.unused)
        for line in unused:
            log.info("not used: %s", line)
        write_json(folder / "config.json", to_plain(config))
        imported.assets.save(folder)
        write_manifest(folder, sorted(path.name for path in folder.iterdir()))
        history = History(imported_from=imported.source, not_imported=unused, step=imported.step)
        write_card(folder, Card(target.resolve().name, config, imported.assets, history))
    log.info("written: %s", target)


def _storable(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Gives tensors the current names of weight normalisation, and memory of their own."""
    named = adapt_weight_norm(tensors, ())
    return {n: t.detach().clone(memory_format=torch.contiguous_format) for n, t in named.items()}
