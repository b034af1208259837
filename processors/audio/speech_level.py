"""Active speech level and speech activity."""

import math
from typing import NamedTuple

import numpy as np

FRAME_S = 0.01
FLOOR_DB = -120.0  # of a frame of digital silence
_ENVELOPE_RATE = 1000  # Hz: the envelope of P.56 is smooth over 30 ms, so this loses nothing
_TIME_CONSTANT_S = 0.03
_HANGOVER_S = 0.2
_MARGIN_DB = 15.9
_SILENCE_DB = 20.0  # below the speech
_NOISE_DB = 6.0  # above the noise floor
_VOWEL_DB = 8.0  # below the speech: the vowels of quiet syllables; breaths are 15 dB and more below
_SMOOTHED_FRAMES = 5  # the level of hum and rumble varies from one frame of 10 ms to the next
_THRESHOLDS = 2.0 ** np.arange(-15, 0)  # (15,), amplitudes


class Pause(NamedTuple):
    """A stretch of silence."""

    start_s: float
    seconds: float


class SpeechActivity(NamedTuple):
    """Start, end and pauses of the speech in a signal."""

    start_s: float
    end_s: float
    pauses: tuple[Pause, ...]  # between both


def active_level(wav: np.ndarray, sample_rate: int) -> float | None:
    """Measures the RMS during speech, dB of full scale (ITU-T P.56, 2011, method B).

    Speech is where the envelope exceeds a threshold that is 15.9 dB below the level of the signal
    there, and 200 ms after. The envelope is computed in steps of 1 ms. No dependency has P.56:
    librosa's `effects.trim` and `split` are relative to the loudest frame instead. None where
    nothing is louder than -90 dB.
    """
    if not len(wav):
        return None
    centred = wav - np.mean(wav, dtype=np.float64)  # (S,)
    total = float(np.square(centred).sum())
    envelope = _envelope(np.abs(centred), sample_rate)  # (E,)
    levels, margins = [], []
    for threshold in _THRESHOLDS:
        n_active = _count_active(envelope >= threshold) * sample_rate / _ENVELOPE_RATE
        if not n_active:
            break
        levels.append(10 * math.log10(total / min(n_active, len(wav))))
        margins.append(levels[-1] - 20 * math.log10(threshold))
        if margins[-1] <= _MARGIN_DB:
            break
    if not levels:
        return None
    # between the last two, as the margin falls through 15.9 dB for the first time
    return float(np.interp(-_MARGIN_DB, -np.array(margins[-2:]), levels[-2:]))


def _envelope(magnitude: np.ndarray, sample_rate: int) -> np.ndarray:
    """Returns the magnitude (S,) smoothed twice with a time constant of 30 ms, (E,) at 1 kHz."""
    E = math.ceil(len(magnitude) * _ENVELOPE_RATE / sample_rate)
    edges = np.arange(E) * len(magnitude) // E  # (E,), the first sample of each step
    means = np.add.reduceat(magnitude, edges) / np.diff(edges, append=len(magnitude))
    decay = math.exp(-1 / (_ENVELOPE_RATE * _TIME_CONSTANT_S))
    n = np.arange(round(10 * _TIME_CONSTANT_S * _ENVELOPE_RATE))
    return np.convolve(means, (1 - decay) ** 2 * (n + 1) * decay**n)[:E]


def _count_active(over: np.ndarray) -> int:
    """Counts steps of (E,) that are set, or follow one that is within 200 ms."""
    count = np.concatenate([[0], np.cumsum(over)])
    hangover = round(_HANGOVER_S * _ENVELOPE_RATE)
    before = np.concatenate([np.zeros(hangover, dtype=count.dtype), count])[: len(over)]
    return int(np.count_nonzero(count[1:] > before))


def frame_levels(wav: np.ndarray, sample_rate: int) -> np.ndarray:
    """Measures each whole 10 ms of (S,) without its mean, dB relative to full scale, (T,)."""
    T = int(len(wav) / (sample_rate * FRAME_S))
    if not T:
        return np.zeros(0)
    edges = np.round(np.arange(T + 1) * sample_rate * FRAME_S).astype(int)  # (T + 1,)
    centred = wav[: edges[-1]] - np.mean(wav, dtype=np.float64)
    power = np.add.reduceat(np.square(centred), edges[:-1]) / np.diff(edges)  # (T,)
    return 10 * np.log10(np.maximum(power, 10 ** (FLOOR_DB / 10)))


def speech_activity(wav: np.ndarray, sample_rate: int) -> SpeechActivity | None:
    """Finds speech: frames of 10 ms less than 20 dB below the active speech level; None without.

    Most recordings have this distance between speech and noise. Compared with the alignments of 55
    recordings of LJSpeech, the first and last phones end within 0.02 and 0.12 s (5th to 95th
    percentile) of the edges found here, and the longest pauses are 0.02 to 0.22 s longer here.
    """
    level_db = active_level(wav, sample_rate)
    if level_db is None:
        return None
    is_loud = frame_levels(wav, sample_rate) > level_db - _SILENCE_DB  # (T,)
    frames = np.flatnonzero(is_loud)
    if not len(frames):
        return None
    gaps = np.diff(frames)
    starts = frames[:-1][gaps > 1] + 1
    pauses = zip(starts * FRAME_S, (gaps[gaps > 1] - 1) * FRAME_S, strict=True)
    silences = tuple(Pause(float(start), float(seconds)) for start, seconds in pauses)
    start, end = (frames[[0, -1]] + (0, 1)) * FRAME_S
    return SpeechActivity(float(start), float(end), silences)


def speech_frames(wav: np.ndarray, sample_rate: int) -> tuple[np.ndarray, np.ndarray]:
    """Finds frames of 10 ms with speech by their level over 50 ms, also in noise.

    The noise floor is the 5th percentile of the levels, so steady noise is not audible. Breaths are
    audible, but have no vowels.

    Returns:
        Frames as loud as any speech sound, and frames as loud as a vowel, (T,) bool each.
    """
    levels = frame_levels(wav, sample_rate)  # (T,)
    level_db = active_level(wav, sample_rate)
    if level_db is None or len(levels) < _SMOOTHED_FRAMES:
        return (np.zeros(len(levels), dtype=bool),) * 2
    kernel = np.full(_SMOOTHED_FRAMES, 1 / _SMOOTHED_FRAMES)
    smooth = 10 * np.log10(np.convolve(10 ** (levels / 10), kernel, mode="same"))  # (T,)
    floor = float(np.percentile(smooth, 5)) + _NOISE_DB
    audible = smooth > max(level_db - _SILENCE_DB, floor)
    return audible, audible & (smooth > level_db - _VOWEL_DB)
