"""Tracks of the page: sound, picture of the mel, phones and pitch, of each system by utterance.

Sounds are FLAC, in which browsers can seek; mels are small PNG pictures.
"""

import functools
import io
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import soundfile
import soxr
import torch

from models.plots import colour_limits
from modules.mel import MelConfig, MelSpectrogram
from processors.audio.pcm import to_pcm16
from processors.audio.pitch import extract_f0
from processors.metrics.signals.dtw import dtw_path
from processors.metrics.utterance_scorer import EvaluatedUtterance, Waveform, read_waveform
from processors.records import TimedPhone

RECORDING = ""  # the system of the recording; others have names
_INFO = slice(4, 42)  # the first block of FLAC metadata, STREAMINFO: 4 bytes of header and 34 more
_LAST = 0x80  # in the first byte of a header: no other block follows
_SEEK_TABLE = 3  # kind of block
_COLOURS = 64  # with 256 the files are half as large again, and look the same
_CEPSTRA = 13  # coefficients of the mel: its spectral envelope, without the level


@dataclass(frozen=True)
class Track:
    """One sound of an utterance."""

    system: str  # RECORDING for the recording
    seconds: float
    picture_s: float  # of the picture; less than a window from the length of the sound
    audio: str  # name of the FLAC file
    picture: str  # name of the PNG file
    phones: list[tuple[str, float, float]]  # names with start and end in seconds; may be none
    f0: np.ndarray  # Hz by frame of the mel, 0 where unvoiced, (T,)
    # the same on the frames of the recording, by dynamic time warping; None of the recording
    # itself, of copies, and without a recording
    warped: np.ndarray | None


class _Source(NamedTuple):
    """A sound to be shown."""

    system: str
    sound: Waveform
    phones: tuple[TimedPhone, ...]
    is_copy: bool  # of the recording, or that itself


class _Analysis(NamedTuple):
    """Mel and f0 of a sound, as they are drawn."""

    mel: np.ndarray  # (M, T)
    f0: np.ndarray  # (T,) Hz


def write_tracks(
    key: str, items: Sequence[EvaluatedUtterance], folder: Path, mel: MelConfig
) -> list[list[Track]]:
    """Writes the files of utterances: the work of one process (`utils.parallel`).

    Args:
        key: Stem of the file names: `<key>-0.flac` and so on. Never made of a text or an id.
        folder: Where the files go.
        mel: Definition of the pictures; sounds of other rates are resampled for them.

    Raises:
        InputError: If a sound cannot be read.
    """
    return [_write(key, item, folder, mel) for item in items]


def _write(key: str, item: EvaluatedUtterance, folder: Path, mel: MelConfig) -> list[Track]:
    sources = _sources_of(item, mel)
    analyses = [_analyse(source.sound, mel) for source in sources]
    low, high = colour_limits([analysis.mel for analysis in analyses])
    tracks = []
    for n, (source, analysis) in enumerate(zip(sources, analyses, strict=True)):
        audio, picture = f"{key}-{n}.flac", f"{key}-{n}.png"
        wav, sample_rate = source.sound
        write_flac(folder / audio, wav, sample_rate)
        write_mel_picture(folder / picture, analysis.mel, low, high)
        other_time = item.recorded is not None and not source.is_copy
        tracks.append(
            Track(
                system=source.system,
                seconds=round(len(wav) / sample_rate, 3),
                picture_s=round(analysis.mel.shape[1] * mel.hop_length / mel.sample_rate, 4),
                audio=audio,
                picture=picture,
                phones=[(p.name, round(p.start_s, 3), round(p.end_s, 3)) for p in source.phones],
                f0=analysis.f0,
                warped=_warped_f0(analyses[0], analysis) if other_time else None,
            )
        )
    return tracks


def _sources_of(item: EvaluatedUtterance, mel: MelConfig) -> list[_Source]:
    """The recording, if there is one, and the file of each system."""
    sources = []
    if item.recorded is not None:
        phones = item.phones() if item.phones is not None else ()
        sources.append(_Source(RECORDING, Waveform(item.recorded(), mel.sample_rate), phones, True))
    for system, spoken in item.spoken.items():
        sources.append(_Source(system, read_waveform(spoken.file), spoken.phones, spoken.is_copy))
    return sources


def _analyse(sound: Waveform, mel: MelConfig) -> _Analysis:
    wav = sound.wav
    if sound.sample_rate != mel.sample_rate:
        wav = soxr.resample(wav, sound.sample_rate, mel.sample_rate)  # another (S,)
    wav = np.pad(wav, (0, max(mel.n_fft - len(wav), 0)))  # shorter sounds have a picture, too
    with torch.inference_mode():
        picture = _spectrogram(mel)(torch.from_numpy(wav)[None])[0].numpy()  # (M, T)
    return _Analysis(picture, extract_f0(wav, mel, picture.shape[1]))


@functools.lru_cache(maxsize=1)
def _spectrogram(mel: MelConfig) -> MelSpectrogram:
    return MelSpectrogram(mel)


def _warped_f0(recorded: _Analysis, spoken: _Analysis) -> np.ndarray:
    """The f0 of an utterance on the frames of its recording, (T,), by dynamic time warping."""
    path = dtw_path(_cepstra(recorded.mel), _cepstra(spoken.mel))  # (L, 2)
    matching = np.zeros(recorded.mel.shape[1], dtype=int)
    matching[path[:, 0]] = path[:, 1]
    return spoken.f0[matching]


def _cepstra(mel: np.ndarray) -> np.ndarray:
    """A cosine transform of each frame, (M, T) to (T, 12), without the mean over time."""
    M = len(mel)
    order = np.arange(1, _CEPSTRA)[:, None]
    cosines = np.cos(np.pi * order * (np.arange(M) + 0.5) / M)  # (12, M)
    cepstra = (cosines @ mel).T  # (T, 12)
    return cepstra - cepstra.mean(axis=0)


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
    """Writes a mel as a PNG, a pixel per band and frame, lowest band at the bottom.

    Args:
        path: File to write.
        mel: Log-mel, (M, T), at least one of each.
        low: Level of black.
        high: Level of the brightest colour.
    """
    from matplotlib import colormaps
    from PIL import Image

    level = ((mel - low) / (high - low)).clip(0, 1)
    pixels = np.rint(level * (_COLOURS - 1)).astype(np.uint8)[::-1]  # (M, T), highest band first
    colours = np.rint(255 * colormaps["magma"](np.linspace(0, 1, _COLOURS))[:, :3])  # (C, 3)
    picture = Image.fromarray(np.ascontiguousarray(pixels))
    picture.putpalette(colours.astype(np.uint8).tobytes())
    picture.save(path, format="PNG", optimize=True)
