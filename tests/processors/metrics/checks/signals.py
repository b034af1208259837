"""Sounds that resemble speech, made by hand."""

import numpy as np

from processors.metrics.recognition.labelled_speech import LabelledSpeech

RATE = 22050


def voice(seconds: float, level: float = 0.1, rate: int = RATE) -> np.ndarray:
    """Syllables, four a second, of a voice of 150 Hz: (S,) that begins and ends softly.

    Args:
        seconds: Length.
        level: RMS of the whole.
        rate: Hz.
    """
    time = np.arange(round(seconds * rate)) / rate
    tone = sum(np.sin(2 * np.pi * 150 * k * time + k * k) / k for k in range(1, 12))
    edge = np.minimum(1, np.minimum(time, time[::-1]) / 0.05)
    wav = tone * edge * (1.2 - np.cos(2 * np.pi * 4 * time))
    return (level * wav / np.sqrt(np.mean(wav**2))).astype(np.float32)


def silence(seconds: float, rate: int = RATE) -> np.ndarray:
    return np.zeros(round(seconds * rate), dtype=np.float32)


def speech(*parts: np.ndarray, text: str = "", language: str = "en", phones=()) -> LabelledSpeech:
    return LabelledSpeech(np.concatenate(parts), RATE, text, language, tuple(phones))
