"""Starting from another model's weights: tensors by name, rows by symbol or speaker name."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor, nn

from models.base.assets import Assets
from models.base.task import Task
from models.checkpoint.hub_files import fetch
from models.checkpoint.loading import INFERENCE_NETWORK, load_model
from models.checkpoint.tensors import listed, not_finite
from modules.normalisation import adapt_weight_norm
from utils.errors import InputError
from utils.logging import get_logger


@dataclass
class Transfer:
    """What became of the tensors and rows of a network.

    Attributes:
        reused: Tensors taken over, and `tensor: row name` for those matched row by row.
        new: What the old model lacks: it keeps its fresh values.
        dropped: What the new model has no place for.
        source: The model they are from, as records call it.
    """

    reused: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    source: str = ""


def initialise(task: Task, assets: Assets, reference: str | Path) -> Transfer:
    """Fills the networks of a task from what `load_model` loads.

    The network that speaks comes from model.safetensors; others, such as discriminators, from a
    file of their name where there is one; or both from a checkpoint of another project. Tensors
    that mean something else here, such as linear edges of bins where the new ones are logarithmic,
    are dropped.

    Raises:
        InputError: If tensors of one name have different shapes; the message names the first of
            them. If no tensor fits: then it is another kind of model.
    """
    source = load_model(fetch(reference, for_training=True))
    _compare_mels(source.assets, assets)
    rescaled = _rescaled(source.network, task.networks[task.exported])
    transfer = Transfer(source=source.origin)
    for name, network in task.networks.items():
        stored = source.stored(INFERENCE_NETWORK if name == task.exported else name)
        if stored is None:
            transfer.new.append(f"network {name}")
            continue
        tensors = adapt_weight_norm(stored, network.state_dict().keys())
        if name == task.exported:
            transfer.dropped += [name for name in rescaled if tensors.pop(name, None) is not None]
        _fill(network, tensors, _rows(network, source.assets, assets), transfer)
    if not transfer.reused:
        raise InputError(
            f"--init_from {reference}: this is a {source.config.model_type}, and none of its "
            "tensors has a place in the model of this config; give one of the same kind"
        )
    _tell(transfer, source.folder)
    return transfer


def _rows(
    network: nn.Module, old: Assets, new: Assets
) -> dict[str, tuple[Sequence[str], Sequence[str]]]:
    """Names of the old and the new rows of each tensor whose rows mean something."""
    phones, speakers = (_symbols(old), _symbols(new)), (_speakers(old), _speakers(new))
    by_phone = dict.fromkeys(getattr(network, "PHONE_ROWS", ()), phones)
    return by_phone | dict.fromkeys(getattr(network, "SPEAKER_ROWS", ()), speakers)


def _rescaled(old: nn.Module, new: nn.Module) -> list[str]:
    """Tensors whose scale differs; networks without `scales` have none."""
    before: dict[str, str] = getattr(old, "scales", dict)()
    after: dict[str, str] = getattr(new, "scales", dict)()
    return sorted(name for name in before if name in after and before[name] != after[name])


def _symbols(assets: Assets) -> Sequence[str]:
    return assets.vocabulary.symbols if assets.vocabulary else ()


def _speakers(assets: Assets) -> Sequence[str]:
    return [speaker.name for speaker in assets.speakers]


@torch.no_grad()
def _fill(
    network: nn.Module,
    source: dict[str, Tensor],
    rows: dict[str, tuple[Sequence[str], Sequence[str]]],
    transfer: Transfer,
) -> None:
    own = network.state_dict()  # shares memory with the network
    _check(own, source, rows)
    for name, tensor in own.items():
        if name not in source:
            transfer.new.append(name)
        elif name in rows:
            _fill_rows(name, tensor, source[name], rows[name], transfer)
        else:
            tensor.copy_(source[name])
            transfer.reused.append(name)
    transfer.dropped += [name for name in source if name not in own]


def _fill_rows(
    name: str,
    tensor: Tensor,
    source: Tensor,
    names: tuple[Sequence[str], Sequence[str]],
    transfer: Transfer,
) -> None:
    old, new = names
    positions = {row: position for position, row in enumerate(old)}
    for position, row in enumerate(new):
        if row in positions:
            tensor[position] = source[positions[row]]
            transfer.reused.append(f"{name}: {row}")
        else:
            transfer.new.append(f"{name}: {row}")
    transfer.dropped += [f"{name}: {row}" for row in old if row not in new]


def _check(
    own: dict[str, Tensor],
    source: dict[str, Tensor],
    rows: dict[str, tuple[Sequence[str], Sequence[str]]],
) -> None:
    faults = []
    for name in own.keys() & source.keys():
        first = 1 if name in rows else 0
        old, new = tuple(source[name].shape), tuple(own[name].shape)
        if old[first:] != new[first:]:
            faults.append(f"{name} is {old} there and {new} here")
    if faults:
        raise InputError(
            f"--init_from: tensors of other shapes: {listed(sorted(faults))}; use the model "
            "section of the config that was trained"
        )
    if names := not_finite(source):
        raise InputError(f"--init_from: infinity or NaN in {listed(names)}; use another checkpoint")


def _compare_mels(source: Assets, own: Assets) -> None:
    if different := source.mel.differences(own.mel):
        get_logger(__name__).warning(
            "another mel definition: %s (source and this model)", ", ".join(different)
        )


def _tell(transfer: Transfer, folder: Path) -> None:
    logger = get_logger(__name__)
    logger.info("weights of %s: %d reused", folder, len(transfer.reused))
    for kind, names in (("new, with fresh values", transfer.new), ("dropped", transfer.dropped)):
        if names:
            logger.info("weights of %s: %d %s: %s", folder, len(names), kind, _grouped(names))


def _grouped(names: Iterable[str]) -> str:
    """Tensors by name, with the rows of each in brackets."""
    rows: dict[str, list[str]] = {}
    for name in names:
        tensor, _, row = name.partition(": ")
        rows.setdefault(tensor, []).extend([row] if row else [])
    return ", ".join(
        f"{tensor} ({' '.join(named)})" if named else tensor for tensor, named in rows.items()
    )
