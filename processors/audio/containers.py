"""Finds files that were cut short, of which libsndfile reads what is left."""

import re
import struct
from pathlib import Path
from typing import BinaryIO, NamedTuple

from utils.errors import UtteranceError

# A program that writes to a pipe cannot go back to the header: it says 0xFFFFFFFF, or about 2 GB.
_STREAMED = 0x7FFF0000
_LAST_PAGE = 4  # flag in the header of an Ogg page
_HEADER = struct.Struct("<4sI")  # of a chunk of WAV: name and length


class _Chunk(NamedTuple):
    start: int  # offset of the content
    end: int  # offset after the content, without padding


def check_length(path: Path) -> bool:
    """Compares the length in the header of a WAV, RF64 or Ogg file with the file.

    Returns:
        False if the header gives no length, since the file was written to a pipe.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(12)
        if head.startswith(b"OggS"):
            _check_pages(file, size)
        is_wav = re.match(rb"(RIFF|RF64)....WAVE", head, re.DOTALL)
        audio = _audio_chunk(file, size) if is_wav else None
    if audio is None or audio.end <= size:
        return True
    if (promised := audio.end - audio.start) >= _STREAMED:
        return False
    raise UtteranceError(
        f"cut short: the header promises {promised} bytes of audio, the file holds"
        f" {size - audio.start}; copy it again"
    )


def _audio_chunk(file: BinaryIO, size: int) -> _Chunk | None:
    """The chunk of samples, which may end beyond the file."""
    offset, long_length = 12, 0
    while offset < size:
        file.seek(offset)
        header = file.read(_HEADER.size)
        if len(header) < _HEADER.size:
            break
        name, length = _HEADER.unpack(header)
        start = offset + _HEADER.size
        if name == b"data":
            is_long = long_length and length == 0xFFFFFFFF
            return _Chunk(start, start + (long_length if is_long else length))
        if name == b"ds64":  # RF64: the lengths of the file and of the audio in 64 bits
            _, long_length = struct.unpack("<QQ", file.read(16).ljust(16, b"\0"))
        offset = start + length + length % 2
    return None


def _check_pages(file: BinaryIO, size: int) -> None:
    """Follows the pages of an Ogg file to the one that is marked as the last."""
    end, is_last = 0, False
    file.seek(0)
    while len(header := file.read(27)) == 27 and header.startswith(b"OggS"):
        is_last = bool(header[5] & _LAST_PAGE)
        end += 27 + header[26] + sum(file.read(header[26]))
        file.seek(end)
    if end > size or not is_last:
        mark = "" if is_last else " and is not marked as the last"
        raise UtteranceError(
            f"cut short: its last Ogg page ends at byte {end}{mark}, the file has {size} bytes;"
            " copy it again"
        )
