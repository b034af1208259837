"""Scores of synthesised speech against a recording of it."""

import importlib.util

import numpy as np

PESQ_RATE = 16000  # Hz
PESQ_SECONDS = 20  # longer ones are cut: its reference code crashes beyond 50 stretches of speech
_PESQ_PACKAGES = ("pesq", "soxr")


def missing_for_pesq() -> tuple[str, ...]:
    """The packages that `pesq` needs and that are not installed."""
    return tuple(name for name in _PESQ_PACKAGES if importlib.util.find_spec(name) is None)


def pesq(wav: np.ndarray, wav_hat: np.ndarray, sample_rate: int) -> float | None:
    """Perceptual quality, wide-band (ITU-T P.862.2): 1.0 to 4.64, more is better.

    Args:
        wav: Recording, (S,) float32 in [-1, 1].
        wav_hat: What is judged, (S,).
        sample_rate: Of both, Hz.

    Returns:
        None where there is nothing to judge: silence in either, or less than a quarter of a second.

    Raises:
        ImportError: If one of `missing_for_pesq` is needed.
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
