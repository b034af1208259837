"""Short-time objective intelligibility (Taal et al. 2011, doi:10.1109/TASL.2011.2114881).

The mean correlation of the envelopes of 15 third-octave bands from 150 Hz over 0.4 s, at 10 kHz,
where the recording is not silent: a plain number up to 1, which is a perfect copy. Higher is
better; above 0.9 nearly every word is understood. Computed by pystoi.
"""

import warnings

import numpy as np

from processors.scoring.metrics import Copy, Metric, Value, mean_over, value_of

METRIC = Metric(
    "", better="higher", input="copy", needs="0.4 s of recorded speech", packages=("pystoi",)
)


def score(copy: Copy) -> Value | None:
    """Scores one copy; None where less than 0.4 s of the recording is not silent."""

    def compare(wav: np.ndarray, wav_hat: np.ndarray) -> float | None:
        return stoi(wav, wav_hat, copy.mel.sample_rate)

    return value_of(mean_over(copy.pieces(), compare))


def stoi(wav: np.ndarray, wav_hat: np.ndarray, sample_rate: int) -> float | None:
    """Intelligibility of a copy.

    Args:
        wav: Recording, (S,) float32 in [-1, 1].
        wav_hat: Its copy, (S,).
        sample_rate: Hz, of both.

    Returns:
        At most 1; None where less than 0.4 s of the recording is not silent.
    """
    from pystoi import stoi as reference_code

    if len(wav) < 0.4 * sample_rate or not wav.any():
        return None
    with warnings.catch_warnings():
        # pystoi warns and returns 1e-5 where too little speech is left
        warnings.simplefilter("error", RuntimeWarning)
        try:
            return float(reference_code(wav, wav_hat, sample_rate))
        except RuntimeWarning:
            return None
