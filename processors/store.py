"""Feature store: shards of safetensors and an index, read at random by id or position.

A dataset's folder holds `audio.json` (the mel definition) and, in `features/`, the shards
`shard-00000.safetensors` ... and `index.jsonl`. A shard has five tensors per utterance, named
`<id>/mel`, `<id>/f0`, ...: any safetensors reader opens it. Phone names are one text tensor of
bytes (UTF-8, separated by spaces), since safetensors holds numbers only.
"""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from modules.mel import MelConfig
from processors.records import Features
from utils.errors import InputError
from utils.files import read_json, read_jsonl, replacing, write_json, write_jsonl

_TENSORS = ("phones", "durations", "mel", "f0", "energy")


class IndexRow(NamedTuple):
    """One utterance in `index.jsonl`."""

    id: str
    speaker: str
    shard: str  # file name without its suffix
    frames: int
    phones: int
    seconds: float
    crc32: int  # of the five tensors, in the order of `_TENSORS`


class Prosody(NamedTuple):
    """The part of Features that statistics need."""

    durations: np.ndarray  # (N,) int64 frames
    f0: np.ndarray  # (T,) float32 Hz, 0 = unvoiced
    energy: np.ndarray  # (T,) float32


def features_folder(folder: Path) -> Path:
    """Where a dataset's folder holds its shards."""
    return folder / "features"


def write_mel_config(folder: Path, mel: MelConfig) -> None:
    """Writes the mel definition of a store as `audio.json`."""
    write_json(folder / "audio.json", asdict(mel))


def write_shard(path: Path, features: Sequence[Features], mel: MelConfig) -> list[IndexRow]:
    """Writes one shard, whole or not at all.

    Args:
        path: `<folder>/features/shard-00000.safetensors`.
        features: Utterances, in the order of the index.
        mel: Definition of their mels, for the seconds of a frame.

    Returns:
        The rows of the index.
    """
    tensors: dict[str, np.ndarray] = {}
    rows = []
    for item in features:
        record = _record(item)
        tensors |= {f"{item.id}/{name}": value for name, value in record.items()}
        frames = item.mel.shape[1]
        seconds = frames * mel.hop_length / mel.sample_rate
        n_phones = len(item.phones)
        checksum = _checksum(record)
        rows.append(IndexRow(item.id, item.speaker, path.stem, frames, n_phones, seconds, checksum))
    with replacing(path) as temporary:
        # not save_file: its files can be read by their owner only, and stores are shared
        temporary.write_bytes(save(tensors))
    return rows


def _record(item: Features) -> dict[str, np.ndarray]:
    phones = np.frombuffer(" ".join(item.phones).encode(), dtype=np.uint8)
    record = {
        "phones": phones,
        "durations": item.durations.astype(np.int64),
        "mel": item.mel.astype(np.float32),
        "f0": item.f0.astype(np.float32),
        "energy": item.energy.astype(np.float32),
    }
    # safetensors writes memory as it lies: a transposed view would be stored wrongly
    return {name: np.ascontiguousarray(value) for name, value in record.items()}


def _checksum(record: Mapping[str, np.ndarray]) -> int:
    checksum = 0
    for name in _TENSORS:
        checksum = zlib.crc32(record[name].data, checksum)
    return checksum


def write_index(folder: Path, rows: Sequence[IndexRow]) -> None:
    """Writes `index.jsonl`, sorted by id: the last step that makes a store readable."""
    ordered = sorted(rows, key=lambda row: row.id)
    write_jsonl(features_folder(folder) / "index.jsonl", (row._asdict() for row in ordered))


class FeatureStore:
    """Features of one dataset.

    Lengths and names are in memory; features are read from memory-mapped shards, which each process
    opens once. May be copied to other processes.

    Args:
        folder: The dataset's folder, `<processed_dir>/<dataset>`.
        mel: Definition that the reader expects; None accepts any.

    Attributes:
        mel: Definition of the stored mels.
        ids: Utterance ids, sorted.
        speakers: Speaker of each utterance.
        frames: Frames of each utterance, int64.
        phones_count: Phones of each utterance, int64.
        seconds: Duration of each utterance, float64.

    Raises:
        InputError: If the store is missing or unfinished, or holds another kind of mel.
    """

    def __init__(self, folder: Path, mel: MelConfig | None = None) -> None:
        self.folder = folder
        self.mel = _read_mel_config(folder)
        if mel is not None:
            _check_mel_config(folder, self.mel, mel)
        rows = _read_index(folder)
        self.ids = tuple(row.id for row in rows)
        self.speakers = tuple(row.speaker for row in rows)
        self.frames = np.array([row.frames for row in rows], dtype=np.int64)
        self.phones_count = np.array([row.phones for row in rows], dtype=np.int64)
        self.seconds = np.array([row.seconds for row in rows], dtype=np.float64)
        self._shards = tuple(row.shard for row in rows)
        self._checksums = tuple(row.crc32 for row in rows)
        self._positions = {id: i for i, id in enumerate(self.ids)}
        self._open_shards: dict[str, Any] = {}

    def __len__(self) -> int:
        return len(self.ids)

    def __contains__(self, id: object) -> bool:
        return id in self._positions

    def __getstate__(self) -> dict[str, object]:
        return self.__dict__ | {"_open_shards": {}}

    def index_of(self, id: str) -> int:
        """Position of an utterance.

        Raises:
            InputError: If the store does not hold it.
        """
        try:
            return self._positions[id]
        except KeyError:
            raise InputError(f"{self.folder}: no features of {id!r}; run stage 1 again") from None

    def read(self, key: str | int) -> Features:
        """Reads one utterance by id or position.

        Raises:
            InputError: If it is not there, or its shard is missing or broken.
        """
        position = self.index_of(key) if isinstance(key, str) else key
        record = self._tensors(position, _TENSORS)
        phones = record.pop("phones").tobytes().decode().split()
        return Features(self.ids[position], self.speakers[position], tuple(phones), **record)

    def read_prosody(self, key: str | int) -> Prosody:
        """Reads durations, f0 and energy, without the mel; the same errors as `read`."""
        position = self.index_of(key) if isinstance(key, str) else key
        return Prosody(**self._tensors(position, Prosody._fields))

    def verify(self) -> list[str]:
        """Compares every record with its checksum.

        Returns:
            One line per record that cannot be read or has changed: its id and what is wrong.
        """
        return [line for i in range(len(self)) if (line := self._fault(i))]

    def _fault(self, position: int) -> str:
        try:
            record = self._tensors(position, _TENSORS)
        except InputError as error:
            return f"{self.ids[position]}: {error}"
        if _checksum(record) != self._checksums[position]:
            shard = self._shards[position]
            return f"{self.ids[position]}: its data in {shard} differ from what was written"
        return ""

    def _tensors(self, position: int, names: Sequence[str]) -> dict[str, np.ndarray]:
        id, shard = self.ids[position], self._shards[position]
        try:
            file = self._shard(shard)
            return {name: file.get_tensor(f"{id}/{name}") for name in names}
        except (OSError, SafetensorError) as error:
            path = features_folder(self.folder) / f"{shard}.safetensors"
            raise InputError(
                f"{path}: cannot read {id}: {error}; delete this file and run stage 1 again"
            ) from error

    def _shard(self, shard: str) -> Any:  # noqa: ANN401  (safetensors has no public type for it)
        if shard not in self._open_shards:
            path = features_folder(self.folder) / f"{shard}.safetensors"
            self._open_shards[shard] = safe_open(path, framework="numpy")
        return self._open_shards[shard]


def _read_index(folder: Path) -> list[IndexRow]:
    path = features_folder(folder) / "index.jsonl"
    if not path.is_file():
        raise InputError(f"{path} is missing: stage 1 was not run or not finished; run it")
    try:
        return [IndexRow(**cast("dict[str, Any]", row)) for row in read_jsonl(path)]
    except TypeError as error:
        raise InputError(f"{path}: not an index of this version ({error}); run stage 1") from error


def _read_mel_config(folder: Path) -> MelConfig:
    path = folder / "audio.json"
    if not path.is_file():
        raise InputError(f"{path} is missing: stage 1 was not run or not finished; run it")
    try:
        return MelConfig(**cast("dict[str, Any]", read_json(path)))
    except (TypeError, ValueError) as error:
        raise InputError(f"{path}: not a mel definition: {error}; run stage 1 again") from error


def _check_mel_config(folder: Path, stored: MelConfig, expected: MelConfig) -> None:
    old, new = asdict(stored), asdict(expected)
    differing = [f"{key} is {old[key]}, expected {new[key]}" for key in old if old[key] != new[key]]
    if differing:
        raise InputError(
            f"{folder}: its features have another mel definition: {'; '.join(differing)}; "
            "run stage 1 with this configuration, or use the one they were made with"
        )
