"""Mel-cepstra of speech: cepstra of its spectral envelope on a warped frequency axis.

The envelope is that of CheapTrick in the WORLD vocoder (Morise 2015, "CheapTrick, a spectral
envelope estimator for high-quality speech synthesis", Speech Communication 67). A window of three
periods makes the power nearly independent of its position in a period; smoothing over two thirds of
the fundamental and liftering then remove the harmonics. `pyworld.cheaptrick` computes the same, but
it is an optional package that pip has to compile, and `mcd` must not need a compiler.

Tokuda et al. 1994, "Mel-generalized cepstral analysis", ICSLP: a first-order all-pass filter with
constant alpha warps the axis; with the right alpha it approximates the mel scale.
"""

import functools
from collections.abc import Iterator

import numpy as np

ORDER = 24
N_FFT = 1024  # three periods of 65 Hz fit up to 22,050 Hz
UNVOICED_F0_HZ = 500.0  # sets the window and the smoothing of frames without pitch, as in WORLD
_PERIODS_PER_WINDOW = 3
_RECOVERY = -0.15  # q1 of the paper: compensates for the flattening by smoothing
_CHUNK_FRAMES = 256  # bounds the memory, and fits into caches


def log_envelopes(
    wav: np.ndarray, sample_rate: int, f0: np.ndarray, hop_length: int, floor: float
) -> Iterator[np.ndarray]:
    """Yields log power envelopes of all frames, in chunks.

    Args:
        wav: (S,), at least one sample.
        f0: Hz, 0 where unvoiced, (T,); frame t is centred on sample t * hop_length.
        floor: Variance of white noise that is added to the power, above 0.

    Yields:
        (t, N_FFT / 2 + 1), nats, T rows in all; white noise has its variance in each bin.
    """
    lowest = _PERIODS_PER_WINDOW * sample_rate / (N_FFT - 3)  # longer periods exceed the FFT
    f0 = np.where(f0 > lowest, f0, UNVOICED_F0_HZ).astype(np.float64)  # (T,)
    samples = wav.astype(np.float64)
    for start in range(0, len(f0), _CHUNK_FRAMES):
        part = f0[start : start + _CHUNK_FRAMES]
        centres = (start + np.arange(len(part))) * hop_length
        power = _power(samples, centres, part / sample_rate)
        smooth = _smoothed(_with_dc(power, part * N_FFT / sample_rate), part * N_FFT / sample_rate)
        yield _liftered(np.log(smooth + floor), part / sample_rate)


def _power(samples: np.ndarray, centres: np.ndarray, f0: np.ndarray) -> np.ndarray:
    """Computes power spectra under Hann windows of three periods, (T, K); f0 per sample."""
    half = np.rint(_PERIODS_PER_WINDOW / 2 / f0).astype(int)[:, None]  # (T, 1)
    offsets = np.arange(-half.max(), half.max() + 1)  # (L,)
    window = 0.5 + 0.5 * np.cos(2 * np.pi / _PERIODS_PER_WINDOW * offsets * f0[:, None])  # (T, L)
    window *= np.abs(offsets) <= half
    window /= np.sqrt((window**2).sum(axis=1, keepdims=True))
    frames = samples[(centres[:, None] + offsets).clip(0, len(samples) - 1)] * window  # (T, L)
    frames -= window * (frames.sum(axis=1) / window.sum(axis=1))[:, None]  # no mean
    return np.abs(np.fft.rfft(frames, N_FFT)) ** 2  # (T, K)


def _with_dc(power: np.ndarray, f0: np.ndarray) -> np.ndarray:
    """Mirrors power spectra (T, K) into the band below the fundamental; f0 in bins."""
    # speech has no power there, and the envelope would fall towards 0 Hz
    below = np.arange(int(f0.max()) + 1)
    mirrored = f0[:, None] - below  # (T, L), negative above the fundamental
    lower = mirrored.clip(0).astype(int)
    share = mirrored - lower
    first, second = (np.take_along_axis(power, lower + i, axis=1) for i in (0, 1))
    power = power.copy()
    power[:, below] += np.where(mirrored >= 0, (1 - share) * first + share * second, 0)
    return power


def _smoothed(power: np.ndarray, f0: np.ndarray) -> np.ndarray:
    """Averages power over two thirds of the fundamental around each bin, (T, K); f0 in bins."""
    T, K = power.shape
    half = f0[:, None] / 3  # (T, 1)
    margin = int(half.max()) + 2
    mirrored = np.pad(power, ((0, 0), (margin, margin)), mode="reflect")
    total = np.zeros((T, K + 2 * margin + 1))  # up to the lower edge of each bin
    np.cumsum(mirrored, axis=1, out=total[:, 1:])

    def up_to(shift: np.ndarray) -> np.ndarray:
        nearest = np.floor(shift + 0.5)  # bins are centred on whole numbers
        share = shift + 0.5 - nearest
        edges = margin + np.arange(K) + nearest.astype(int)  # (T, K)
        lower, upper = (np.take_along_axis(total, edges + i, axis=1) for i in (0, 1))
        return (1 - share) * lower + share * upper

    return (up_to(half) - up_to(-half)) / (2 * half)


def _liftered(log_power: np.ndarray, f0: np.ndarray) -> np.ndarray:
    """Lifters log spectra (T, K) to smooth over the fundamental; f0 in periods per sample."""
    periods = f0[:, None] * np.arange(N_FFT // 2 + 1)  # (T, N_FFT / 2 + 1), quefrency
    recovery = 1 - 2 * _RECOVERY + 2 * _RECOVERY * np.cos(2 * np.pi * periods)
    lifter = np.sinc(periods) * recovery
    cepstra = np.fft.irfft(log_power, N_FFT)[:, : N_FFT // 2 + 1] * lifter
    return np.fft.hfft(cepstra, N_FFT)[:, : N_FFT // 2 + 1]


def mel_cepstra(log_power: np.ndarray, sample_rate: int) -> np.ndarray:
    """Returns mel-cepstra of power envelopes, (T, ORDER + 1); coefficient 0 is the level.

    `log_power` is the logarithm of the power from 0 Hz to half of the sample rate, (T, K), nats.
    """
    return log_power @ _analysis(log_power.shape[1], mel_alpha(sample_rate))


@functools.cache
def mel_alpha(sample_rate: int) -> float:
    """Returns the all-pass constant closest to the mel scale, to three decimals.

    By the mean square difference to ln(1 + f / 1000 Hz) from 0 Hz to half of the sample rate: 0.41
    at 16 kHz, 0.455 at 22,050 Hz, like the values that SPTK recommends.
    """
    share = np.arange(1, 1001) / 1000  # of half the sample rate
    mel = np.log1p(share * sample_rate / 2000)
    alphas = np.arange(0, 1000)[:, None] / 1000
    sine, cosine = alphas * np.sin(np.pi * share), 1 - alphas * np.cos(np.pi * share)
    # phase of the all-pass filter
    warped = share + 2 / np.pi * np.arctan2(sine, cosine)  # (1000, 1000)
    return float(alphas[((warped - mel / mel[-1]) ** 2).mean(axis=1).argmin(), 0])


@functools.cache
def _analysis(n_bins: int, alpha: float) -> np.ndarray:
    """Returns the matrix from log-powers to mel-cepstra, (n_bins, ORDER + 1)."""
    cepstra = np.fft.irfft(np.eye(n_bins))[:, :n_bins]  # (K, K), row k is that of bin k alone
    cepstra[:, [0, -1]] /= 2  # other bins include negative times; power is a square
    # in the variable x of the warped axis a delay is (alpha + x) / (1 + alpha x), and n delays are
    # its n-th power, whose coefficients are row n of `warping` (Oppenheim, Johnson 1972)
    series = np.append(alpha, (1 - alpha**2) * (-alpha) ** np.arange(ORDER))  # (ORDER + 1,)
    warping = np.zeros((n_bins, ORDER + 1))
    warping[0, 0] = 1
    for n in range(1, n_bins):
        warping[n] = np.convolve(warping[n - 1], series)[: ORDER + 1]
    return cepstra @ warping
