"""Perceptual evaluation of speech quality of a copy, wide-band (ITU-T P.862.2, 2007).

The predicted mean opinion score on a line of 16 kHz: 1.0 to 4.64, which is a perfect copy. Higher
is better. Computed by the package `pesq`, which wraps the reference code, over at most the first 20
seconds.
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
PESQ_SECONDS = 20  # the reference code crashes beyond 50 stretches of speech


def score(copy: Copy) -> Value | None:
    """Scores one copy.

    Returns:
        1.0 to 4.64; None where either is silent, not finite, or shorter than a quarter of a second.

    Raises:
        ImportError: If one of the packages is not installed.
    """
    import soxr
    from pesq import PesqError, pesq

    signals = (copy.wav, copy.wav_hat)
    if not all(np.isfinite(signal).all() and signal.any() for signal in signals):
        return None
    rate = copy.mel.sample_rate
    resampled = [soxr.resample(wav[: PESQ_SECONDS * rate], rate, PESQ_RATE) for wav in signals]
    try:
        return Value(float(pesq(PESQ_RATE, *resampled, "wb")))
    except PesqError:  # no speech was found, or it is too short
        return None
