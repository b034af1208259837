"""Warns of pitch beyond that of a speaker's recordings, which models hardly follow."""

from collections.abc import Sequence

import numpy as np

from processors.dataset.statistics import CorpusStats
from processors.text.nearest_phones import is_voiced
from utils.logging import get_logger

_DEVIATIONS = 2  # from the mean; 95 % of normally distributed pitch are within
_SHARE = 0.2  # of the voiced frames of a text, that must be beyond for a warning


class RangeWarning:
    """Warns once if the requested pitch is not that of the speaker.

    Args:
        stats: Of the recordings; None: not known, no warning.
    """

    def __init__(self, stats: CorpusStats | None, *, in_letters: bool) -> None:
        self._speakers = {} if stats is None else stats.speakers
        self._in_letters = in_letters

    def check(
        self, speaker: str, phones: Sequence[str], durations: np.ndarray, f0: np.ndarray | None
    ) -> None:
        """Warns if more than a fifth of the voiced frames are beyond two standard deviations.

        Args:
            phones: Phones and pauses, N of them.
            durations: Frames per phone, (N,), their sum is T.
            f0: Hz, (T,); None if the model predicts none.
        """
        if speaker not in self._speakers or f0 is None:
            return
        pitch = self._speakers[speaker].f0_phone
        low, high = pitch.mean - _DEVIATIONS * pitch.std, pitch.mean + _DEVIATIONS * pitch.std
        voiced = [is_voiced(name, in_letters=self._in_letters) for name in phones]
        f0 = f0[np.repeat(voiced, durations)]
        f0 = f0[f0 > 0]  # given pitch may make any phone unvoiced
        beyond = np.count_nonzero((f0 < low) | (f0 > high)) / max(len(f0), 1)
        if beyond > _SHARE:
            self._speakers = {}
            get_logger(__name__).warning(
                "%.0f %% of the requested pitch is beyond the %.0f to %.0f Hz of most recordings of"
                " %s, where a voice may not follow; request pitch nearer to it",
                100 * beyond,
                low,
                high,
                speaker,
            )
