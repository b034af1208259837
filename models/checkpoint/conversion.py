"""Checkpoints of other projects as ordinary experiment folders."""

from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors.torch import save
from torch import Tensor

from models.checkpoint.hub_files import fetch
from models.checkpoint.importers import ImportedModel, TrainingNetworks, kinds
from models.checkpoint.loading import INFERENCE_NETWORK, importer_of, load_model
from models.checkpoint.model_card import write_imported_card
from modules.normalisation import adapt_weight_norm
from utils.config import to_plain
from utils.errors import InputError
from utils.files import new_folder, write_json
from utils.logging import get_logger


def convert_to_experiment(source: str, target: Path) -> None:
    """Writes the checkpoint of another project as an experiment; says what became of its tensors.

    Args:
        source: What `load_model` takes: a local path, or a name on the Hub.
        target: Folder to make; empty or missing.

    Raises:
        InputError: If it is of no known kind, broken or not whole, or if `target` is not empty.
    """
    with new_folder(target) as folder:
        path = fetch(source, for_training=True)
        importer = importer_of(path)
        if importer is None:
            raise InputError(
                f"{source}: no checkpoint of another project that can be read; these can: {kinds()}"
            )
        config = load_model(path).config  # also shows that the weights fit it
        imported = importer.read(path)
        others = imported.training_networks()
        unused = (*imported.unused, *others.unused)
        write_json(folder / "config.json", to_plain(config))
        imported.assets.save(folder)
        for name, tensors in {INFERENCE_NETWORK: imported.tensors, **others.tensors}.items():
            # not by save_file, whose files are for their owner's eyes only
            (folder / f"{name}.safetensors").write_bytes(save(_storable(tensors)))
        write_imported_card(folder, target.resolve().name, config, imported, unused)
    get_logger(__name__).info("found: %s: %s", importer.KIND, imported.weights)
    _tell(target, imported, others, unused)


def _storable(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Under the names that weight normalisation has today, and none sharing another's memory."""
    named = adapt_weight_norm(tensors, ())
    return {n: t.detach().clone(memory_format=torch.contiguous_format) for n, t in named.items()}


def _tell(
    target: Path, imported: ImportedModel, others: TrainingNetworks, unused: tuple[str, ...]
) -> None:
    log = get_logger(__name__)
    log.info("settings: %s", imported.described_by)
    for name, tensors in {INFERENCE_NETWORK: imported.tensors, **others.tensors}.items():
        log.info("used: %d tensors in %s.safetensors", len(tensors), name)
    for line in unused:
        log.info("not used: %s", line)
    log.info("written: %s", target)
