"""Mel-cepstra: cepstra of a spectral envelope on a warped frequency axis.

Tokuda et al. 1994, "Mel-generalized cepstral analysis", ICSLP: a first-order all-pass filter with
constant alpha warps the axis; with the right alpha it approximates the mel scale.
"""

import functools

import numpy as np

ORDER = 24


def mel_cepstra(
    log_power: np.ndarray, sample_rate: int, *, order: int = ORDER, alpha: float | None = None
) -> np.ndarray:
    """Mel-cepstra of power envelopes, (T, order + 1); coefficient 0 is the level.

    Args:
        log_power: Logarithm of the power from 0 Hz to half of the sample rate, (T, K), nats.
        alpha: All-pass constant; None: the closest to the mel scale.
    """
    alpha = mel_alpha(sample_rate) if alpha is None else alpha
    return log_power @ _analysis(log_power.shape[1], order, alpha)


@functools.cache
def mel_alpha(sample_rate: int) -> float:
    """The all-pass constant closest to the mel scale, to three decimals.

    By the mean square difference to ln(1 + f / 1000 Hz) from 0 Hz to half of the sample rate: 0.41
    at 16 kHz, 0.455 at 22,050 Hz, like the values that SPTK recommends.
    """
    share = np.arange(1, 1001) / 1000  # of half the sample rate
    mel = np.log1p(share * sample_rate / 2000)
    alphas = np.arange(0, 1000)[:, None] / 1000
    warped = share + 2 / np.pi * np.arctan2(
        alphas * np.sin(np.pi * share), 1 - alphas * np.cos(np.pi * share)
    )  # (1000, 1000), phase of the all-pass filter
    return float(alphas[((warped - mel / mel[-1]) ** 2).mean(axis=1).argmin(), 0])


@functools.cache
def _analysis(n_bins: int, order: int, alpha: float) -> np.ndarray:
    """Matrix from log-powers to mel-cepstra, (n_bins, order + 1)."""
    cepstra = np.fft.irfft(np.eye(n_bins))[:, :n_bins]  # (K, K), row k is that of bin k alone
    cepstra[:, [0, -1]] /= 2  # other bins include negative times; power is a square
    return cepstra @ _warping(n_bins, order, alpha)


def _warping(n_coefficients: int, order: int, alpha: float) -> np.ndarray:
    """Matrix from cepstra to mel-cepstra, (n_coefficients, order + 1); Oppenheim, Johnson 1972.

    In the variable x of the warped axis a delay is (alpha + x) / (1 + alpha x), and n delays are
    the n-th power of that series: row n holds its coefficients.
    """
    powers = np.arange(order)
    series = np.append(alpha, (1 - alpha**2) * (-alpha) ** powers)  # (order + 1,)
    rows = np.zeros((n_coefficients, order + 1))
    rows[0, 0] = 1
    for n in range(1, n_coefficients):
        rows[n] = np.convolve(rows[n - 1], series)[: order + 1]
    return rows
