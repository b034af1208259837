"""Settings and statistics of FastSpeech 2 of Amphion and ming024, as an ImportedModel."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple, cast

import torch
from torch import Tensor

from models.base.assets import Assets, Speaker
from models.base.registry import config_of
from models.checkpoint.importers import ImportedModel
from models.checkpoint.importers._fastspeech2_weights import Weights, vocabulary_of
from models.checkpoint.importers._settings import required
from modules.contour import Level
from processors.dataset.statistics import CorpusStats, SpeakerStats, Stat
from utils.config import Tree, plain_tree
from utils.errors import InputError

_QUANTITIES = ("pitch", "energy")  # in the order of the statistics of a speaker
_PARTS = ("encoder", "decoder")
_SECTIONS = {  # of the model, with the keys of these projects, which are Arion's too
    "transformer": (
        *(f"{part}_{size}" for part in _PARTS for size in ("layer", "head", "hidden")),
        "conv_filter_size",
        "conv_kernel_size",
        *(f"{part}_dropout" for part in _PARTS),
    ),
    "variance_predictor": ("filter_size", "kernel_size", "dropout"),
    "variance_embedding": ("pitch_quantization", "energy_quantization", "n_bins"),
}


class Levels(NamedTuple):
    """Whether pitch and energy are values per phone or per frame."""

    pitch: Level
    energy: Level


@dataclass(frozen=True)
class FastSpeech2Settings:
    """The settings of a checkpoint by Arion's names."""

    path: Path  # their file, for messages
    model_path: Path  # the file of `model`; it may be the same
    datasets: tuple[str, ...]  # names
    # values of Arion's `preprocess` section; mel and pitch, without the text
    preprocess: Mapping[str, object]
    # sections `transformer`, `variance_predictor` and `variance_embedding`, and `max_seq_len`,
    # unchanged
    model: Mapping[str, object]
    levels: Levels  # of pitch and energy
    language: str = "en-us"  # espeak language code
    # keys in the file by Arion's keys where they differ, for messages
    names: Mapping[str, str] = field(default_factory=dict)


def by_id(ids: object, n_speakers: int, path: Path) -> list[str]:
    """Names in the order of their ids.

    Args:
        ids: Ids by name, as in the file.
        n_speakers: Their number.
        path: The file, for messages.

    Raises:
        InputError: If the ids are not 0 to n_speakers - 1.
    """
    numbers = list(ids.values()) if isinstance(ids, Mapping) else []
    if not all(type(n) is int for n in numbers) or sorted(numbers) != list(range(n_speakers)):
        raise InputError(
            f"{path}: expected names with the ids 0 to {n_speakers - 1}, found {str(ids)[:80]}"
        )
    known = cast("Mapping[str, int]", ids)
    return sorted(known, key=known.__getitem__)


def one_stat(path: Path, name: str, mean: object, std: object, ends: Sequence[object]) -> Stat:
    """Statistics of one quantity from the numbers in a file.

    Args:
        path: The file, for messages.
        name: Of the quantity or speaker, for messages.
        mean: Of the values.
        std: Their standard deviation.
        ends: Least and greatest value.

    Raises:
        InputError: If one is no finite number, or the deviation is not positive.
    """
    numbers = [mean, std, *ends]
    if not all(isinstance(number, int | float) for number in numbers):
        raise InputError(f"{path}: {name}: expected mean, std, min and max, found {numbers}")
    values = torch.tensor(cast("list[float]", numbers), dtype=torch.float64)
    if not (values.isfinite().all() and values[1] > 0):
        raise InputError(
            f"{path}: {name}: mean, std, min and max are {numbers}; expected finite numbers and "
            "std > 0"
        )
    return Stat(*values.tolist())


def assemble(
    settings: FastSpeech2Settings,
    weights: Weights,
    stats: Mapping[str, tuple[Stat, Stat]],
    *,
    source: str,
    step: int | None,
) -> ImportedModel:
    """Puts a checkpoint together.

    Args:
        settings: From its settings files.
        weights: Its tensors.
        stats: Of pitch (Hz) and energy by speaker name, in the order of their ids.
        source: For the model card.
        step: Updates of training, if known.

    Raises:
        InputError: If settings are wrong, or the symbols unknown.
    """
    config = _config(settings, weights, stats)
    # one kind of statistics serves for phones and frames
    speakers = {n: SpeakerStats(f0, f0, energy, energy, 0.0) for n, (f0, energy) in stats.items()}
    assets = Assets(
        mel=config_of(_tree(config, settings)).preprocess.mel,
        vocabulary=vocabulary_of(weights),
        speakers=tuple(Speaker(name, settings.language) for name in stats),
        stats=CorpusStats(speakers),
    )
    return ImportedModel(
        config=config,
        assets=assets,
        tensors=weights.tensors | _norms(stats),
        weights=weights.path,
        described_by=settings.path,
        source=source,
        unused=weights.unused,
        step=step,
    )


def _tree(config: Mapping[str, object], settings: FastSpeech2Settings) -> Tree:
    """The config, in which each key knows the settings file that it came from."""
    whole = plain_tree(config, settings.path, settings.names)
    model = plain_tree({"model": config["model"]}, settings.model_path)
    return replace(whole, origins={**whole.origins, **model.origins})


def _config(
    settings: FastSpeech2Settings, weights: Weights, stats: Mapping[str, tuple[Stat, Stat]]
) -> dict[str, object]:
    return {
        "task": "tts",
        "model_type": "FastSpeech2",
        "dataset": list(settings.datasets),
        "dataset_path": {},
        "log_dir": "ckpts/tts",
        "preprocess": {**settings.preprocess, "text": {"pauses": "sp"}},
        "model": {
            **_sizes(settings, weights, stats),
            "pitch_level": settings.levels.pitch,
            "energy_level": settings.levels.energy,
            "use_postnet": any(name.startswith("postnet.") for name in weights.tensors),
            "stored_positions": weights.stored_positions,
        },
    }


def _sizes(
    settings: FastSpeech2Settings, weights: Weights, stats: Mapping[str, tuple[Stat, Stat]]
) -> dict[str, object]:
    """The sections of the model: keys that the weights do not imply, such as number of heads."""
    sizes: dict[str, object] = {}
    for name, keys in _SECTIONS.items():
        section = settings.model.get(name)
        if not isinstance(section, Mapping):
            raise InputError(f"{settings.model_path}: section {name} of the model is missing")
        sizes[name] = required(section, f"{settings.model_path}: {name}", *keys)
    bins = cast("dict[str, object]", sizes["variance_embedding"])
    # Their edges are in the units of the prediction. Those of kind "log" are in Hz here, which is
    # the same only for values that are not normalised.
    for name, known in zip(_QUANTITIES, zip(*stats.values(), strict=True), strict=True):
        if any((stat.mean, stat.std) != (0, 1) for stat in known):
            bins[f"{name}_quantization"] = "linear"
    positions = weights.max_seq_len or settings.model.get("max_seq_len")
    return sizes if positions is None else sizes | {"max_seq_len": positions}


def _norms(stats: Mapping[str, tuple[Stat, Stat]]) -> dict[str, Tensor]:
    """Statistics as tensors of the network."""
    norms = {}
    for name, known in zip(_QUANTITIES, zip(*stats.values(), strict=True), strict=True):
        norms[f"{name}.norm.mean"] = torch.tensor([stat.mean for stat in known])
        norms[f"{name}.norm.std"] = torch.tensor([stat.std for stat in known])
    return norms
