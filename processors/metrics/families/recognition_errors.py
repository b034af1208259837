"""Error rates of a speech recogniser, in percent of the words or characters of the text.

Substitutions, deletions and insertions; more than 100 is possible. The mean over utterances weights
them by their words or characters. jiwer counts them in lower-case text without punctuation, with
English numbers and abbreviations spelt out.

The recogniser is pocketsphinx (processors.metrics.recognition), unless the user gives another. It
is old and weak: it misreads a fifth to a half of the words of clean recordings. Use the difference
between synthesised and recorded speech; 0 means that both are recognised equally well.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from processors.metrics.records import MetricValue, SpeechMetric

if TYPE_CHECKING:
    from processors.metrics.recognition.labelled_speech import LabelledSpeech

PACKAGES = ("jiwer", "pocketsphinx", "soxr")
_NEEDS = "a text in English, or in the language of a recogniser or of transcripts of one's own"


def score_wer(speech: "LabelledSpeech") -> MetricValue | None:
    """Word error rate of a speech recogniser; lower is better."""
    return _error_rate(speech, word_error, lambda words: len(words.split()))


def score_cer(speech: "LabelledSpeech") -> MetricValue | None:
    """Character error rate of a speech recogniser, spaces between words included; lower is better.

    A wrong ending costs less here than a missing word, which `wer` counts alike; languages written
    without spaces need this metric.
    """
    return _error_rate(speech, character_error, len)


def _error_rate(
    speech: "LabelledSpeech", error: Callable[[str, str], float], count: Callable[[str], int]
) -> MetricValue | None:
    """Percent, with the hypothesis as the note; None without a text, or a recogniser of it."""
    words, hypothesis = speech.words, speech.recognised_words
    if not words or hypothesis is None:
        return None
    return MetricValue(100 * error(words, hypothesis), count(words), hypothesis)


def word_error(words: str, hypothesis: str) -> float:
    """Substitutions, deletions and insertions per word of a normalised text, which is not empty."""
    from jiwer import wer

    return float(wer(words, hypothesis))


def character_error(words: str, hypothesis: str) -> float:
    """Substitutions, deletions and insertions per character of the text."""
    from jiwer import cer

    return float(cer(words, hypothesis))


METRICS = (
    SpeechMetric("wer", score_wer, "lower", "%", _NEEDS, packages=PACKAGES),
    SpeechMetric("cer", score_cer, "lower", "%", _NEEDS, packages=PACKAGES),
)
