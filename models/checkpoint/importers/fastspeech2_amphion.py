"""FastSpeech 2 of Amphion.

An experiment holds args.json and `checkpoint/epoch-..._step-..._loss-.../` with the weights. The
statistics of pitch and energy are in Amphion's processed data or, in published experiments, in the
folder of args.json.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, cast

from models.checkpoint.importers import ImportedModel, _amphion
from models.checkpoint.importers._amphion import MEL_KEYS, Checkpoint, locate, read_args
from models.checkpoint.importers._fastspeech2 import (
    FastSpeech2Settings,
    Levels,
    assemble,
    by_id,
    one_stat,
)
from models.checkpoint.importers._fastspeech2_weights import translate
from models.checkpoint.importers._files import first_file, upwards
from models.checkpoint.importers._settings import required, section, upper_edge
from models.checkpoint.tensors import named_tensors, read_weights
from processors.dataset.statistics import Stat
from utils.errors import InputError
from utils.files import read_json

KIND = "FastSpeech 2 of Amphion (args.json, checkpoint/ and statistics.json)"
HUB_FILES = _amphion.HUB_FILES
_F0 = ("f0_min", "f0_max")
_SYMBOLS = "symbols.dict"  # written if phones are not those of a lexicon
_REFUSED = {  # keys of `preprocess` by which the network computes other quantities
    "use_min_max_norm_mel": "mels scaled to another range",
    "use_log_scale_pitch": "the logarithm of pitch",
    "use_log_scale_energy": "the logarithm of energy",
}
_STATISTICS = "statistics.json"
_SPEAKERS = "spk2id.json"
_LEVELS = 3  # folders from an experiment, <root>/ckpts/tts/<name>, up to where the data may be
_FOLDERS = {  # of a dataset's data: the key that names it, and its usual name
    ("pitch", "phone"): ("phone_pitch_dir", "phone_pitches"),
    ("pitch", "frame"): ("pitch_dir", "pitches"),
    ("energy", "phone"): ("phone_energy_dir", "phone_energys"),
    ("energy", "frame"): ("energy_dir", "energys"),
}


def recognises(path: Path) -> bool:
    """Whether args.json belongs to FastSpeech 2."""
    checkpoint = locate(path)
    if checkpoint is None:
        return False
    return str(read_args(checkpoint).get("model_type")).lower() == "fastspeech2"


def read(path: Path) -> ImportedModel:
    """Reads an experiment, its folder of checkpoints or one checkpoint."""
    checkpoint = cast("Checkpoint", locate(path))  # it was recognised
    args = read_args(checkpoint)
    settings = _settings(args, checkpoint.args)
    tensors = named_tensors(read_weights(checkpoint.weights), str(checkpoint.weights))
    weights = translate(tensors, checkpoint.weights)
    home, preprocess = checkpoint.args.parent, section(args, "preprocess")
    data = _ProcessedData(home, settings.datasets[0], preprocess, settings.levels)
    return assemble(
        settings,
        weights,
        _read_stats(data, weights.n_speakers),
        source=f"FastSpeech 2 of Amphion (github.com/open-mmlab/Amphion), {checkpoint.name}",
        step=checkpoint.step,
    )


def _settings(args: Mapping[str, object], path: Path) -> FastSpeech2Settings:
    preprocess = section(args, "preprocess")
    _check(preprocess, path)
    datasets = args.get("dataset")
    if not isinstance(datasets, list) or not datasets:
        raise InputError(f"{path}: dataset is {datasets!r}, expected a list of names")
    mel = required(preprocess, f"{path}: preprocess", *MEL_KEYS, "mel_extract_mode")
    centred = mel.pop("mel_extract_mode") == "taco"
    praat = preprocess.get("pitch_extractor") == "parselmouth"
    return FastSpeech2Settings(
        path=path,
        model_path=path,
        datasets=tuple(map(str, datasets)),
        preprocess={
            **mel,
            "fmax": upper_edge(mel["fmax"], mel["sample_rate"]),
            **{key: preprocess[key] for key in _F0 if key in preprocess},
            "mel_padding": "centre" if centred else "hifigan",
            "pitch_extractor": "parselmouth" if praat else "pyworld",
        },
        model=section(args, "model"),
        levels=Levels(
            "frame" if preprocess.get("use_frame_pitch") else "phone",
            "frame" if preprocess.get("use_frame_energy") else "phone",
        ),
    )


def _check(preprocess: Mapping[str, object], path: Path) -> None:
    """Refuses settings with which the output would be wrong."""
    for key, what in _REFUSED.items():
        if preprocess.get(key):
            raise InputError(f"{path}: preprocess.{key}: {what} cannot be used in Arion")
    if preprocess.get("phone_extractor") != "lexicon" and (path.parent / _SYMBOLS).is_file():
        raise InputError(
            f"{path}: preprocess.phone_extractor: its phones are those of {_SYMBOLS}; only the "
            "ARPAbet phones of the extractor lexicon can be used in Arion"
        )


class _ProcessedData(NamedTuple):
    """Where the processed data may be."""

    home: Path  # the experiment
    dataset: str  # the first one: the network was trained with its statistics
    preprocess: Mapping[str, object]  # that section of the settings
    levels: Levels

    @property
    def whole(self) -> str:
        """The key of the statistics of the whole dataset."""
        return f"{self.dataset}_{self.dataset}"

    def find(self, name: str) -> Path | None:
        """A file of the dataset, in the experiment or in `processed_dir`."""
        processed = str(self.preprocess.get("processed_dir") or "")
        roots = [self.home, *(home / processed for home in upwards(self.home, _LEVELS))]
        folders = [self.home, *(root / self.dataset for root in roots)]
        return first_file(folder / name for folder in folders)

    def statistics(self, quantity: str) -> str:
        """The file of the statistics of "pitch" or "energy"."""
        key, usual = _FOLDERS[quantity, getattr(self.levels, quantity)]
        return f"{self.preprocess.get(key) or usual}/{_STATISTICS}"


def _read_stats(data: _ProcessedData, n_speakers: int) -> dict[str, tuple[Stat, Stat]]:
    """Statistics of pitch and energy by speaker, in the order of their ids."""
    names = [data.statistics(quantity) for quantity in ("pitch", "energy")]
    paths = [data.find(name) for name in names]
    if missing := [name for name, path in zip(names, paths, strict=True) if path is None]:
        folder = data.home / data.dataset
        raise InputError(
            f"{data.home}: the statistics of pitch and energy are missing; copy them from the data "
            "that Amphion prepared (processed_dir): "
            + "; ".join(f"{data.dataset}/{name} to {folder / name}" for name in missing)
        )
    pitch, energy = (_StatisticsFile.read(cast("Path", path)) for path in paths)
    if n_speakers > 1:
        keys = _several_speakers(data, n_speakers)
    else:
        keys = list(pitch.speakers) if len(pitch.speakers) == 1 else [data.whole]
    stats = [(pitch.of(key, data), energy.of(key, data)) for key in keys]
    return dict(zip(_without_dataset(keys, data.dataset), stats, strict=True))


class _StatisticsFile(NamedTuple):
    """The content of a statistics.json: by `<dataset>_<speaker>`."""

    path: Path
    speakers: Mapping[str, object]

    @classmethod
    def read(cls, path: Path) -> "_StatisticsFile":
        plain = read_json(path)
        if not isinstance(plain, Mapping) or not plain:
            raise InputError(f"{path}: expected statistics by <dataset>_<speaker>")
        return cls(path, plain)

    def of(self, key: str, data: _ProcessedData) -> Stat:
        """Statistics of one speaker, or of the whole dataset if the speaker has none."""
        found = next((k for k in (key, data.whole) if k in self.speakers), None)
        if found is None:
            raise InputError(
                f"{self.path}: no statistics of {key}; it has those of {', '.join(self.speakers)}"
            )
        values = {found: self.speakers[found]}
        voiced = section(values, found, "voiced_positions")
        every = section(values, found, "total_positions")
        ends = (every.get("min"), every.get("max"))
        return one_stat(self.path, found, voiced.get("mean"), voiced.get("std"), ends)


def _several_speakers(data: _ProcessedData, n_speakers: int) -> list[str]:
    """The keys of several speakers in the order of their ids."""
    path = data.find(_SPEAKERS)
    if path is None:
        raise InputError(
            f"{data.home}: the weights are of {n_speakers} speakers, and {_SPEAKERS} with their "
            "names is missing; copy it there from the data that Amphion prepared (processed_dir)"
        )
    return by_id(read_json(path), n_speakers, path)


def _without_dataset(keys: Sequence[str], dataset: str) -> list[str]:
    """Speaker names: the keys without the dataset's name, if all begin with it."""
    prefix = f"{dataset}_"
    if all(key.startswith(prefix) and key != prefix for key in keys):
        return [key.removeprefix(prefix) for key in keys]
    return list(keys)
