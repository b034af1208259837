"""What the page shows and plays of each utterance: sounds, pictures of mels, phones, pitch."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import soxr
import torch

from models.evaluation.report.flac import write_flac
from models.evaluation.report.pictures import contrast, write_mel_picture
from modules.mel import MelConfig, MelSpectrogram
from processors.audio.pitch import extract_f0
from processors.records import TimedPhone
from processors.scoring.dtw import dtw_path
from processors.scoring.utterance_scorer import EvaluatedUtterance, Waveform, read_waveform

RECORDING = ""  # the voice of the recording; systems have names
_CEPSTRA = 13  # of the mel: the shape of its spectrum, without the level and its fine structure


@dataclass(frozen=True)
class Track:
    """One sound of an utterance.

    Attributes:
        voice: The system's name; RECORDING for the recording.
        seconds: Its length.
        picture_s: What the picture spans; less than a window longer or shorter than the sound.
        audio: Name of the FLAC file.
        picture: Name of the PNG file.
        phones: Names with start and end in seconds; may be none.
        f0: Hz by frame of the mel, 0 where unvoiced, (T,).
        warped: The same on the frames of the recording, by the phones or sounds that match; None
            of the recording itself, of copies, and where there is no recording.
    """

    voice: str
    seconds: float
    picture_s: float
    audio: str
    picture: str
    phones: list[tuple[str, float, float]]
    f0: np.ndarray
    warped: np.ndarray | None


class Voice(NamedTuple):
    """A sound to be shown."""

    name: str
    sound: Waveform
    phones: tuple[TimedPhone, ...]
    follows: bool  # sample by sample the recording, or that itself


class Analysis(NamedTuple):
    """What is drawn of a sound."""

    mel: np.ndarray  # (M, T)
    f0: np.ndarray  # (T,) Hz


def write_tracks(
    key: str, items: Sequence[EvaluatedUtterance], folder: Path, mel: MelConfig
) -> list[list[Track]]:
    """Writes the files of utterances: the work of one process (`utils.parallel`).

    Args:
        key: What the files are called: `<key>-0.flac` and so on. Never made of a text or an id.
        items: The utterances; a chunk holds one.
        folder: Where the files go.
        mel: How the pictures are made; sounds of other rates are resampled for them.

    Raises:
        InputError: If a sound cannot be read.
    """
    return [_write(key, item, folder, mel) for item in items]


def _write(key: str, item: EvaluatedUtterance, folder: Path, mel: MelConfig) -> list[Track]:
    voices = _voices_of(item, mel)
    analyses = [_analyse(voice.sound, mel) for voice in voices]
    low, high = contrast([analysis.mel for analysis in analyses])
    tracks = []
    for n, (voice, analysis) in enumerate(zip(voices, analyses, strict=True)):
        audio, picture = f"{key}-{n}.flac", f"{key}-{n}.png"
        wav, sample_rate = voice.sound
        write_flac(folder / audio, wav, sample_rate)
        write_mel_picture(folder / picture, analysis.mel, low, high)
        beside = item.recorded is not None and not voice.follows
        warped = _on_time_of(analyses[0], analysis) if beside else None
        tracks.append(
            Track(
                voice=voice.name,
                seconds=round(len(wav) / sample_rate, 3),
                picture_s=round(analysis.mel.shape[1] * mel.hop_length / mel.sample_rate, 4),
                audio=audio,
                picture=picture,
                phones=[(p.name, round(p.start_s, 3), round(p.end_s, 3)) for p in voice.phones],
                f0=analysis.f0,
                warped=warped,
            )
        )
    return tracks


def _voices_of(item: EvaluatedUtterance, mel: MelConfig) -> list[Voice]:
    """The recording, where there is one, and what each system made of it."""
    voices = []
    if item.recorded is not None:
        phones = item.phones() if item.phones is not None else ()
        voices.append(Voice(RECORDING, Waveform(item.recorded(), mel.sample_rate), phones, True))
    for system, spoken in item.spoken.items():
        voices.append(Voice(system, read_waveform(spoken.file), spoken.phones, spoken.is_copy))
    return voices


def _analyse(sound: Waveform, mel: MelConfig) -> Analysis:
    wav = sound.wav
    if sound.sample_rate != mel.sample_rate:
        wav = soxr.resample(wav, sound.sample_rate, mel.sample_rate)  # another (S,)
    wav = np.pad(wav, (0, max(mel.n_fft - len(wav), 0)))  # a click has a picture, too
    with torch.inference_mode():
        picture = _spectrogram(mel)(torch.from_numpy(wav)[None])[0].numpy()  # (M, T)
    return Analysis(picture, extract_f0(wav, mel, picture.shape[1]))


@functools.lru_cache(maxsize=1)
def _spectrogram(mel: MelConfig) -> MelSpectrogram:
    return MelSpectrogram(mel)


def _on_time_of(recorded: Analysis, spoken: Analysis) -> np.ndarray:
    """The f0 of a sentence at the places of its recording that sound alike, (T,) of that."""
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
