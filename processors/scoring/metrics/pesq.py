"""Perceptual quality of a copy beside its recording, wide-band (ITU-T P.862.2, 2007).

A mean opinion score as listeners would give it on a line of 16 kHz, predicted: 1.0 to 4.64, which
is a perfect copy. Higher is better. Of longer recordings the first 20 seconds count. Computed by
the package `pesq`, which holds the reference code.
"""

import numpy as np

from processors.scoring.metrics import Copy, Metric, Value

METRIC = Metric(
    "MOS",
    better="higher",
    input="copy",
    needs="a quarter of a second of speech, recorded and copied",
    packages=("pesq", "soxr"),
)
PESQ_RATE = 16000  # Hz
PESQ_SECONDS = 20  # longer ones are cut: its reference code crashes beyond 50 stretches of speech


def score(copy: Copy) -> Value | None:
    """Judges one copy; None where there is nothing to judge."""
    quality = pesq(copy.wav, copy.wav_hat, copy.mel.sample_rate)
    return None if quality is None else Value(quality)


def pesq(wav: np.ndarray, wav_hat: np.ndarray, sample_rate: int) -> float | None:
    """Perceptual quality of a copy.

    Args:
        wav: Recording, (S,) float32 in [-1, 1].
        wav_hat: What is judged, (S,).
        sample_rate: Of both, Hz.

    Returns:
        1.0 to 4.64; None where there is nothing to judge: silence in either, or less than a quarter
        of a second.

    Raises:
        ImportError: If one of the packages is not installed.
    """
    import soxr
    from pesq import PesqError
    from pesq import pesq as reference_code

    if not all(np.isfinite(signal).all() and signal.any() for signal in (wav, wav_hat)):
        return None
    resampled = [
        soxr.resample(signal[: PESQ_SECONDS * sample_rate], sample_rate, PESQ_RATE)
        for signal in (wav, wav_hat)
    ]
    try:
        return float(reference_code(PESQ_RATE, *resampled, "wb"))
    except PesqError:  # no speech was found, or it is too short
        return None
