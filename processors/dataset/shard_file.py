"""Writing a shard tensor by tensor, so that hours of audio need not fit into memory."""

import json
import zlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
from safetensors import SafetensorError, safe_open

from modules.mel import MelConfig
from processors.records import Features, MelWav
from utils.files import replacing

# Names as safetensors writes them. A record's tensors are written in the order of this module.
_DTYPES = {"uint8": "U8", "int16": "I16", "int64": "I64", "float32": "F32"}
_MOST_TENSORS = 6  # of a record
_ENTRY_BYTES = 128  # of a tensor in the header, without the record's id


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
        room = 2 + sum(_MOST_TENSORS * (len(id) + _ENTRY_BYTES) for id in ids)
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
        T = record.mel.shape[1]
        self.rows.append(
            IndexRow(
                id=record.id,
                speaker=record.speaker,
                shard=self._name,
                frames=T,
                phones=len(record.phones) if isinstance(record, Features) else 0,
                seconds=T * self._mel.hop_length / self._mel.sample_rate,
                crc32=checksum(tensors),
                start=record.start,
                timed=isinstance(record, MelWav) or record.durations is not None,
                mixed="word_phones" in tensors,
            )
        )

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
    """Whether a shard is readable and as long as its header states; tensors are not read."""
    try:
        with safe_open(path, framework="numpy"):
            return True
    except (OSError, SafetensorError):
        return False


def tensors_of(record: Features | MelWav) -> dict[str, np.ndarray]:
    """The stored tensors of an utterance, by name, in the order in which they are written.

    Phone names are one text tensor of bytes (UTF-8, separated by spaces), since safetensors holds
    numbers only. So are the phones of words, a line for each: word, start, end, phones.
    """
    if isinstance(record, MelWav):
        tensors = {"mel": record.mel.astype("<f4"), "wav": record.wav.astype("<i2")}
    else:
        tensors = {"phones": _text(" ".join(record.phones))}
        if record.word_phones:
            lines = (" ".join([*map(str, w[:3]), *w.phones]) for w in record.word_phones)
            tensors["word_phones"] = _text("\n".join(lines))
        if record.durations is not None:
            tensors["durations"] = record.durations.astype("<i8")
        for name in ("mel", "f0", "energy"):
            tensors[name] = getattr(record, name).astype("<f4")
    # safetensors holds memory as it lies: a transposed view would be stored wrongly
    return {name: np.ascontiguousarray(value) for name, value in tensors.items()}


def _text(text: str) -> np.ndarray:
    return np.frombuffer(text.encode(), dtype=np.uint8)


def checksum(tensors: Mapping[str, np.ndarray]) -> int:
    """CRC-32 of tensors in their order."""
    value = 0
    for tensor in tensors.values():
        value = zlib.crc32(tensor.data, value)
    return value
