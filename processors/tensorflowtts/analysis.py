"""The features of one recording, as TensorFlowTTS defines them.

The mel is that of `DEFINITION` in log10, with one frame more, on the end of the audio or the hop
before it: T is 1 + S // hop, as librosa counts. F0 and energy beyond 1.5 interquartile ranges
of the quartiles take the largest of the other values.
"""

import math
from typing import Literal, NamedTuple, cast

import numpy as np
import torch

from config.preprocess import PreprocessConfig
from modules.mel import MelConfig, MelSpectrogram
from processors.audio.pitch import extract_f0

DEFINITION = MelConfig(f_min=80.0, f_max=7600.0, log_floor=1e-10)  # of the mels, but in log10
_TRIM_DB, _TRIM_FRAME, _TRIM_HOP = 60.0, 2048, 512


class DumpedSpeech(NamedTuple):
    """The arrays of one utterance."""

    mel: np.ndarray  # (T, M) float32, log10
    f0: np.ndarray  # (T,) float32 Hz, 0 = unvoiced
    energy: np.ndarray  # (T,) float32
    wav: np.ndarray  # (T * hop,) float32


def trim(wav: np.ndarray) -> np.ndarray:
    """Removes the edges that are 60 dB below the loudest part, (S,) -> (<= S,)."""
    import librosa  # takes a second

    trimmed: np.ndarray = librosa.effects.trim(
        wav, top_db=_TRIM_DB, frame_length=_TRIM_FRAME, hop_length=_TRIM_HOP
    )[0]
    return trimmed


def analyse(wav: np.ndarray, spectrogram: MelSpectrogram, config: PreprocessConfig) -> DumpedSpeech:
    """Extracts the features of trimmed audio, (S,) float32, of at least one analysis window."""
    mel = spectrogram.config
    n_frames = 1 + len(wav) // mel.hop_length
    # the reflection at the end is that of the audio, so that the frame beyond it is librosa's
    reflected = np.pad(wav, (0, mel.n_fft // 2), mode="reflect")
    with torch.inference_mode():
        log_mel, energy = spectrogram.mel_and_energy(torch.from_numpy(reflected)[None])
    f0 = extract_f0(
        wav,
        mel,
        n_frames,
        method=cast("Literal['parselmouth', 'pyworld']", config.pitch_extractor),
        f0_min=config.f0_min,
        f0_max=config.f0_max,
    )
    return DumpedSpeech(
        mel=to_log10(log_mel[0, :, :n_frames].numpy()),
        f0=capped(f0),
        energy=capped(energy[0, :n_frames].numpy()),
        wav=np.pad(wav, (0, mel.n_fft), mode="edge")[: n_frames * mel.hop_length],
    )


def to_log10(mel: np.ndarray) -> np.ndarray:
    """(M, T) in nats -> (T, M) float32 in log10."""
    return np.ascontiguousarray(mel.T / math.log(10), dtype=np.float32)


def to_nats(mel: np.ndarray) -> np.ndarray:
    """(T, M) in log10 -> (M, T) float32 in nats."""
    return np.ascontiguousarray(mel.T * math.log(10), dtype=np.float32)


def capped(values: np.ndarray) -> np.ndarray:
    """Values with those beyond Tukey's fences, (T,), replaced by the largest of the others."""
    low, high = np.percentile(values, [25, 75])
    margin = 1.5 * (high - low)
    outliers = (values <= low - margin) | (values >= high + margin)
    return np.where(outliers, values[~outliers].max(initial=0.0), values).astype(np.float32)
