"""FastSpeech 2 as Amphion and ming024 describe it, in our terms."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import NamedTuple, cast

import torch
from torch import Tensor

from models.base.assets import Assets, Speaker
from models.base.registry import config_of
from models.checkpoint.importers import ImportedModel
from models.checkpoint.importers._fastspeech2_weights import Weights
from models.checkpoint.importers._settings import required
from models.tts.fastspeech2 import (
    TransformerConfig,
    VarianceEmbeddingConfig,
    VariancePredictorConfig,
)
from modules.variance_adaptor import Level
from processors.dataset.statistics import CorpusStats, SpeakerStats, Stat
from utils.config import Tree, plain_tree
from utils.errors import InputError

_SECTIONS = {  # their names and keys are ours
    "transformer": TransformerConfig,
    "variance_predictor": VariancePredictorConfig,
    "variance_embedding": VarianceEmbeddingConfig,
}


class Levels(NamedTuple):
    """Whether pitch and energy are values of phones or of frames."""

    pitch: Level
    energy: Level


@dataclass(frozen=True)
class Description:
    """What the settings of a checkpoint say, in our terms.

    Attributes:
        path: The file, which messages name.
        model_path: The file of `model`; it may be the same.
        datasets: Names.
        preprocess: Values of our `preprocess` section; mel and pitch, without the text.
        model: Sections `transformer`, `variance_predictor` and `variance_embedding`, and
            `max_seq_len`, as they stand.
        levels: Of pitch and energy.
        language: espeak language code.
        names: Their keys by ours, where they differ, for messages.
    """

    path: Path
    model_path: Path
    datasets: tuple[str, ...]
    preprocess: Mapping[str, object]
    model: Mapping[str, object]
    levels: Levels
    language: str = "en-us"
    names: Mapping[str, str] = field(default_factory=dict)


def by_id(ids: object, n_speakers: int, path: Path) -> list[str]:
    """Names in the order of their ids.

    Args:
        ids: Ids by name, as a file has them.
        n_speakers: As many as there are.
        path: The file, for messages.

    Raises:
        InputError: If it is something else.
    """
    numbers = list(ids.values()) if isinstance(ids, Mapping) else []
    if not all(type(n) is int for n in numbers) or sorted(numbers) != list(range(n_speakers)):
        raise InputError(
            f"{path}: expected names with the ids 0 to {n_speakers - 1}, found {str(ids)[:80]}"
        )
    return sorted(cast("Mapping[str, int]", ids), key=cast("Mapping[str, int]", ids).__getitem__)


def assemble(
    description: Description,
    weights: Weights,
    stats: Mapping[str, SpeakerStats],
    *,
    source: str,
    step: int | None,
) -> ImportedModel:
    """Puts together what was read.

    Args:
        description: From the settings.
        weights: From the checkpoint.
        stats: By speaker name, in the order of their ids.
        source: For the model card.
        step: Updates of training, if known.

    Raises:
        InputError: If settings are wrong, or the symbols unknown.
    """
    config = _config(description, weights, list(stats.values()))
    assets = Assets(
        mel=config_of(_tree(config, description)).preprocess.mel,
        vocabulary=weights.vocabulary,
        speakers=tuple(Speaker(name, description.language) for name in stats),
        stats=CorpusStats(dict(stats)),
    )
    return ImportedModel(
        config=config,
        assets=assets,
        tensors=weights.tensors | _norms(list(stats.values())),
        weights=weights.path,
        described_by=description.path,
        source=source,
        unused=weights.unused,
        step=step,
    )


def one_stat(path: Path, name: str, mean: object, std: object, ends: Sequence[object]) -> Stat:
    """Statistics of one quantity from the numbers in a file.

    Args:
        path: The file, for messages.
        name: What they are of, for messages.
        mean: Of the values.
        std: Their standard deviation.
        ends: Least and greatest.

    Raises:
        InputError: If one is no finite number, or the deviation is not positive.
    """
    numbers = [mean, std, *ends]
    if not all(isinstance(number, int | float) for number in numbers):
        raise InputError(f"{path}: {name}: expected mean, std, min and max, found {numbers}")
    values = torch.tensor(cast("list[float]", numbers), dtype=torch.float64)
    if not (values.isfinite().all() and values[1] > 0):
        raise InputError(f"{path}: {name}: mean, std, min and max are {numbers}; std is > 0")
    return Stat(*values.tolist())


def speaker_stats(pitch: Stat, energy: Stat) -> SpeakerStats:
    """Statistics of one speaker; theirs are of phones or of frames, and serve for both here."""
    return SpeakerStats(pitch, pitch, energy, energy, seconds=0.0)


def _tree(config: Mapping[str, object], description: Description) -> Tree:
    """Both files in one tree, each the origin of its keys."""
    whole = plain_tree(config, description.path, description.names)
    model = plain_tree({"model": config["model"]}, description.model_path)
    return replace(whole, origins={**whole.origins, **model.origins})


def _config(
    description: Description, weights: Weights, stats: Sequence[SpeakerStats]
) -> dict[str, object]:
    return {
        "task": "tts",
        "model_type": "FastSpeech2",
        "dataset": list(description.datasets),
        "dataset_path": {},
        "log_dir": "ckpts/tts",
        "preprocess": {**description.preprocess, "text": {"pauses": "sp"}},
        "model": {
            **_sizes(description, weights, stats),
            "pitch_level": description.levels.pitch,
            "energy_level": description.levels.energy,
            "use_postnet": any(name.startswith("postnet.") for name in weights.tensors),
            "stored_positions": weights.stored_positions,
        },
    }


def _sizes(
    description: Description, weights: Weights, stats: Sequence[SpeakerStats]
) -> dict[str, object]:
    """The sections of the model, without keys that another version of theirs may have.

    Raises:
        InputError: If a key is missing. Weights do not tell them all, such as the number of heads.
    """
    sizes: dict[str, object] = {}
    for name, cls in _SECTIONS.items():
        section = description.model.get(name)
        if not isinstance(section, Mapping):
            raise InputError(f"{description.model_path}: there is no section {name} of the model")
        keys = [field.name for field in fields(cls)]
        sizes[name] = required(section, f"{description.model_path}: {name}", *keys)
    bins = cast("dict[str, object]", sizes["variance_embedding"])
    # their edges lie among the values as predicted, ours of kind "log" among Hz
    if any((one.f0_phone.mean, one.f0_phone.std) != (0, 1) for one in stats):
        bins["pitch_quantization"] = "linear"
    if any((one.energy_phone.mean, one.energy_phone.std) != (0, 1) for one in stats):
        bins["energy_quantization"] = "linear"
    positions = weights.max_seq_len or description.model.get("max_seq_len")
    return sizes if positions is None else sizes | {"max_seq_len": positions}


def _norms(stats: Sequence[SpeakerStats]) -> dict[str, Tensor]:
    """Statistics as tensors of the network."""
    values = {
        "pitch.norm.mean": [one.f0_phone.mean for one in stats],
        "pitch.norm.std": [one.f0_phone.std for one in stats],
        "energy.norm.mean": [one.energy_phone.mean for one in stats],
        "energy.norm.std": [one.energy_phone.std for one in stats],
    }
    return {name: torch.tensor(numbers) for name, numbers in values.items()}
