"""Word error: the share of words that a recogniser of speech misreads.

Substitutions, deletions and insertions per word of the text, in percent; lower is better, and
more than 100 is possible. The mean over utterances is one over words. Counted by jiwer, of
lower-case words without punctuation, numbers and abbreviations of English in full.

Without a recogniser of the user's, pocketsphinx listens (processors.scoring.recognition). It is
old and weak (a fifth to a half of the words of clean recordings are misread), so only the
difference between synthesised and recorded speech says something: 0 means that it reads both alike.
"""

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
    """Judges one sound; None where it has no text, or nobody listens to its language."""
    words = words_of(speech.text, speech.language)
    if not words or speech.hypothesis is None:
        return None
    heard = words_of(speech.hypothesis, speech.language)
    return Value(100 * word_error(words, heard), len(words.split()), heard)


def word_error(words: str, heard: str) -> float:
    """Substitutions, deletions and insertions per word of a text that is not empty."""
    from jiwer import wer

    return float(wer(words, heard))
