"""Metrics of copies: a recording and its resynthesis, compared sample by sample.

Long signals are compared in pieces, whose mean is weighted by their lengths.
"""

import functools
import math
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from processors.metrics.records import Copy, Metric, MetricValue, value_of

if TYPE_CHECKING:  # it imports torch
    from modules.mel import MelConfig, MelSpectrogram

PESQ_RATE = 16000  # Hz
PESQ_SECONDS = 20  # the reference code crashes beyond 50 stretches of speech
_PIECE_FRAMES = 2048  # about 24 s
_STOI_SHORTEST_S = 0.4

Pieces = Iterable[tuple[np.ndarray, np.ndarray]]  # parts of a recording and of its copy, (S,) each


def score_mel_distance(copy: Copy) -> MetricValue | None:
    """Computes the L1 distance between the log-mels of recording and copy, nats.

    0 is the same mel, whatever the phases. The mel is the vocoder's input; the mean over utterances
    weights them by their frames. HiFi-GAN's generator is trained with this distance (Kong et al.
    2020, arXiv:2010.05646, eq. 3), there over the whole band.
    """
    n_frames = len(copy.wav) // copy.mel.hop_length
    return value_of(mel_l1(_pieces(copy), _spectrogram(copy.mel)), n_frames)


def mel_l1(pieces: Pieces, mel: "MelSpectrogram") -> float | None:
    """Averages the absolute difference of log-mels over pieces of whole frames, nats, or None.

    The mels are computed on the device of the buffers of `mel`.
    """
    import torch

    def distance(wav: np.ndarray, wav_hat: np.ndarray) -> float:
        both = torch.from_numpy(np.stack([wav, wav_hat])).to(mel.window.device)  # (2, S)
        with torch.inference_mode():
            log_mel, log_mel_hat = mel(both)  # (M, T) each
        return float((log_mel_hat - log_mel).abs().mean())

    return _mean_over(pieces, distance)


def score_stft_distance(copy: Copy) -> MetricValue | None:
    """Computes the multi-resolution STFT distance.

    Spectral convergence plus the mean of |ln magnitude - ln magnitude_hat|, averaged over windows
    of 240, 600 and 1200 samples. 0 is equal magnitudes. Unlike a mel it covers the band up to half
    the sample rate, with fine resolution in time and frequency. It is also the training loss
    `stft` of vocoders.
    """
    import torch

    from modules.losses import MultiResolutionStft

    stft = MultiResolutionStft()
    shortest = max(resolution.n_fft for resolution in stft.resolutions)

    def distance(wav: np.ndarray, wav_hat: np.ndarray) -> float | None:
        if len(wav) < shortest or not wav.any():  # half of a window is reflected at the ends
            return None
        with torch.inference_mode():
            return float(stft(torch.from_numpy(wav_hat)[None], torch.from_numpy(wav)[None]))

    return value_of(_mean_over(_pieces(copy), distance))


def score_pesq(copy: Copy) -> MetricValue | None:
    """Predicts the mean opinion score at 16 kHz: 1.0 to 4.64, which is a perfect copy.

    Computed by the package `pesq`, which wraps the reference code, over at most the first 20
    seconds.
    """
    import soxr
    from pesq import PesqError, pesq

    signals = (copy.wav, copy.wav_hat)
    if not all(np.isfinite(signal).all() and signal.any() for signal in signals):
        return None
    rate = copy.mel.sample_rate
    resampled = [soxr.resample(wav[: PESQ_SECONDS * rate], rate, PESQ_RATE) for wav in signals]
    try:
        return MetricValue(float(pesq(PESQ_RATE, *resampled, "wb")))
    except PesqError:  # no speech was found, or it is too short
        return None


def score_stoi(copy: Copy) -> MetricValue | None:
    """Computes the short-time objective intelligibility with pystoi.

    The mean correlation of the envelopes of 15 third-octave bands from 150 Hz over 0.4 s, at
    10 kHz, where the recording is not silent: up to 1, which is a perfect copy. Above 0.9 nearly
    every word is understood.
    """
    compare = functools.partial(stoi, sample_rate=copy.mel.sample_rate)
    return value_of(_mean_over(_pieces(copy), compare))


def stoi(wav: np.ndarray, wav_hat: np.ndarray, sample_rate: int) -> float | None:
    """Computes the intelligibility of a copy, (S,) each, at most 1; None for less than 0.4 s."""
    from pystoi import stoi as reference_code

    if len(wav) < _STOI_SHORTEST_S * sample_rate or not wav.any():
        return None
    with warnings.catch_warnings():
        # pystoi warns and returns 1e-5 where too little speech is left
        warnings.simplefilter("error", RuntimeWarning)
        try:
            return float(reference_code(wav, wav_hat, sample_rate))
        except RuntimeWarning:
            return None


def piece_spans(n_samples: int, hop_length: int) -> Iterator[slice]:
    """Returns consecutive ranges of samples of nearly equal length that cover all whole frames."""
    T = n_samples // hop_length
    edges = np.linspace(0, T, 1 + math.ceil(T / _PIECE_FRAMES)).astype(int) * hop_length
    return map(slice, edges[:-1].tolist(), edges[1:].tolist())


def _pieces(copy: Copy) -> Pieces:
    """Yields parts of both at the same samples, short enough to bound the memory of a metric."""
    for span in piece_spans(len(copy.wav), copy.mel.hop_length):
        yield copy.wav[span], copy.wav_hat[span]


def _mean_over(
    pieces: Pieces, compare: Callable[[np.ndarray, np.ndarray], float | None]
) -> float | None:
    """Averages a comparison over pieces, weighted by length; None if none has a value."""
    total = weight = 0.0
    for wav, wav_hat in pieces:
        value = compare(wav, wav_hat)
        if value is not None:
            total += value * len(wav)
            weight += len(wav)
    return total / weight if weight else None


@functools.lru_cache(maxsize=1)
def _spectrogram(config: "MelConfig") -> "MelSpectrogram":
    from modules.mel import MelSpectrogram

    return MelSpectrogram(config)


_metric = functools.partial(Metric, family="copies")
_STFT_NEEDS = "samples for its longest window, recorded ones not silent"
_PESQ_NEEDS = "a quarter of a second of speech, recorded and copied"
METRICS = (
    _metric("mel_l1", score_mel_distance, "lower", "nats", needs="a whole frame"),
    _metric("mstft", score_stft_distance, "lower", needs=_STFT_NEEDS),
    _metric("pesq", score_pesq, "higher", "MOS", _PESQ_NEEDS, packages=("pesq", "soxr")),
    _metric("stoi", score_stoi, "higher", "", "0.4 s of recorded speech", packages=("pystoi",)),
)
