"""Character error rate of a speech recogniser.

Substitutions, deletions and insertions per character of the text, spaces between words included,
in percent; lower is better, and more than 100 is possible. The mean over utterances weights them
by their characters. Texts are normalised and recognised as for `wer`. A wrong ending costs less
here than a missing word, which `wer` counts alike; languages written without spaces need this
metric.
"""

from processors.scoring.metrics import Metric, Value
from processors.scoring.metrics.wer import METRIC as WORD_ERROR
from processors.scoring.metrics.wer import error_rate
from processors.scoring.recognition import LabelledSpeech

METRIC = Metric(
    "%", better="lower", input="speech", needs=WORD_ERROR.needs, packages=WORD_ERROR.packages
)


def score(speech: LabelledSpeech) -> Value | None:
    """Scores one signal; None without a text, or a recogniser of its language."""
    return error_rate(speech, character_error, len)


def character_error(words: str, hypothesis: str) -> float:
    """Substitutions, deletions and insertions per character of the text.

    Args:
        words: Normalised text, not empty.
        hypothesis: Normalised output of the recogniser.
    """
    from jiwer import cer

    return float(cer(words, hypothesis))
