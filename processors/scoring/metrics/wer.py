"""Word error rate of a speech recogniser.

Substitutions, deletions and insertions per word of the text, in percent; lower is better, and more
than 100 is possible. The mean over utterances weights them by their words. jiwer counts them in
lower-case words without punctuation, with English numbers and abbreviations spelt out.

The recogniser is pocketsphinx (processors.scoring.recognition), unless the user gives another. It
is old and weak: it misreads a fifth to a half of the words of clean recordings. Use the difference
between synthesised and recorded speech; 0 means that both are recognised equally well.
"""

from collections.abc import Callable

from processors.scoring.metrics import Metric, Value
from processors.scoring.recognition import LabelledSpeech, words_of

METRIC = Metric(
    "%",
    better="lower",
    input="speech",
    needs="a text in English, or in the language of a recogniser or of transcripts of one's own",
    packages=("jiwer", "pocketsphinx", "soxr"),
)


def score(speech: LabelledSpeech) -> Value | None:
    """Scores one signal; None without a text, or a recogniser of its language."""
    return error_rate(speech, word_error, lambda words: len(words.split()))


def error_rate(
    speech: LabelledSpeech, error: Callable[[str, str], float], count: Callable[[str], int]
) -> Value | None:
    """Error rate of the recogniser on one signal.

    Args:
        speech: Signal with its text.
        error: Error rate of a hypothesis, from the normalised text and hypothesis.
        count: Units in the normalised text: the weight of the utterance.

    Returns:
        Percent, with the normalised hypothesis as the note; None without a text or a recogniser.
    """
    words = words_of(speech.text, speech.language)
    if not words or speech.hypothesis is None:
        return None
    hypothesis = words_of(speech.hypothesis, speech.language)
    return Value(100 * error(words, hypothesis), count(words), hypothesis)


def word_error(words: str, hypothesis: str) -> float:
    """Substitutions, deletions and insertions per word of the text.

    Args:
        words: Normalised text, not empty.
        hypothesis: Normalised output of the recogniser.
    """
    from jiwer import wer

    return float(wer(words, hypothesis))
