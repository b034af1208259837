"""Sounds that are not as the recordings are: what is done about them, before the work."""

from collections import Counter
from collections.abc import Sequence

import soundfile

from processors.scoring.utterance_scorer import EvaluatedUtterance
from utils.logging import get_logger


def tell_formats(system: str, items: Sequence[EvaluatedUtterance], sample_rate: int) -> None:
    """Says which sounds of a system have another sample rate than recordings, or channels.

    Args:
        system: Its name.
        items: What is scored.
        sample_rate: Of recordings, Hz.
    """
    own = [item for item in items if system in item.spoken]
    n_mixed, n_of_rate = 0, Counter[int]()
    for item in own:
        try:
            sound = soundfile.info(item.spoken[system].file)
        except soundfile.LibsndfileError:  # reading it tells, with all others like it
            continue
        n_mixed += sound.channels > 1
        n_of_rate[sound.samplerate] += item.recorded is not None
    for rate, n in sorted(n_of_rate.items()):
        if n and rate != sample_rate:
            _log.info(
                "%s: %d of %d have %d Hz, and recordings %d Hz: pairs are compared at the lower "
                "rate",
                *(system, n, len(own), rate, sample_rate),
            )
    if n_mixed:
        _log.info("%s: channels of %d of %d are averaged to mono", system, n_mixed, len(own))


_log = get_logger(__name__)
