"""Fundamental frequency at the times of the mel frames.

Frame grids that are only padded to the same length differ by a frame or more, which costs as much
accuracy as a worse method. Here the frames of Praat are centred on those of the mel.
"""

import importlib
from typing import Any, Literal

import numpy as np
import soxr

from modules.mel import MelConfig
from utils.errors import InputError

# Praat's run time grows with the sample rate; it uses nothing of a voice above half of this.
_HIGHEST_RATE = 24000  # Hz
_REMEDIES = {
    "parselmouth": "pip install praat-parselmouth, or set it to pyworld",
    "pyworld": "pip install -e '.[pyworld]' 'setuptools<81', or set it to parselmouth",
}
_PERIODS_PER_WINDOW = 3  # Praat's autocorrelation looks at three periods of the lowest pitch


def extract_f0(
    wav: np.ndarray,
    mel: MelConfig,
    n_frames: int,
    *,
    method: Literal["parselmouth", "pyworld"] = "parselmouth",
    f0_min: float = 65.0,
    f0_max: float = 600.0,
) -> np.ndarray:
    """Estimates the fundamental frequency of speech (S,), Hz, 0 where unvoiced, (T,) float32.

    `parselmouth` is Praat's autocorrelation (Boersma 1993, "Accurate short-term analysis of the
    fundamental frequency ..."); `pyworld` is DIO with StoneMask (Morise et al. 2009, 2016). Frames
    are at t * hop_length with mel padding "centre", half a hop later with "hifigan".
    """
    if n_frames == 0 or not wav.any():
        return np.zeros(n_frames, dtype=np.float32)
    first = mel.hop_length / 2 if mel.padding == "hifigan" else 0.0  # sample of the first frame
    estimate = _praat if method == "parselmouth" else _dio
    return estimate(wav, mel, n_frames, first, f0_min, f0_max)


def _praat(
    wav: np.ndarray, mel: MelConfig, n_frames: int, first: float, f0_min: float, f0_max: float
) -> np.ndarray:
    parselmouth = require_extractor("parselmouth")
    rate = min(mel.sample_rate, _HIGHEST_RATE)
    if rate < mel.sample_rate:
        wav = soxr.resample(wav, mel.sample_rate, rate)
    scale = rate / mel.sample_rate
    hop, first = mel.hop_length * scale, first * scale  # samples of the analysed audio
    # Praat centres its frames in the signal and keeps half a window free at both ends. With half a
    # window before the first frame and after the last, its frames are those of the mel.
    margin = int(np.ceil(_PERIODS_PER_WINDOW / f0_min * rate / 2)) + 1
    padded = np.zeros(round(2 * margin + (n_frames - 1) * hop))
    offset = margin - round(first)
    part = wav[max(-offset, 0) :][: len(padded) - max(offset, 0)]
    padded[max(offset, 0) :][: len(part)] = part
    pitch = parselmouth.Sound(padded, rate).to_pitch_ac(
        time_step=hop / rate, pitch_floor=f0_min, pitch_ceiling=f0_max
    )
    times = (margin + hop * np.arange(n_frames)) / rate
    nearest = np.rint((times - pitch.x1) / pitch.dx).astype(int)
    return pitch.selected_array["frequency"][nearest.clip(0, pitch.nx - 1)].astype(np.float32)


def _dio(
    wav: np.ndarray, mel: MelConfig, n_frames: int, first: float, f0_min: float, f0_max: float
) -> np.ndarray:
    pyworld = require_extractor("pyworld")
    # WORLD's frames are 0, 1, 2 ... periods after the first sample
    samples = np.ascontiguousarray(wav[round(first) :], dtype=np.float64)
    period_ms = 1000 * mel.hop_length / mel.sample_rate
    rough, times = pyworld.dio(samples, mel.sample_rate, f0_min, f0_max, frame_period=period_ms)
    f0 = pyworld.stonemask(samples, rough, times, mel.sample_rate)[:n_frames]
    return np.pad(f0, (0, n_frames - len(f0))).astype(np.float32)


def require_extractor(method: Literal["parselmouth", "pyworld"]) -> Any:  # noqa: ANN401
    """Returns the package of a method of `extract_f0`; InputError if it is not installed."""
    try:
        return importlib.import_module(method)
    except ImportError as error:  # pyworld up to 0.3.5 also needs pkg_resources
        fault = f"preprocess.pitch_extractor {method} cannot be used ({error})"
        raise InputError(f"{fault}: {_REMEDIES[method]}") from None
