"""L1 distance between the log-mels of a recording and of its copy, nats.

The mean over frames and bands of |ln mel - ln mel_hat|: 0.1 is 10 % of a band's magnitude (0.9 dB).
Lower is better; 0 is the same mel, whatever the phases. The mel is the vocoder's input; the mean
over utterances weights them by their frames. HiFi-GAN's generator is trained with this distance
(Kong et al. 2020, arXiv:2010.05646, eq. 3), there over the whole band.
"""

import functools

import numpy as np
import torch

from modules.mel import MelConfig, MelSpectrogram
from processors.scoring.metrics import Copy, Metric, Pieces, Value, mean_over, value_of

METRIC = Metric("nats", better="lower", input="copy", needs="a whole frame")


def score(copy: Copy) -> Value | None:
    """Scores one copy; None where it has no whole frame."""
    distance = mel_l1(copy.pieces(), _spectrogram(copy.mel))
    return value_of(distance, len(copy.wav) // copy.mel.hop_length)


def mel_l1(pieces: Pieces, mel: MelSpectrogram) -> float | None:
    """Mean absolute difference of two log-mels.

    Args:
        pieces: Parts of a recording and of its copy, (S,) float32 each, in whole frames.
        mel: Computes the mels, on the device of its buffers.

    Returns:
        Nats; None if there is no piece.
    """

    def distance(wav: np.ndarray, wav_hat: np.ndarray) -> float:
        both = torch.from_numpy(np.stack([wav, wav_hat])).to(mel.window.device)  # (2, S)
        with torch.inference_mode():
            log_mel, log_mel_hat = mel(both)  # (M, T) each
        return float((log_mel_hat - log_mel).abs().mean())

    return mean_over(pieces, distance)


@functools.lru_cache(maxsize=1)
def _spectrogram(config: MelConfig) -> MelSpectrogram:
    return MelSpectrogram(config)
