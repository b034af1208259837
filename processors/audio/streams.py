"""Where a wav goes that comes in pieces: a file, a stream that cannot be rewound, a sound device.

The packages of audio are imported when they are needed: synthesis starts without them.
"""

import io
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from utils.files import replacing


class Format(NamedTuple):
    """How libsndfile writes a format, and its name in HTTP."""

    container: str
    subtype: str
    media_type: str
    rates: tuple[int, ...] = ()  # Hz; empty: any
    # "CONSTANT": readers estimate the length of a stream from its first frame
    bitrate_mode: str | None = None
    compression_level: float | None = None  # from 0 to 1


_OPUS_RATES = (8000, 12000, 16000, 24000, 48000)
FORMATS = {
    "wav": Format("WAV", "PCM_16", "audio/wav"),
    "flac": Format("FLAC", "PCM_16", "audio/flac"),
    "mp3": Format("MP3", "MPEG_LAYER_III", "audio/mpeg", (), "CONSTANT", 0.5),
    "opus": Format("OGG", "OPUS", "audio/ogg", _OPUS_RATES),
    "ogg": Format("OGG", "VORBIS", "audio/ogg"),
    "pcm": Format("RAW", "PCM_16", "audio/pcm", (24000,)),  # the rate that OpenAI's clients expect
}
_OGG_SERIAL = slice(14, 18)  # in the header of a page
_OGG_CRC = slice(22, 26)


def write_audio(path: Path, pieces: Iterable[np.ndarray], sample_rate: int) -> None:
    """Writes pieces (n,) in [-1, 1] atomically, in the format of the suffix, one of `FORMATS`.

    The same wav gives the same bytes.
    """
    format = path.suffix[1:].lower()
    with replacing(path) as temporary, temporary.open("wb+") as file:
        if FORMATS[format].container == "OGG":
            file.writelines(encoded(pieces, format, sample_rate))
        else:
            for _ in _write(file, pieces, format, sample_rate):
                pass


def encoded(pieces: Iterable[np.ndarray], format: str, sample_rate: int) -> Iterator[bytes]:
    """Yields the bytes of a file, as far as they are known after each piece (n,): possibly none.

    The header of a WAV gives no length, since that comes too late. FLAC comes at the end, since
    libsndfile cannot read it without a length. The same wav gives the same bytes.
    """
    sink = _Stream()
    for _ in _write(sink, pieces, format, sample_rate):
        at_start = sink.taken == 0
        data = b"" if format == "flac" else sink.take()
        if format == "wav" and at_start:
            data = data[:4] + b"\xff" * 4 + data[8:40] + b"\xff" * 4 + data[44:]
        yield _with_fixed_serial(data) if FORMATS[format].container == "OGG" else data
    yield sink.take()


def can_play() -> bool:
    """Returns whether this machine has a sound device for output."""
    try:
        import sounddevice  # which looks for PortAudio

        sounddevice.query_devices(kind="output")
    except (ImportError, OSError):
        return False
    except sounddevice.PortAudioError:  # there is no device
        return False
    return True


def play(pieces: Iterable[np.ndarray], sample_rate: int) -> None:
    """Plays a wav piece by piece, (n,) float32 in [-1, 1] each, and returns at its end."""
    import sounddevice

    with sounddevice.OutputStream(sample_rate, channels=1, dtype="float32") as stream:
        for piece in pieces:
            stream.write(piece[:, None])


def _write(
    file: "BinaryIO | _Stream", pieces: Iterable[np.ndarray], format: str, sample_rate: int
) -> Iterator[None]:
    """Writes pieces, and yields after each and after the end."""
    import soundfile

    chosen, rate = FORMATS[format], sample_rate
    if chosen.rates and rate not in chosen.rates:
        rate = next((higher for higher in chosen.rates if higher > rate), chosen.rates[-1])
    resampler = None
    if rate != sample_rate:
        import soxr

        resampler = soxr.ResampleStream(sample_rate, rate, 1)
    with soundfile.SoundFile(
        file,
        "w",
        rate,
        channels=1,
        subtype=chosen.subtype,
        endian="LITTLE" if format == "pcm" else None,
        format=chosen.container,
        compression_level=chosen.compression_level,
        bitrate_mode=chosen.bitrate_mode,
    ) as sound:
        for piece in pieces:
            sound.write(piece if resampler is None else resampler.resample_chunk(piece))
            yield
        if resampler is not None:
            sound.write(resampler.resample_chunk(np.zeros(0, dtype=np.float32), last=True))
    yield


class _Stream(io.RawIOBase):
    """Takes what is written and gives it away; later corrections of that are dropped."""

    def __init__(self) -> None:
        self.position = 0
        self.taken = 0  # bytes
        self._held = bytearray()

    def take(self) -> bytes:
        """Returns what was written since the last call."""
        data = bytes(self._held)
        self.taken += len(data)
        self._held.clear()
        return data

    def write(self, data: object) -> int:
        block = bytes(data)  # type: ignore[call-overload]  # a buffer
        start = self.position - self.taken
        if start >= 0:
            self._held[start : start + len(block)] = block
        self.position += len(block)
        return len(block)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self.position}
        self.position = base.get(whence, self.taken + len(self._held)) + offset
        return self.position

    def tell(self) -> int:
        return self.position

    def readinto(self, _buffer: object) -> int:
        return 0


def _with_fixed_serial(pages: bytes) -> bytes:
    """Gives Ogg pages the serial number 0 for libsndfile's random one (RFC 3533, section 6)."""
    fixed, start = bytearray(pages), 0
    while start < len(fixed):
        n_segments = fixed[start + 26]
        end = start + 27 + n_segments + sum(fixed[start + 27 : start + 27 + n_segments])
        page = fixed[start:end]
        page[_OGG_SERIAL] = page[_OGG_CRC] = bytes(4)
        page[_OGG_CRC] = _ogg_crc(page).to_bytes(4, "little")
        fixed[start:end] = page
        start = end
    return bytes(fixed)


_MIRRORED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


def _ogg_crc(page: bytes | bytearray) -> int:
    """Computes RFC 3533's checksum: zlib's of mirrored bytes, mirrored, without inversions."""
    crc = zlib.crc32(page.translate(_MIRRORED), 0xFFFFFFFF) ^ 0xFFFFFFFF
    return int(f"{crc:032b}"[::-1], 2)
