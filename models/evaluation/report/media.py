"""Sounds of the page as FLAC, in which browsers can seek, and mels as small PNG pictures."""

import io
import struct
import zlib
from pathlib import Path

import numpy as np
import soundfile

from processors.audio.pcm import to_pcm16

_INFO = slice(4, 42)  # the first block of FLAC metadata, STREAMINFO: 4 bytes of header and 34 more
_LAST = 0x80  # in the first byte of a header: no other block follows
_SEEK_TABLE = 3  # kind of block
# matplotlib's "magma" at every sixteenth (van der Walt and Smith 2015, CC0): its brightness grows
# evenly, so that colour-blind readers see the same levels
_MAGMA = (
    "000004 0a0822 1d1147 36106b 51127c 6a1c81 832681 9c2e7f b73779 d0416f e75263 f56b5c fc8961"
    " fea772 fec488 fde2a3 fcfdbf"
)
_COLOURS = 64  # with 256 the files are half as large again, and look the same
_INDEXED = 3  # PNG's colour type
_UP = b"\2"  # PNG's filter: each byte minus the one above; a fifth smaller here than without


def write_flac(path: Path, wav: np.ndarray, sample_rate: int) -> None:
    """Writes a FLAC file of 16 bits with a seek table (RFC 9639).

    libsndfile writes no seek table, and without one Chromium cannot seek in sounds of a few frames
    ("demuxer seek failed") and falls silent. An entry for the start is enough.

    Args:
        path: File to write.
        wav: Mono audio, (S,) floats; clipped to [-1, 1].
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


def write_mel_picture(path: Path, mel: np.ndarray, low: float, high: float) -> None:
    """Writes a mel as a PNG (ISO/IEC 15948), a pixel per band and frame, lowest band at the bottom.

    Args:
        path: File to write.
        mel: Log-mel, (M, T), at least one of each.
        low: Level of black.
        high: Level of the brightest colour.

    Raises:
        ValueError: If the shape is another, or not low < high.
    """
    if mel.ndim != 2 or 0 in mel.shape or not low < high:
        raise ValueError(f"mel {mel.shape} from {low} to {high}: expected (M, T) and low < high")
    M, T = mel.shape
    level = ((mel - low) / (high - low)).clip(0, 1)
    pixels = np.rint(level * (_COLOURS - 1)).astype(np.uint8)[::-1]  # (M, T), highest band first
    above = np.vstack([np.zeros_like(pixels[:1]), pixels[:-1]])
    rows = b"".join(_UP + row.tobytes() for row in pixels - above)  # modulo 256, as PNG wants
    header = struct.pack(">IIBBBBB", T, M, 8, _INDEXED, 0, 0, 0)
    chunks = {b"IHDR": header, b"PLTE": _palette(), b"IDAT": zlib.compress(rows, 9), b"IEND": b""}
    packed = b"".join(_chunk(name, content) for name, content in chunks.items())
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + packed)


def _chunk(name: bytes, content: bytes) -> bytes:
    checksum = zlib.crc32(name + content)
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", checksum)


def _palette() -> bytes:
    """Red, green and blue of each colour."""
    anchors = np.array([list(bytes.fromhex(colour)) for colour in _MAGMA.split()])  # (17, 3)
    positions = np.linspace(0, len(anchors) - 1, _COLOURS)
    channels = [np.interp(positions, np.arange(len(anchors)), channel) for channel in anchors.T]
    return np.rint(np.stack(channels, axis=1)).astype(np.uint8).tobytes()
