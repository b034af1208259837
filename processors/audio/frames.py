"""Audio as samples and frames: 16-bit integers, spans, and the mel of recordings of any length."""

import numpy as np
import torch

from modules.mel import MelConfig, MelSpectrogram
from utils.errors import UtteranceError

# 32768 and not 32767: 16-bit audio that is read as floats is written back unchanged.
_STEPS = 32768
_PIECE_FRAMES = 4096  # about 48 s; an STFT takes some twenty times the memory of the audio


class SpanError(UtteranceError):
    """A span that does not lie in its recording, or features of another recording."""


def cut_span(wav: np.ndarray, start: int, n_frames: int, mel: MelConfig) -> np.ndarray:
    """Cuts whole frames out of a recording (S,) from sample `start` on, which may be below 0.

    Less than two hops beyond its ends are reflected.

    Returns:
        (n_frames * hop_length,).
    """
    end = start + n_frames * mel.hop_length
    before, after = max(0, -start), max(0, end - len(wav))
    span = wav[max(0, start) : end]
    if max(before, after) >= min(2 * mel.hop_length, len(span)):
        fault = f"the features end {after} samples after the recording"
        raise SpanError(f"{fault}; run stage 1 of the acoustic model again")
    return np.pad(span, (before, after), mode="reflect")


def mel_of(wav: np.ndarray, mel: MelSpectrogram, piece: int = _PIECE_FRAMES) -> np.ndarray:
    """Computes a log-mel piece by piece, so that an hour takes no more memory than a minute.

    (T * hop_length,) float32 in [-1, 1] -> (M, T) float32.
    """
    hop = mel.config.hop_length
    T = len(wav) // hop
    margin = -(-mel.config.n_fft // hop)  # frames that the reflection at a piece's edge reaches
    log_mel = np.empty((mel.config.n_mels, T), dtype=np.float32)
    for first in range(0, T, piece):
        last = min(first + piece, T)
        begin, end = max(0, first - margin), min(T, last + margin)
        with torch.inference_mode():
            part = mel(torch.from_numpy(wav[begin * hop : end * hop])[None])[0]  # (M, end - begin)
        log_mel[:, first:last] = part[:, first - begin : last - begin].numpy()
    return log_mel


def to_pcm16(wav: np.ndarray) -> np.ndarray:
    """Rounds audio in [-1, 1] to steps of 1 / 32768; 1.0 itself becomes 32767. Any shape."""
    return np.minimum(np.round(wav * _STEPS), _STEPS - 1).astype(np.int16)


def from_pcm16(steps: np.ndarray) -> np.ndarray:
    """Converts 16-bit samples to audio in [-1, 1), float32."""
    return steps.astype(np.float32) / _STEPS
