"""Character error: the share of letters that a recogniser of speech misreads.

Substitutions, deletions and insertions per character of the text, the spaces between words
included, in percent; lower is better, and more than 100 is possible. The mean over utterances is
one over characters. Text and recogniser are those of word error (`wer`), which
counts a word with one wrong ending as much as a word that was never said; this one does not. It
is the measure of languages that are written without spaces.
"""

from processors.scoring.metrics import Metric, Value
from processors.scoring.metrics.wer import METRIC as WORD_ERROR
from processors.scoring.recognition import LabelledSpeech, words_of

METRIC = Metric(
    "%", better="lower", input="speech", needs=WORD_ERROR.needs, packages=WORD_ERROR.packages
)


def score(speech: LabelledSpeech) -> Value | None:
    """Judges one sound; None where it has no text, or nobody listens to its language."""
    words = words_of(speech.text, speech.language)
    if not words or speech.hypothesis is None:
        return None
    heard = words_of(speech.hypothesis, speech.language)
    return Value(100 * character_error(words, heard), len(words), heard)


def character_error(words: str, heard: str) -> float:
    """Substitutions, deletions and insertions per character of a text that is not empty."""
    from jiwer import cer

    return float(cer(words, heard))
