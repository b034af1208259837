"""A program that speaks: each letter is a tone with harmonics, each space a short pause."""

import os
import signal
import sys
from pathlib import Path

import numpy as np

RATE = 8000
LETTER_S, PAUSE_S = 0.06, 0.05
PITCHES = {"anna": 200.0, "bert": 100.0}


def speak(text: str, voice: str) -> tuple[np.ndarray, int]:
    """Speaks a text; some words make it fail in the way that they name."""
    if log := os.environ.get("TOY_LOG"):
        with Path(log).open("a") as file:
            file.write(f"{voice}: {text}\n")
        if len(Path(log).read_text().splitlines()) == int(os.environ.get("TOY_KILLS_AT", 0)):
            os.kill(os.getppid(), signal.SIGKILL)
    if "exit" in text:
        sys.exit(3)
    if "raise" in text:
        raise RuntimeError("no such word")
    wav = np.concatenate([_silence(), *(_tone(char, PITCHES[voice]) for char in text), _silence()])
    pause = np.zeros(2 * RATE)
    damaged = {
        "nothing": wav[:0],
        "quiet": 0 * wav,
        "broken": np.where(np.arange(len(wav)) == 50, np.nan, wav),
        "late": np.concatenate([pause, wav]),
        "waits": np.concatenate([wav, pause, wav]),
        "loud": (4 * wav).clip(-1, 1),
        "sixteen bits": wav * 32767,
        "stereo": np.stack([wav, wav]),
        "slowly": np.interp(np.arange(3 * len(wav)) / 3, np.arange(len(wav)), wav),
        "hastily": wav[: len(wav) // 3],
    }
    return next((sound for word, sound in damaged.items() if word in text), wav), RATE


def _tone(char: str, f0: float) -> np.ndarray:
    if not char.isalpha():
        return np.zeros(round(PAUSE_S * RATE))
    times = np.arange(round(LETTER_S * RATE)) / RATE
    f0 *= 1 + (ord(char) % 7) / 40
    harmonics = [np.sin(2 * np.pi * f0 * n * times) / n for n in range(1, 9)]
    return 0.2 * np.sum(harmonics, 0) * np.minimum(1, 20 * np.hanning(len(times)))


def _silence() -> np.ndarray:
    return np.zeros(round(0.1 * RATE))


def hear(wav: np.ndarray, sample_rate: int, language: str) -> str:
    """A speech recogniser that knows one sentence."""
    return "Where is the old lighthouse?"
