"""PESQ of a vocoder while it trains, where the package is installed."""

import functools

from torch import Tensor

from processors.metrics.pesq import METRIC, pesq
from utils.logging import get_logger

N_SCORED = 20  # recordings that a process scores: a second of one core


class PesqScores:
    """Scores the first recordings that validation meets, the same ones each time.

    Args:
        sample_rate: Of the recordings, Hz.
    """

    def __init__(self, sample_rate: int) -> None:
        self._sample_rate = sample_rate
        self._ids: set[str] = set()

    def score(self, id: str, wav: Tensor, wav_hat: Tensor) -> float | None:
        """Compares a recording with its copy, (S,) and (S,).

        Returns:
            None where the recording is not among the first, where one of both is silent, and
            without the package.
        """
        if not _is_installed():
            return None
        if len(self._ids) < N_SCORED:
            self._ids.add(id)
        if id not in self._ids:
            return None
        return pesq(wav.float().cpu().numpy(), wav_hat.float().cpu().numpy(), self._sample_rate)


@functools.cache  # says so once
def _is_installed() -> bool:
    missing = METRIC.missing()
    if missing:
        get_logger(__name__).info(
            "validation without PESQ, which is not installed (pip install %s)", " ".join(missing)
        )
    return not missing
