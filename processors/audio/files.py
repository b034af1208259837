"""Reading and writing audio files, with checks that libsndfile lacks.

libsndfile reads truncated files silently, passes NaN on, and writes NaN as a full-scale click.
"""

import os
import re
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
import soundfile
import soxr

from config.preprocess import PreprocessConfig
from processors.audio.frames import to_pcm16
from processors.audio.streams import write_audio
from utils.errors import UtteranceError

_SILENT_PEAK = 1e-4  # -80 dBFS: three steps of 16 bits
_FULL_SCALE = 0.99  # the highest value of 8-bit audio is 0.992
_CLIPPED_SHARE = 0.01  # of all samples
_WHOLE_SHARE = 0.99  # of the samples that a header promises
_UNKNOWN_FRAMES = 2**63 - 1  # of libsndfile, where the header gives no length
# A program that writes to a pipe cannot go back to the header: it says 0xFFFFFFFF, or about 2 GB.
_STREAMED = 0x7FFF0000
# first bytes of AIFF, AU, long or big-endian WAV, W64 and CAF
_CHUNKED = {b"FORM", b".snd", b"dns.", b"RF64", b"RIFX", b"riff", b"caff"}
_PADDING = 64  # bytes by which programs get the length of a whole file wrong
# lengths in the log of libsndfile, of the header and of the file
_CORRECTED = re.compile(r": (\d+) \(should be (\d+)\)")
_RF64_FRAMES = re.compile(r"frame count (\d+) does not match value from 'ds64' chunk of (\d+)")
_HEADER = struct.Struct("<4sI")  # of a chunk of WAV: name and length


class AudioError(UtteranceError):
    """An audio file cannot be used; the message gives the reason and the remedy."""


class Audio(NamedTuple):
    """A recording after conversion."""

    wav: np.ndarray  # (S,) float32 in [-1, 1], mono, at the configured rate
    notices: tuple[str, ...]  # changes and suspicious properties, one line each


def read_audio(path: Path, config: PreprocessConfig) -> Audio:
    """Reads a recording of any format, sample rate and number of channels of libsndfile.

    Returns:
        Mono audio at `config.sample_rate`; channels are averaged, other rates resampled (soxr HQ).

    Raises:
        AudioError: If the file is missing, damaged, cut short, empty, silent, too short or too
            long, holds NaN, exceeds [-1, 1], or has channels that cancel out.
    """
    try:
        notices: list[str] = []
        samples, rate = _read_samples(path, config, notices)
        wav = _to_mono(_check_level(samples, config, notices), notices)
        wav = _to_rate(wav, rate, config, notices)
        if (n := len(wav)) < config.n_fft:
            raise AudioError(f"{n} samples are fewer than one analysis window ({config.n_fft})")
    except soundfile.LibsndfileError as error:
        fault = f"{path.name}: not readable as audio ({error.error_string})"
        raise AudioError(f"{fault}; copy or export it again") from error
    except OSError as error:
        raise AudioError(f"{path.name}: cannot be opened: {error.strerror}") from error
    except UtteranceError as error:
        raise AudioError(f"{path.name}: {error}") from error
    return Audio(wav, tuple(notices))


def _read_samples(
    path: Path, config: PreprocessConfig, notices: list[str]
) -> tuple[np.ndarray, int]:
    """Returns all samples (S, C) float32 and their rate; too long a file is not read."""
    if path.stat().st_size == 0:
        raise AudioError("the file is empty (0 bytes); copy or record it again")
    if not check_length(path):
        notices.append("its header gives no length: read to the end of the file")
    info = soundfile.info(path)
    if info.frames == 0:
        raise AudioError("the file holds a header and 0 samples; record or convert it again")
    if info.frames == _UNKNOWN_FRAMES:
        raise AudioError("the header gives no length; convert the file to WAV")
    seconds, least, most = info.frames / info.samplerate, config.min_seconds, config.max_seconds
    if seconds < least:
        raise AudioError(f"{seconds:.3f} s is too short (preprocess.min_seconds is {least:g})")
    if seconds > most:
        fault = f"{seconds:.1f} s is too long (preprocess.max_seconds is {most:g})"
        raise AudioError(f"{fault}; cut it into sentences")
    samples, rate = soundfile.read(path, dtype="float32", always_2d=True)  # (S, C)
    if len(samples) < _WHOLE_SHARE * info.frames:  # of MP3, an estimate
        raise _cut_short(f"{info.frames} samples", len(samples))
    return samples, rate


def _cut_short(promised: str, n_held: int) -> AudioError:
    fault = f"the header promises {promised}, the file holds {n_held}"
    return AudioError(f"cut short: {fault}; copy it again")


def _check_level(samples: np.ndarray, config: PreprocessConfig, notices: list[str]) -> np.ndarray:
    """Returns samples (S, C) within [-1, 1]."""
    finite = np.isfinite(samples).all(axis=1)
    if not finite.all():
        fault = f"{np.count_nonzero(~finite)} samples are NaN or infinite"
        raise AudioError(f"{fault}, the first is number {np.argmin(finite)}; export the file again")
    # no absolute values: they would copy a long recording
    peak = max(float(samples.max()), -float(samples.min()))
    if peak > 1:
        if not config.rescale:
            remedy = "lower the level, or set preprocess.rescale to scale such files down"
            raise AudioError(f"the peak is {peak:.3g}, beyond full scale (1.0); {remedy}")
        notices.append(f"peak {peak:.3g} scaled down to 1.0")
        return samples / peak
    clipped = np.count_nonzero((samples >= _FULL_SCALE) | (samples <= -_FULL_SCALE)) / samples.size
    if clipped > _CLIPPED_SHARE:
        notices.append(f"{100 * clipped:.1f} % of the samples are clipped")
    return samples


def _to_mono(samples: np.ndarray, notices: list[str]) -> np.ndarray:
    """Returns the mean of the channels, (S, C) to (S,)."""
    n_channels = samples.shape[1]
    wav = samples.mean(axis=1)  # (S,)
    loudest = max(channel.std() for channel in samples.T)
    if samples.max() - samples.min() < _SILENT_PEAK or loudest == 0:
        raise AudioError("the recording is silent; record it again")
    if n_channels > 1:
        # One channel alone leaves 1 / C of its level; much less means that channels cancel out.
        if wav.std() < 0.2 * loudest / n_channels:
            fault = "the channels cancel each other out (one is inverted)"
            raise AudioError(f"{fault}; export one of them as mono")
        notices.append(f"{n_channels} channels averaged to mono")
    return wav


def _to_rate(
    wav: np.ndarray, rate: int, config: PreprocessConfig, notices: list[str]
) -> np.ndarray:
    """Resamples to the configured rate."""
    if rate == config.sample_rate:
        return wav
    if config.strict_sample_rate:
        fault = f"the rate is {rate} Hz, expected {config.sample_rate} Hz"
        raise AudioError(f"{fault}; resample the file, or unset preprocess.strict_sample_rate")
    missing = f"; nothing above {rate // 2} Hz" if rate < config.sample_rate else ""
    notices.append(f"resampled from {rate} to {config.sample_rate} Hz{missing}")
    wav = soxr.resample(wav, rate, config.sample_rate, quality="HQ")  # another (S,)
    # Between samples the signal may exceed full scale; resampling shows it.
    peak = float(np.abs(wav).max())
    if peak > 1:
        notices.append("level lowered, for the resampled signal goes beyond full scale")
        wav = wav / peak
    return wav


def write_wav(path: Path, wav: np.ndarray, sample_rate: int, tag: str = "") -> float:
    """Writes mono audio (S,) as 16-bit WAV, atomically; scaled down, not clipped, beyond [-1, 1].

    Args:
        tag: Text for the metadata of the file, as in `write_audio`.

    Returns:
        Gain that was applied: 1.0 unless the peak exceeds 1.
    """
    with np.errstate(invalid="ignore"):  # of a signalling NaN, which is refused below
        wav = np.asarray(wav, dtype=np.float64)
    if wav.ndim != 1 or wav.size == 0:
        raise AudioError(f"{path.name}: expected mono audio of shape (S,), found {wav.shape}")
    if not np.isfinite(wav).all():
        raise AudioError(f"{path.name}: not written, the audio holds NaN or infinity")
    gain = 1 / max(1.0, float(np.abs(wav).max()))
    write_audio(path, [to_pcm16(wav * gain)], sample_rate, tag)
    return gain


def write_wav_blocks(
    path: Path, blocks: Iterable[np.ndarray], sample_rate: int, tag: str = ""
) -> int:
    """Writes a 16-bit WAV atomically from mono blocks, and returns the number of samples.

    Samples are clipped to [-1, 1].

    Args:
        tag: Text for the metadata of the file, as in `write_audio`.
    """
    # the peak of all blocks is not known in time to scale them
    write_audio(path, (to_pcm16(np.clip(block, -1, 1)) for block in blocks), sample_rate, tag)
    return soundfile.info(path).frames


def check_length(path: Path) -> bool:
    """Compares the length of the audio in the header of a file with the file.

    Returns:
        False if the header gives no length, since the file was written to a pipe.
    """
    with path.open("rb") as file:
        audio = _audio_chunk(file)
        file.seek(0)
        is_chunked = file.read(4) in _CHUNKED
    if audio is None:
        return not is_chunked or _check_logged_length(path)
    size = path.stat().st_size
    if audio.stop <= size:
        return True
    if len(audio) >= _STREAMED:
        return False
    raise _cut_short(f"{len(audio)} bytes of audio", size - audio.start)


def _check_logged_length(path: Path) -> bool:
    """Compares the lengths in the header with those that libsndfile found, by its log."""
    log = soundfile.info(path, verbose=True).extra_info
    lengths = [*_CORRECTED.findall(log), *(pair[::-1] for pair in _RF64_FRAMES.findall(log))]
    for declared, actual in (map(int, pair) for pair in lengths):
        if declared >= _STREAMED:
            return False
        if declared - actual > _PADDING:
            raise _cut_short(f"{declared} bytes or samples", actual)
    return True


def _audio_chunk(file: BinaryIO) -> range | None:
    """Finds the bytes of samples, which may end beyond the file; None if it is no WAV file."""
    if not re.match(rb"RIFF....WAVE", file.read(12), re.DOTALL):
        return None
    while len(header := file.read(_HEADER.size)) == _HEADER.size:
        name, length = _HEADER.unpack(header)
        if name == b"data":
            return range(file.tell(), file.tell() + length)
        file.seek(length + length % 2, os.SEEK_CUR)
    return None
