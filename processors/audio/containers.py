"""Checks that libsndfile lacks: the length in a header of WAV or Ogg, and the checksum of FLAC.

libsndfile reads what is left of a file that was cut, and leaves out audio that the header of a WAV
or FLAC does not count.
"""

import hashlib
import re
import struct
from functools import partial
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from utils.errors import UtteranceError

# A program that writes to a pipe cannot go back to the header: it says 0xFFFFFFFF, or about 2 GB.
_STREAMED = 0x7FFF0000
_STRAY_SHARE = 0.01  # of the audio: tags after the last chunk
_LAST_PAGE = 4  # flag in the header of an Ogg page
_HEADER = struct.Struct("<4sI")  # of a chunk of WAV: name and length


class _Chunk(NamedTuple):
    name: bytes
    start: int  # offset of the content
    end: int  # offset after the content, without padding


def check_length(path: Path) -> bool:
    """Compares the length in the header of a WAV, RF64 or Ogg file with the file.

    Other chunks, zeros, and up to 1 % of anything may follow the audio.

    Returns:
        False if the header gives no length, since the file was written to a pipe.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(12)
        if head.startswith(b"OggS"):
            _check_pages(file, size)
        is_wav = re.match(rb"(RIFF|RF64)....WAVE", head, re.DOTALL)
        if is_wav and (audio := _audio_chunk(file, size)):
            return _check_chunks(file, size, audio)
    return True


def _audio_chunk(file: BinaryIO, size: int) -> _Chunk | None:
    """The chunk of samples, which may end beyond the file."""
    offset, long_length = 12, 0
    while offset < size and (chunk := _chunk_at(file, offset)):
        if chunk.name == b"data":
            is_long = long_length and chunk.end - chunk.start == 0xFFFFFFFF
            return chunk._replace(end=chunk.start + long_length) if is_long else chunk
        if chunk.name == b"ds64":  # RF64: the lengths of the file and of the audio in 64 bits
            _, long_length = struct.unpack("<QQ", file.read(16).ljust(16, b"\0"))
        offset = chunk.end + chunk.end % 2
    return None


def _chunk_at(file: BinaryIO, offset: int) -> _Chunk | None:
    file.seek(offset)
    header = file.read(_HEADER.size)
    if len(header) < _HEADER.size:
        return None
    name, length = _HEADER.unpack(header)
    start = offset + len(header)
    return _Chunk(name, start, start + length)


def _check_chunks(file: BinaryIO, size: int, audio: _Chunk) -> bool:
    promised = audio.end - audio.start
    if audio.end > size:
        if promised >= _STREAMED:
            return False
        raise UtteranceError(
            f"cut short: the header promises {promised} bytes of audio, the file holds"
            f" {size - audio.start}; copy it again"
        )
    n_stray = _stray_bytes(file, size, _end_of_chunks(file, size, audio.end))
    if n_stray > _STRAY_SHARE * promised:
        raise UtteranceError(
            f"the header promises {promised} bytes of audio, and {n_stray} that it does not count"
            " follow; export the file again, or repair its header (sox --ignore-length)"
        )
    return True


def _end_of_chunks(file: BinaryIO, size: int, end: int) -> int:
    """The end of the whole chunks that follow the audio."""
    while True:
        # some programs do not align what follows a chunk of odd length
        for offset in (end + end % 2, end):
            chunk = _chunk_at(file, offset)
            if chunk and re.fullmatch(rb"[ -~]{4}", chunk.name) and chunk.end <= size:
                end = chunk.end
                break
        else:
            return end


def _stray_bytes(file: BinaryIO, size: int, end: int) -> int:
    """Bytes from here to the end of the file; 0 if all of them are zeros."""
    file.seek(end)
    blocks = iter(partial(file.read, 1 << 20), b"")
    return size - end if any(block.strip(b"\0") for block in blocks) else 0


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
    if (n_stray := _stray_bytes(file, size, end)) > _STRAY_SHARE * end:
        raise UtteranceError(
            f"its last Ogg page ends at byte {end}, and {n_stray} other bytes follow; export the"
            " file again"
        )


def check_samples(path: Path, samples: np.ndarray, n_promised: int) -> None:
    """Compares samples (S, C) with their number in the header, and those of FLAC with its MD5."""
    if len(samples) < (1 - _STRAY_SHARE) * n_promised:
        raise UtteranceError(
            f"cut short: the header promises {n_promised} samples, the file holds {len(samples)};"
            " copy it again"
        )
    with path.open("rb") as file:
        header = file.read(42)  # the block STREAMINFO comes first
    checksum = header[26:]
    if not header.startswith(b"fLaC") or not any(checksum):  # encoders may leave it out
        return
    bits = (header[20] & 1) << 4 | header[21] >> 4  # less one
    steps = (samples * np.float32(2**bits)).astype("<i4")  # (S, C), exact up to 24 bits
    content = steps.view(np.uint8).reshape(-1, 4)[:, : bits // 8 + 1]
    if hashlib.md5(content.tobytes(), usedforsecurity=False).digest() != checksum:
        raise UtteranceError(
            f"its {len(samples)} samples are not those that its checksum was made of (flac --test"
            " shows why): the header gives another length, or the audio is damaged; copy it again"
        )
