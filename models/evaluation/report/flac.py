"""Sounds as FLAC files in which browsers can seek."""

import io
import struct
from pathlib import Path

import numpy as np
import soundfile

from processors.audio.pcm import to_pcm16

_INFO = slice(4, 42)  # the first block of metadata, STREAMINFO: 4 bytes of header and 34 of content
_LAST = 0x80  # in the first byte of a header: no other block follows
_SEEK_TABLE = 3  # kind of block


def write_flac(path: Path, wav: np.ndarray, sample_rate: int) -> None:
    """Writes a FLAC file of 16 bits (RFC 9639).

    libsndfile writes no table of places to seek to, and without one Chromium cannot seek in sounds
    of a few frames (it says "demuxer seek failed" and falls silent). The start alone is enough.

    Args:
        path: File to write.
        wav: Mono audio, (S,) floats; what is beyond [-1, 1] is cut off there.
        sample_rate: Hz.
    """
    buffer = io.BytesIO()
    soundfile.write(buffer, to_pcm16(np.clip(wav, -1, 1)), sample_rate, "PCM_16", format="FLAC")
    content = buffer.getvalue()
    kind, info = content[_INFO.start], content[_INFO.start + 1 : _INFO.stop]
    first_frame = struct.pack(">QQ2s", 0, 0, info[3:5])  # sample, byte, largest block
    table = bytes([_SEEK_TABLE | kind & _LAST]) + len(first_frame).to_bytes(3, "big") + first_frame
    head = content[: _INFO.start] + bytes([kind & ~_LAST]) + info
    path.write_bytes(head + table + content[_INFO.stop :])
