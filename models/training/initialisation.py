"""Initial weights from another model: tensors by name, rows by phone or speaker name.

A phone that the other model does not have begins as the nearest one on which it was trained, so
that training may go on in another phone set or language; a speaker as the one of nearest mean F0.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import log2
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from models.base.assets import Assets
from models.base.model import Scaled
from models.base.task import Task
from models.checkpoint.foreign import fetch
from models.checkpoint.loading import INFERENCE_NETWORK, load_model
from models.checkpoint.tensors import not_finite
from modules.layers.basic import PhoneEmbedding, SpeakerEmbedding
from modules.layers.normalisation import adapt_weight_norm
from modules.layers.postnet import MaskedBatchNorm
from modules.variance.contours import SpeakerNorm
from processors.text.voice_phones import PhoneSet
from utils.errors import InputError, listed
from utils.logging import get_logger

_log = get_logger(__name__)
Tensors = dict[str, Tensor]


class Rows(NamedTuple):
    """Names of the rows of a tensor."""

    old: Sequence[str]  # in the other model
    new: Sequence[str]  # in this one
    nearest: Callable[[str], Sequence[str]] = lambda _row: ()  # old rows that are like a new one


@dataclass
class Transfer:
    """The tensors and rows that a task took from another model."""

    reused: list[str] = field(default_factory=list)  # tensors, and rows as `tensor: row name`
    # `tensor: row=nearest` of phones and speakers that the other model does not have
    similar: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)  # with their random initial values
    at_0: list[str] = field(default_factory=list)  # speaker embeddings after a voice without any
    dropped: list[str] = field(default_factory=list)  # without a counterpart in the task
    source: str = ""  # the other model, as model cards name it
    phones: frozenset[str] = frozenset()  # what the other model can say

    @property
    def other_parts(self) -> list[str]:
        """Parts of the network with tensors, and not only rows, that one of both models lacks."""
        tensors = [name for name in (*self.new, *self.dropped) if ": " not in name and "." in name]
        return sorted({name.split(".")[0] for name in tensors})


def initialise(task: Task[Any], assets: Assets, reference: str | Path) -> Transfer:
    """Copies weights of another model into the networks of a task.

    The exported network is filled from model.safetensors; others, such as discriminators, from a
    file of their name where there is one; or all from a checkpoint of another project. Tensors on
    another scale, such as linear bin edges where the new ones are logarithmic, are dropped.

    Raises:
        InputError: If tensors of one name have different shapes or are not finite, or none fits.
    """
    source = load_model(fetch(reference, for_training=True))
    if different := source.mel.differences(assets.mel):
        _log.warning("another mel definition: %s (source and this model)", ", ".join(different))
    spoken = task.networks[task.exported]
    before, after = (n.scales() if isinstance(n, Scaled) else {} for n in (source.network, spoken))
    rescaled = sorted(name for name in before if before[name] != after.get(name, before[name]))
    transfer = Transfer(source=source.origin, phones=source.assets.known_phones)
    for name, network in task.networks.items():
        stored = source.stored(INFERENCE_NETWORK if name == task.exported else name)
        if stored is None:
            transfer.new.append(f"network {name}")
            continue
        tensors = adapt_weight_norm(stored, network.state_dict().keys())
        rows = _rows(network, source.assets, assets)
        if name == task.exported:
            transfer.dropped += [name for name in rescaled if tensors.pop(name, None) is not None]
        _fill(network, tensors, rows, transfer)
    if not (transfer.reused or transfer.similar):
        raise InputError(
            f"--init_from {reference}: this is a {source.config.model_type}, and none of its "
            "tensors fits the model of this config; give one of the same kind"
        )
    is_same_model = type(source.network) is type(spoken)
    _log_transfer(transfer, source.folder, "" if is_same_model else source.config.model_type)
    return transfer


def _rows(network: nn.Module, old: Assets, new: Assets) -> dict[str, Rows]:
    """Finds the rows of each tensor whose rows are phones or speakers."""
    before, after = (a.vocabulary.symbols if a.vocabulary else () for a in (old, new))
    phones = Rows(before, after, PhoneSet(old.known_phones).nearest)
    names = [speaker.name for speaker in old.speakers], [speaker.name for speaker in new.speakers]
    f0_hz, new_f0_hz = _f0_of_speakers(old), _f0_of_speakers(new)

    def nearest(speaker: str) -> list[str]:
        if speaker not in new_f0_hz or not f0_hz:
            return []
        octaves = {name: abs(log2(f0 / new_f0_hz[speaker])) for name, f0 in f0_hz.items()}
        return [min(octaves, key=lambda name: octaves[name])]

    by_phone = dict.fromkeys(tensors_of(network, PhoneEmbedding), phones)
    by_speaker = dict.fromkeys(tensors_of(network, SpeakerEmbedding), Rows(*names, nearest))
    return by_phone | by_speaker | dict.fromkeys(tensors_of(network, SpeakerNorm), Rows(*names))


def _f0_of_speakers(assets: Assets) -> dict[str, float]:
    """Returns the mean F0 in Hz of each speaker that has one."""
    statistics = {} if assets.stats is None else assets.stats.speakers
    names = [speaker.name for speaker in assets.speakers if speaker.name in statistics]
    return {n: mean for n in names if (mean := statistics[n].f0_frame.mean) > 0}


def tensors_of(network: nn.Module, layer: type[nn.Module]) -> list[str]:
    """Lists the parameters and buffers of all layers of a type in a network."""
    return [
        f"{name}.{tensor}"
        for name, module in network.named_modules()
        if isinstance(module, layer)
        for tensor in module.state_dict()
    ]


@torch.no_grad()
def _fill(network: nn.Module, source: Tensors, rows: dict[str, Rows], transfer: Transfer) -> None:
    tensors = network.state_dict()  # shares memory with the network
    speaker_embeddings = tensors_of(network, SpeakerEmbedding)
    _check_tensors(tensors, source, rows)
    for name, tensor in tensors.items():
        if name not in source:
            missing = [f"{name}: {row}" for row in rows[name].new] if name in rows else [name]
            if name in speaker_embeddings:  # the other model has one speaker: it stays as it is
                tensor.zero_()
                transfer.at_0 += missing
            else:
                transfer.new += missing
        elif name in rows:
            _fill_rows(name, tensor, source[name], rows[name], transfer)
        else:
            tensor.copy_(source[name])
            transfer.reused.append(name)
    transfer.dropped += [name for name in source if name not in tensors]


def _fill_rows(name: str, tensor: Tensor, source: Tensor, rows: Rows, transfer: Transfer) -> None:
    positions = {row: position for position, row in enumerate(rows.old)}
    for position, row in enumerate(rows.new):
        if row in positions:
            tensor[position] = source[positions[row]]
            transfer.reused.append(f"{name}: {row}")
        elif nearest := rows.nearest(row):
            tensor[position] = source[[positions[phone] for phone in nearest]].mean(dim=0)
            transfer.similar.append(f"{name}: {row}={'+'.join(nearest)}")
        else:
            transfer.new.append(f"{name}: {row}")
    transfer.dropped += [f"{name}: {row}" for row in rows.old if row not in rows.new]


def _check_tensors(tensors: Tensors, source: Tensors, rows: dict[str, Rows]) -> None:
    faults = []
    for name in sorted(tensors.keys() & source.keys()):
        old, new = tuple(source[name].shape), tuple(tensors[name].shape)
        if (old[1:] != new[1:]) if name in rows else (old != new):
            faults.append(f"{name} is {old} in that model and {new} in this one")
    if faults:
        remedy = "use the sizes in the model section of that model's config.json"
        raise InputError(f"--init_from: tensors of other shapes: {listed(faults)}; {remedy}")
    if names := not_finite(source):
        raise InputError(f"--init_from: infinity or NaN in {listed(names)}; use another checkpoint")


def _log_transfer(transfer: Transfer, folder: Path, other_model: str) -> None:
    """Logs what became of the weights of a model; `other_model` is its name unless the same."""
    _log.info("weights of %s: %d reused", folder, len(transfer.reused))
    groups = {
        "of new phones and speakers, which begin as the nearest": transfer.similar,
        "new, initialised as without --init_from": transfer.new,
        "speaker embeddings, which start at 0": transfer.at_0,
        "dropped": transfer.dropped,
    }
    for meaning, names in groups.items():
        if names:
            _log.info("weights of %s: %d %s: %s", folder, len(names), meaning, listed(names, 20))
    if parts := transfer.other_parts:
        remedy = "to take over all of its weights, use the model section of its config.json"
        if other_model:
            remedy = f"it is a {other_model}, of which only common weights are taken over"
        fault = "--init_from: the other model has other weights in"
        _log.warning("%s %s; %s", fault, ", ".join(parts), remedy)


def extend_assets(voice: Assets, data: Assets) -> Assets:
    """Adds the speakers of the training data to the assets of a voice.

    Raises:
        InputError: If the voice has another mel definition, lacks phones of the data, has a speaker
            of the same name already, or no vocabulary or statistics of its speakers.
    """
    if different := voice.mel.differences(data.mel):
        raise InputError(
            f"train.trained=speakers: the voice has another mel: {', '.join(different)} (voice and"
            " data); run stage 1 with the voice's preprocess section"
        )
    vocabulary = voice.required_vocabulary()
    if unknown := sorted((data.trained_phones or frozenset()) - set(vocabulary.symbols)):
        raise InputError(
            f"train.trained=speakers: the voice has no phones {' '.join(unknown)}; run stage 1 with"
            " its preprocess.text section, or train all weights (train.trained=all)"
        )
    names = {speaker.name for speaker in voice.speakers}
    if present := [speaker.name for speaker in data.speakers if speaker.name in names]:
        raise InputError(
            f"train.trained=speakers: {', '.join(present)} is a speaker of the voice already; give"
            " the new speaker another name (preprocess.corpus.<dataset>.speaker)"
        )
    if voice.stats is None or data.stats is None:
        raise InputError("train.trained=speakers: the voice has no statistics of its speakers")
    return replace(
        voice,
        speakers=(*voice.speakers, *data.speakers),
        stats=voice.stats.merge(data.stats),
        trained_phones=data.trained_phones,
    )


def train_only_speakers(network: nn.Module, trained: Tensor) -> None:
    """Freezes all weights but the rows of some speakers, and running statistics.

    The gradient of the other rows is 0, for which Adam without weight decay leaves them as they
    are, bit for bit. `trained` is (n_speakers,) bool, True for the rows that learn.
    """
    names = tensors_of(network, SpeakerEmbedding)
    for name, parameter in network.named_parameters():
        parameter.requires_grad = name in names
        if name in names:
            rows = trained.to(parameter.device).view(-1, *[1] * (parameter.dim() - 1))
            parameter.register_hook(lambda gradient, rows=rows: gradient * rows.to(gradient.device))
    for module in network.modules():
        if isinstance(module, MaskedBatchNorm):
            module.momentum = 0.0
