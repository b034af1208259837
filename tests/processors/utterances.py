"""Sounds like speech whose pitch, formants, levels and times are known, and spoken texts."""

from typing import NamedTuple

import numpy as np

from processors.records import SpokenText, TimedPhone, Word

RATE = 16000


def spoken_text(text: str, tokens: str) -> SpokenText:
    """A text of pauses and of words, such as `<sil> Hi=HH-AY1 <,> you=Y-UW1 <!>`."""
    phones: list[str] = []
    words: list[Word] = []
    for token in tokens.split():
        word, _, names = token.rpartition("=")
        start = len(phones)
        phones += names.split("-")
        words += [Word(word, start, len(phones))] if word else []
    return SpokenText(text, text, tuple(phones), tuple(words))


class Sung(NamedTuple):
    """A vowel, a hiss above 4 kHz (f0 0), or a pause (level 0)."""

    name: str
    f0: float  # Hz at its start
    formants: tuple[float, ...]  # Hz
    seconds: float
    level: float = 0.1
    glide: float = 1.0  # f0 at its end, as a ratio


AH = Sung("AA1", 150, (730, 1090, 2440), 0.2, glide=1.2)
EE = Sung("IY0", 180, (270, 2290, 3010), 0.15, glide=0.8)
OO = Sung("UW1", 130, (300, 870, 2240), 0.25, level=0.05, glide=1.1)
ES = Sung("S", 0, (), 0.12, level=0.04)
PAUSE = Sung("<sp>", 0, (), 0.1, level=0.0)
SENTENCE = (AH, ES, EE, PAUSE, OO, ES, AH)


def sing(
    parts: tuple[Sung, ...] = SENTENCE,
    *,
    rate: int = RATE,
    pitch: float = 1.0,
    stretch: float = 1.0,
    seed: int = 0,
) -> np.ndarray:
    """The parts one after another, (S,) float32; `pitch` is a factor of f0, not of formants."""
    random = np.random.default_rng(seed)
    wavs = [_sing_part(part, rate, pitch, stretch, random) for part in parts]
    return np.concatenate(wavs).astype(np.float32)


def times(parts: tuple[Sung, ...] = SENTENCE, stretch: float = 1.0) -> tuple[TimedPhone, ...]:
    """When each part is sung."""
    edges = (stretch * np.cumsum([0.0, *(part.seconds for part in parts)])).tolist()
    return tuple(map(TimedPhone, (part.name for part in parts), edges[:-1], edges[1:]))


def _sing_part(
    part: Sung, rate: int, pitch: float, stretch: float, random: np.random.Generator
) -> np.ndarray:
    S = round(stretch * part.seconds * rate)
    if part.level == 0:
        return np.zeros(S)
    if part.f0 == 0:
        spectrum = np.fft.rfft(random.normal(size=S))
        wav = np.fft.irfft(spectrum * (np.fft.rfftfreq(S, 1 / rate) > 4000), S)
    else:
        f0 = pitch * part.f0 * part.glide ** (np.arange(S) / S)  # (S,)
        phase = 2 * np.pi * np.cumsum(f0) / rate
        n_harmonics = int(min(rate / 2, 7000) / f0.max())
        numbers = range(1, n_harmonics + 1)
        tones = [_response(k * f0, part.formants) * np.sin(k * phase) for k in numbers]
        wav = np.sum(tones, axis=0)
    return part.level * wav / np.sqrt(np.mean(np.square(wav)))


def _response(hz: np.ndarray, formants: tuple[float, ...]) -> np.ndarray:
    """Magnitude of resonances 100 Hz wide."""
    resonances = [1 / (1 + ((hz - formant) / 100) ** 2) for formant in formants]
    return np.sum(resonances, axis=0) + 0.003
