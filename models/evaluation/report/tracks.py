"""Tracks of the page: sound, picture of the mel, phones and pitch, of each system by utterance.

Sounds are FLAC, in which browsers can seek; mels are small PNG pictures.
"""

import functools
import io
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soundfile
import soxr
import torch

from models.plots import colour_limits
from modules.mel import MelConfig, MelSpectrogram
from processors.audio.frames import to_pcm16
from processors.audio.pitch import extract_f0
from processors.metrics.utterance_scorer import EvaluatedUtterance, Waveform, read_waveform
from processors.records import TimedPhone

RECORDING = ""  # the system of the recording; others have names
_INFO = slice(4, 42)  # the first block of FLAC metadata, STREAMINFO: 4 bytes of header and 34 more
_LAST = 0x80  # in the first byte of a header: no other block follows
_SEEK_TABLE = 3  # kind of block
_COLOURS = 64  # with 256 the files are half as large again, and look the same


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


def write_tracks(
    key: str, items: Sequence[EvaluatedUtterance], folder: Path, mel: MelConfig
) -> list[Track]:
    """Writes the files of one utterance: the work of one process (`utils.parallel`).

    Args:
        key: Stem of the file names: `<key>-0.flac` and so on. Never made of a text or an id.
        mel: Definition of the pictures; sounds of other rates are resampled for them.
    """
    (item,) = items
    sounds: list[tuple[str, Waveform, tuple[TimedPhone, ...]]] = []
    if item.recorded is not None:
        phones = item.phones() if item.phones is not None else ()
        sounds.append((RECORDING, Waveform(item.recorded(), mel.sample_rate), phones))
    sounds += ((s, read_waveform(file.file), file.phones) for s, file in item.spoken.items())
    analyses = [_analyse(waveform, mel) for _, waveform, _ in sounds]
    low, high = colour_limits([log_mel for log_mel, _ in analyses])
    tracks = []
    for n, ((system, (wav, rate), phones), (log_mel, f0)) in enumerate(
        zip(sounds, analyses, strict=True)
    ):
        audio, picture = f"{key}-{n}.flac", f"{key}-{n}.png"
        write_flac(folder / audio, wav, rate)
        write_mel_picture(folder / picture, log_mel, low, high)
        picture_s = round(log_mel.shape[1] * mel.hop_length / mel.sample_rate, 4)
        timed = [(p.name, round(p.start_s, 3), round(p.end_s, 3)) for p in phones]
        seconds = round(len(wav) / rate, 3)
        tracks.append(Track(system, seconds, picture_s, audio, picture, timed, f0))
    return tracks


def _analyse(sound: Waveform, mel: MelConfig) -> tuple[np.ndarray, np.ndarray]:
    """Log-mel (M, T) and f0 (T,) of a sound, as they are drawn."""
    wav = sound.wav
    if sound.sample_rate != mel.sample_rate:
        wav = soxr.resample(wav, sound.sample_rate, mel.sample_rate)  # another (S,)
    wav = np.pad(wav, (0, max(mel.n_fft - len(wav), 0)))  # shorter sounds have a picture, too
    with torch.inference_mode():
        log_mel = _spectrogram(mel)(torch.from_numpy(wav)[None])[0].numpy()  # (M, T)
    return log_mel, extract_f0(wav, mel, log_mel.shape[1])


@functools.lru_cache(maxsize=1)
def _spectrogram(mel: MelConfig) -> MelSpectrogram:
    return MelSpectrogram(mel)


def write_flac(path: Path, wav: np.ndarray, sample_rate: int) -> None:
    """Writes mono audio, (S,) clipped to [-1, 1], as FLAC of 16 bits with a seek table (RFC 9639).

    libsndfile writes no seek table, and without one Chromium cannot seek in sounds of a few frames
    ("demuxer seek failed") and falls silent. An entry for the start is enough.
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
