"""Word error: the share of words that a recogniser of speech misreads.

Substitutions, deletions and insertions per word of the text, in percent; lower is better, and
more than 100 is possible. The mean over utterances is one over words. The recogniser is
pocketsphinx with the English model that its wheel carries. It is old and weak (a fifth to a half
of the words of clean recordings are misread), so only the difference between synthesised and
recorded speech says something: 0 means that the recogniser reads both alike.
"""

import re

import numpy as np

from processors.metrics import Metric, Speech, Value
from processors.text.normalize import normalize_english

METRIC = Metric(
    "%",
    better="lower",
    judges="speech",
    needs="a text in English",
    packages=("jiwer", "pocketsphinx", "soxr"),
)
RECOGNISER_RATE = 16000  # Hz, of pocketsphinx's acoustic model
_LEVEL = 0.9  # peak: a common one keeps a quiet recording and a loud one comparable
_SILENT_PEAK = 1e-6


def score(speech: Speech) -> Value | None:
    """Judges one sound; None where it has no text, or one that is not English."""
    if speech.language.split("-")[0] != "en":
        return None
    words = words_of(normalize_english(speech.text))
    if not words:
        return None
    heard = recognise(speech.wav, speech.sample_rate)
    return Value(100 * word_error(words, heard), len(words.split()), heard)


def word_error(words: str, heard: str) -> float:
    """Substitutions, deletions and insertions per word of a text that is not empty."""
    from jiwer import wer

    return float(wer(words, heard))


def words_of(text: str) -> str:
    """Lower-case words without punctuation, as the recogniser writes them."""
    return " ".join(re.findall(r"[a-z]+(?:'[a-z]+)*", text.lower().replace("’", "'")))


def recognise(wav: np.ndarray, sample_rate: int) -> str:
    """The words that pocketsphinx reads in a sound, (S,) float32."""
    from pocketsphinx import Config, Decoder

    if np.abs(wav).max(initial=0) < _SILENT_PEAK:
        return ""  # where it would read "dog"
    # A fresh decoder for each sound: its noise statistics adapt to what it heard before.
    decoder = Decoder(Config(samprate=RECOGNISER_RATE, loglevel="FATAL"))
    decoder.start_utt()
    decoder.process_raw(_pcm_of(wav, sample_rate).tobytes(), full_utt=True)
    decoder.end_utt()
    hypothesis = decoder.hyp()
    return words_of(hypothesis.hypstr) if hypothesis is not None else ""


def _pcm_of(wav: np.ndarray, sample_rate: int) -> np.ndarray:
    """The sound as 16-bit integers at the recogniser's rate, (S,)."""
    import soxr

    wav = soxr.resample(wav, sample_rate, RECOGNISER_RATE)  # another (S,)
    return (wav * (_LEVEL * 32767 / np.abs(wav).max())).astype(np.int16)
