"""Store of stage 1: shards of safetensors and an index, read at random by id or position.

A dataset's folder holds `audio.json` (the mel definition) and, in `features/`, the shards
`shard-00000.safetensors` ... and `index.jsonl`. A shard has a few tensors per utterance, named
`<id>/mel`, `<id>/f0`, ...: any safetensors reader opens it. Acoustic models are trained on
Features, vocoders on MelWavs; a folder holds either.
"""

import json
import sys
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, NamedTuple, cast

import numpy as np
from safetensors import SafetensorError, safe_open

from config.preprocess import PreprocessConfig
from modules.mel import MelConfig
from processors.records import Features, MelWav, WordPhones
from utils.config import build_complete
from utils.config_tree import ConfigError
from utils.errors import InputError
from utils.files import iterate_jsonl, read_json, replacing, user_path, write_json, write_jsonl

FEATURES = "features"
INDEX = f"{FEATURES}/index.jsonl"
# names as safetensors writes them
_DTYPES = {"uint8": "U8", "int16": "I16", "int64": "I64", "float32": "F32"}
# tensors of a record, and bytes of each in the header, without the record's id
_MAX_TENSORS, _ENTRY_BYTES = 6, 128
# Shards that a process holds open: one of 200 utterances takes 0.2 MB, and a millisecond to open.
_MAX_OPEN = 512


class Prosody(NamedTuple):
    """The part of Features that statistics need."""

    durations: np.ndarray | None  # (N,) int64 frames
    f0: np.ndarray  # (T,) float32 Hz, 0 = unvoiced
    energy: np.ndarray  # (T,) float32


def shard_path(folder: Path, name: str) -> Path:
    """Returns the file of a shard in the folder of a dataset."""
    return folder / FEATURES / f"{name}.safetensors"


def processed_folder(config: PreprocessConfig, dataset: str) -> Path:
    """Returns the folder of a dataset that stage 1 prepared."""
    return user_path(config.processed_dir) / dataset


def write_mel_config(folder: Path, mel: MelConfig) -> None:
    """Writes the mel definition of a store as `audio.json`."""
    write_json(folder / "audio.json", asdict(mel))


class IndexRow(NamedTuple):
    """One utterance in `index.jsonl`."""

    id: str
    speaker: str
    shard: str  # file name without its suffix
    frames: int
    phones: int  # 0 of recordings
    seconds: float
    crc32: int  # of its tensors, in the order in which they were written
    start: int  # where the mel begins in the recording, samples
    timed: bool = True  # whether the durations of its phones are stored
    mixed: bool = False  # whether words have phones in addition to letters


def write_index(folder: Path, rows: Sequence[IndexRow]) -> None:
    """Writes `index.jsonl`, sorted by id: the last step that makes a store readable."""
    write_jsonl(folder / INDEX, (row._asdict() for row in sorted(rows, key=lambda row: row.id)))


class ShardWriter:
    """A safetensors file in the making.

    The header comes first in the file and holds the offset of each tensor; it is written last, into
    reserved space, of which the format allows the rest to be blanks.
    """

    def __init__(self, file: BinaryIO, name: str, ids: Collection[str], mel: MelConfig) -> None:
        self.rows: list[IndexRow] = []
        self._file = file
        self._name = name
        self._mel = mel
        self._header: dict[str, object] = {}
        room = 2 + sum(_MAX_TENSORS * (len(id) + _ENTRY_BYTES) for id in ids)
        self._room = -(-room // 8) * 8
        self._data_start = file.seek(8 + self._room)

    def add(self, record: Features | MelWav) -> None:
        """Writes the tensors of one utterance."""
        tensors = tensors_of(record)
        for name, value in tensors.items():
            start = self._file.tell() - self._data_start
            self._file.write(value.data)
            self._header[f"{record.id}/{name}"] = {
                "dtype": _DTYPES[value.dtype.name],
                "shape": value.shape,
                "data_offsets": (start, start + value.nbytes),
            }
        T, N = record.mel.shape[1], len(record.phones) if isinstance(record, Features) else 0
        seconds = T * self._mel.hop_length / self._mel.sample_rate
        crc32, timed = checksum(tensors), isinstance(record, MelWav) or record.durations is not None
        row = IndexRow(record.id, record.speaker, self._name, T, N, seconds, crc32, record.start)
        self.rows.append(row._replace(timed=timed, mixed="word_phones" in tensors))

    def finish(self) -> None:
        """Writes the header."""
        header = json.dumps(self._header, separators=(",", ":")).encode()
        self._file.seek(0)
        self._file.write(self._room.to_bytes(8, "little") + header.ljust(self._room))


@contextmanager
def shard_writer(path: Path, ids: Collection[str], mel: MelConfig) -> Iterator[ShardWriter]:
    """Opens the writer of a shard, which is written whole or not at all."""
    with replacing(path) as temporary, temporary.open("wb") as file:
        writer = ShardWriter(file, path.stem, ids, mel)
        yield writer
        writer.finish()


def is_whole(path: Path) -> bool:
    """Returns whether a shard is readable and as long as its header states, by that alone."""
    try:
        with safe_open(path, framework="numpy"):
            return True
    except (OSError, SafetensorError):
        return False


def tensors_of(record: Features | MelWav) -> dict[str, np.ndarray]:
    """Returns the stored tensors of an utterance, by name, in the order in which they are written.

    Phone names are one text tensor of bytes (UTF-8, separated by spaces), since safetensors holds
    numbers only. So are the phones of words, a line for each: word, start, end, phones.
    """
    if isinstance(record, MelWav):
        tensors = {"mel": record.mel.astype("<f4"), "wav": record.wav.astype("<i2")}
    else:
        texts = {"phones": " ".join(record.phones)}
        if record.word_phones:
            lines = (" ".join([*map(str, w[:3]), *w.phones]) for w in record.word_phones)
            texts["word_phones"] = "\n".join(lines)
        tensors = {n: np.frombuffer(text.encode(), dtype=np.uint8) for n, text in texts.items()}
        if record.durations is not None:
            tensors["durations"] = record.durations.astype("<i8")
        for name in ("mel", "f0", "energy"):
            tensors[name] = getattr(record, name).astype("<f4")
    # safetensors holds memory as it lies: a transposed view would be stored wrongly
    return {name: np.ascontiguousarray(value) for name, value in tensors.items()}


def checksum(tensors: Mapping[str, np.ndarray]) -> int:
    """Returns the CRC-32 of tensors in their order."""
    value = 0
    for tensor in tensors.values():
        value = zlib.crc32(tensor.data, value)
    return value


class Store:
    """Records of one dataset, `<processed_dir>/<dataset>`; use FeatureStore or MelWavStore.

    Lengths and names are in memory; tensors are read from memory-mapped shards, of which each
    process keeps those open that it used last. May be copied to other processes.

    Attributes:
        mel: Definition of the stored mels, which the reader may expect.
        ids: Utterance ids, sorted.
        speakers: Speaker of each utterance.
        frames: Frames of each utterance, int64.
        phones_count: Phones of each utterance, int64; 0 of recordings.
        seconds: Duration of each utterance, float64.
        starts: Where each begins in its recording, samples, int64.
        timed: Whether the durations of phones are stored.
    """

    TENSORS: ClassVar[tuple[str, ...]]  # of a record, in the order in which they are written
    _HAS_PHONES: ClassVar[bool]
    _FAULT: ClassVar[str]  # of the folder of a store of the other kind
    _REMEDY: ClassVar[str]

    def __init__(self, folder: Path, mel: MelConfig | None = None) -> None:
        self.folder = folder
        config = _existing(folder / "audio.json")
        try:
            self.mel = build_complete(MelConfig, read_json(config), config)
        except ConfigError as error:
            raise InputError(f"{error}; delete this file and run stage 1 again") from error
        if mel is not None and (different := self.mel.differences(mel)):
            fault = f"{folder}: its features have another mel definition: {', '.join(different)}"
            remedy = "run stage 1 with this configuration, or use the one they were made with"
            raise InputError(f"{fault} (stored and expected); {remedy}")
        path = _existing(folder / INDEX)
        try:
            rows = [IndexRow(**cast("dict[str, Any]", row)) for row in iterate_jsonl(path)]
            # as columns, in a fraction of the memory of the rows
            self.ids = tuple(row.id for row in rows)
            self.speakers = tuple(sys.intern(row.speaker) for row in rows)  # one string per speaker
            self.frames = np.array([row.frames for row in rows], dtype=np.int64)
            self.phones_count = np.array([row.phones for row in rows], dtype=np.int64)
            self.seconds = np.array([row.seconds for row in rows], dtype=np.float64)
            self.starts = np.array([row.start for row in rows], dtype=np.int64)
            self.timed = all(row.timed for row in rows)
            self._mixed = tuple(row.mixed for row in rows)
            self._shards = tuple(sys.intern(row.shard) for row in rows)
            self._checksums = np.array([row.crc32 for row in rows], dtype=np.uint32)
        except (TypeError, ValueError, OverflowError) as error:
            fault = f"not an index of this version ({error})"
            raise InputError(f"{path}: {fault}; run stage 1 again") from error
        if ((self.phones_count == 0) == self._HAS_PHONES).any():
            raise InputError(f"{folder} {self._FAULT}; {self._REMEDY}")
        self._positions = {id: i for i, id in enumerate(self.ids)}
        self._open_shards: dict[str, Any] = {}

    def __len__(self) -> int:
        return len(self.ids)

    def __contains__(self, id: object) -> bool:
        return id in self._positions

    def __getstate__(self) -> dict[str, object]:
        return self.__dict__ | {"_open_shards": {}}

    def index_of(self, key: str | int) -> int:
        """Returns the position of an utterance that is given by its id or position."""
        position = key if isinstance(key, int) else self._positions.get(key)
        if position is None:
            raise InputError(f"{self.folder}: no features of {key!r}; run stage 1 again")
        return position

    def checksum(self, id: str) -> int:
        """Returns the CRC-32 of the stored tensors of an utterance."""
        return int(self._checksums[self.index_of(id)])

    def reading_order(self, ids: Iterable[str]) -> list[str]:
        """Returns the order in which utterances are read fastest: each shard is opened once."""
        return sorted(ids, key=lambda id: (self._shards[self.index_of(id)], id))

    def _tensors(
        self, position: int, names: Sequence[str], parts: Sequence[tuple[slice, ...]] | None = None
    ) -> dict[str, np.ndarray]:
        """Returns tensors of one utterance, whole or a part of each, a slice per dimension."""
        id, path = self.ids[position], shard_path(self.folder, self._shards[position])
        try:
            file = self._shard(self._shards[position])
            if parts is None:
                return {name: file.get_tensor(f"{id}/{name}") for name in names}
            pairs = zip(names, parts, strict=True)
            return {name: file.get_slice(f"{id}/{name}")[part] for name, part in pairs}
        except FileNotFoundError as error:
            raise InputError(f"{path} is missing; run stage 1 again") from error
        except (OSError, SafetensorError) as error:
            fault = f"{path}: cannot read {id}: {error}"
            raise InputError(f"{fault}; delete this file and run stage 1 again") from error

    def _unchanged(self, position: int, tensors: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Returns the tensors of a whole record, after a check of their checksum."""
        if checksum(tensors) != self._checksums[position]:
            fault = f"{self.ids[position]} has changed since it was written"
            path = shard_path(self.folder, self._shards[position])
            raise InputError(f"{path}: {fault}; delete this file and run stage 1 again")
        return tensors

    def _shard(self, shard: str) -> Any:  # noqa: ANN401  (safetensors has no public type for it)
        file = self._open_shards.pop(shard, None)
        if file is None:
            file = safe_open(shard_path(self.folder, shard), framework="numpy")
            if len(self._open_shards) >= _MAX_OPEN:
                del self._open_shards[next(iter(self._open_shards))]  # the least recently used
        self._open_shards[shard] = file
        return file


class FeatureStore(Store):
    """Features of one dataset, for acoustic models; see Store."""

    TENSORS = ("phones", "durations", "mel", "f0", "energy")
    _HAS_PHONES = True
    _FAULT = "holds recordings for vocoders, and no phones"
    _REMEDY = "run stage 1 of an acoustic model with another preprocess.processed_dir"

    def read(self, key: str | int) -> Features:
        """Reads one utterance by id or position."""
        position = self.index_of(key)
        names = [name for name in self.TENSORS if self.timed or name != "durations"]
        if self._mixed[position]:
            names.insert(1, "word_phones")  # its place in `tensors_of`
        record = self._unchanged(position, self._tensors(position, names))
        phones, durations = _names(record.pop("phones")), record.pop("durations", None)
        words = _words(record.pop("word_phones")) if "word_phones" in record else ()
        id, speaker, start = self.ids[position], self.speakers[position], int(self.starts[position])
        return Features(id, speaker, phones, durations, **record, start=start, word_phones=words)

    def read_phones(self, key: str | int) -> tuple[str, ...]:
        """Reads the names of the phones alone."""
        return _names(self._tensors(self.index_of(key), ("phones",))["phones"])

    def read_word_phones(self, key: str | int) -> tuple[WordPhones, ...]:
        """Reads the phones of words that are in letters."""
        position = self.index_of(key)
        if not self._mixed[position]:
            return ()
        return _words(self._tensors(position, ("word_phones",))["word_phones"])

    def read_prosody(self, key: str | int) -> Prosody:
        """Reads durations, f0 and energy, without the mel."""
        names = Prosody._fields if self.timed else Prosody._fields[1:]
        record = self._tensors(self.index_of(key), names)
        return Prosody(record.pop("durations", None), **record)


class MelWavStore(Store):
    """Recordings of one dataset, for vocoders; see Store."""

    TENSORS = ("mel", "wav")
    _HAS_PHONES = False
    _FAULT = "holds features for acoustic models, and no audio"
    _REMEDY = "run stage 1 of a vocoder with another preprocess.processed_dir"

    def read(self, key: str | int, first: int = 0, n_frames: int | None = None) -> MelWav:
        """Reads one utterance, or some frames of it, by id or position.

        One that is read whole is compared with its checksum.
        """
        position = self.index_of(key)
        T, hop = int(self.frames[position]), self.mel.hop_length
        last = T if n_frames is None else min(T, first + n_frames)
        mel, wav = (slice(None), slice(first, last)), (slice(first * hop, last * hop),)
        start = int(self.starts[position]) + first * hop
        tensors = self._tensors(position, self.TENSORS, (mel, wav))
        if last - first == T:
            tensors = self._unchanged(position, tensors)
        return MelWav(self.ids[position], self.speakers[position], **tensors, start=start)


def _names(stored: np.ndarray) -> tuple[str, ...]:
    return tuple(stored.tobytes().decode().split())


def _words(stored: np.ndarray) -> tuple[WordPhones, ...]:
    lines = (line.split() for line in stored.tobytes().decode().split("\n"))
    return tuple(WordPhones(int(a), int(b), int(c), tuple(phones)) for a, b, c, *phones in lines)


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise InputError(f"{path} is missing: stage 1 was not run or not finished; run it")
    return path
