"""Conversion between floats and 16-bit integers, the format of audio on disk."""

import numpy as np

# 32768 and not 32767: 16-bit audio that is read as floats is written back unchanged.
_STEPS = 32768


def to_pcm16(wav: np.ndarray) -> np.ndarray:
    """Rounds audio in [-1, 1] to steps of 1 / 32768; 1.0 itself becomes 32767. Any shape."""
    return np.minimum(np.round(wav * _STEPS), _STEPS - 1).astype(np.int16)


def from_pcm16(steps: np.ndarray) -> np.ndarray:
    """Audio in [-1, 1), float32."""
    return steps.astype(np.float32) / _STEPS
