"""Speakers and their statistics of pitch and energy, where Amphion leaves them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, cast

from models.checkpoint.importers._fastspeech2 import Levels, by_id, one_stat, speaker_stats
from models.checkpoint.importers._files import first_file, upwards
from processors.dataset.statistics import SpeakerStats, Stat
from utils.errors import InputError
from utils.files import read_json

_STATISTICS = "statistics.json"
_SPEAKERS = "spk2id.json"
_LEVELS = 3  # folders from an experiment, <root>/ckpts/tts/<name>, up to where the data may lie
_FOLDERS = {  # of a dataset's data; the key of the settings that names it, and its usual name
    ("pitch", "phone"): ("phone_pitch_dir", "phone_pitches"),
    ("pitch", "frame"): ("pitch_dir", "pitches"),
    ("energy", "phone"): ("phone_energy_dir", "phone_energys"),
    ("energy", "frame"): ("energy_dir", "energys"),
}


class Data(NamedTuple):
    """Where the processed data may lie.

    Attributes:
        home: The experiment.
        dataset: The first of its datasets, whose statistics the weights need.
        preprocess: That section of the settings.
        levels: Of pitch and energy.
    """

    home: Path
    dataset: str
    preprocess: Mapping[str, object]
    levels: Levels

    def find(self, name: str) -> Path | None:
        """A file of the dataset, beside args.json or where `processed_dir` says."""
        processed = str(self.preprocess.get("processed_dir") or "")
        roots = [self.home, *(home / processed for home in upwards(self.home, _LEVELS))]
        folders = [self.home, *(root / self.dataset for root in roots)]
        return first_file(folder / name for folder in folders)

    def statistics(self, quantity: str) -> str:
        """Where the dataset has the statistics of "pitch" or "energy"."""
        key, usual = _FOLDERS[quantity, getattr(self.levels, quantity)]
        return f"{self.preprocess.get(key) or usual}/{_STATISTICS}"


def read_stats(data: Data, n_speakers: int) -> dict[str, SpeakerStats]:
    """Statistics by speaker, in the order of their ids.

    Raises:
        InputError: If a file is missing (says where it belongs) or not what it should be.
    """
    names = [data.statistics(quantity) for quantity in ("pitch", "energy")]
    paths = [data.find(name) for name in names]
    if missing := [name for name, path in zip(names, paths, strict=True) if path is None]:
        folder = data.home / data.dataset
        raise InputError(
            f"{data.home}: the statistics of pitch and energy, without which no Hz and no energy "
            "are known, are not there. Copy from the data that Amphion prepared (processed_dir): "
            + "; ".join(f"{data.dataset}/{name} to {folder / name}" for name in missing)
        )
    pitch, energy = (_Statistics.read(cast("Path", path)) for path in paths)
    keys = _only_speaker(data, pitch) if n_speakers == 1 else _speakers(data, n_speakers)
    stats = [speaker_stats(pitch.of(key, data), energy.of(key, data)) for key in keys]
    return dict(zip(_names(keys, data.dataset), stats, strict=True))


class _Statistics(NamedTuple):
    """The content of a statistics.json: by `<dataset>_<speaker>`."""

    path: Path
    speakers: Mapping[str, object]

    @classmethod
    def read(cls, path: Path) -> "_Statistics":
        plain = read_json(path)
        if not isinstance(plain, Mapping) or not plain:
            raise InputError(f"{path}: expected statistics by <dataset>_<speaker>")
        return cls(path, plain)

    def of(self, key: str, data: Data) -> Stat:
        """Statistics of one speaker, or those of the dataset as a whole where it has none."""
        found = next((k for k in (key, _whole(data)) if k in self.speakers), None)
        if found is None:
            raise InputError(f"{self.path}: nothing on {key} (known: {', '.join(self.speakers)})")
        mean, std = (_number(self.speakers[found], "voiced_positions", n) for n in ("mean", "std"))
        ends = [_number(self.speakers[found], "total_positions", name) for name in ("min", "max")]
        return one_stat(self.path, found, mean, std, ends)


def _whole(data: Data) -> str:
    return f"{data.dataset}_{data.dataset}"


def _number(values: object, *keys: str) -> object:
    for key in keys:
        values = values.get(key) if isinstance(values, Mapping) else None
    return values


def _only_speaker(data: Data, statistics: _Statistics) -> list[str]:
    """The key of a single voice: that of its dataset, or the only one there is."""
    known = list(statistics.speakers)
    return known if len(known) == 1 else [_whole(data)]


def _speakers(data: Data, n_speakers: int) -> list[str]:
    """The keys of several voices in the order of their ids."""
    path = data.find(_SPEAKERS)
    if path is None:
        raise InputError(
            f"{data.home}: the weights are of {n_speakers} speakers, and there is no {_SPEAKERS} "
            "with their names; copy it there from the data that Amphion prepared (processed_dir)"
        )
    return by_id(read_json(path), n_speakers, path)


def _names(keys: Sequence[str], dataset: str) -> list[str]:
    """Keys without their dataset, where they are all of that one."""
    prefix = f"{dataset}_"
    if all(key.startswith(prefix) and key != prefix for key in keys):
        return [key.removeprefix(prefix) for key in keys]
    return list(keys)
