"""Speech with its labels, and its recognition.

The recogniser is pocketsphinx with the English model of its wheel, unless the user gives another or
transcripts. It runs offline; it is old and misreads about a fifth of the words of clean recordings.

Where the text is known, a grammar makes pocketsphinx follow it; skipping or repeating words has a
fixed probability. This is far more reliable than free recognition: it only has to decide whether
the words of the text are there. A probability of 1e-10 flags 5 % of clean recordings, 1e-18 less
than 1 %, at the same rate of faults of two words that are found (`processors/metrics/checks.py`);
at 1e-30 none are found.
"""

import functools
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from config.text import is_english
from processors.audio.speech_level import SpeechActivity, speech_activity
from processors.metrics.recognition.user_models import UserModels, recognise_text
from processors.metrics.records import Metric, MetricValue
from processors.records import TimedPhone
from processors.text.normalisation.english import normalise_english
from processors.text.tokens import clean_characters
from utils.files import read_text

if TYPE_CHECKING:  # it imports packages that training does not need
    from processors.metrics.signals.acoustic_features import AcousticFeatures
    from processors.text.g2p import LexiconPhonemizer

_RECOGNISER_RATE = 16000  # Hz, of pocketsphinx's acoustic model
_LEVEL = 0.9  # peak: the same for quiet and loud recordings
_SILENT_PEAK = 1e-6
PRICE = 1e-18  # probability of skipping words, and of going back, at each word
LONGEST = 6  # words that are skipped or repeated at once
_FRAME_S = 0.01
_GRAMMAR = "text"
# Of pocketsphinx: the words as they are found; each signal by itself, not adapted to those before;
# the grammar's probabilities as they are.
_OPTIONS = {"lm": None, "bestpath": False, "cmn": "batch", "lw": 1.0, "wip": 1.0, "pip": 1.0}
RecognisedWord = tuple[int, float]  # its place in the words of the text, and its start in seconds


@dataclass(frozen=True)
class LabelledSpeech:
    """A signal with its text and phones; what several metrics and checks need is computed once."""

    wav: np.ndarray  # (S,) float32 in [-1, 1]
    sample_rate: int  # Hz
    text: str  # as written; empty where unknown
    language: str  # espeak language code; empty where unknown
    phones: tuple[TimedPhone, ...] = ()  # phones and pauses with times; empty where unknown
    id: str = ""
    # the user's recogniser and speaker encoder, and the transcripts of this kind of speech
    user_models: UserModels = field(default_factory=UserModels)
    _values: dict[str, MetricValue | None] = field(default_factory=dict, init=False, repr=False)

    def score(self, metric: Metric) -> MetricValue | None:
        """Scores the signal by a metric, once."""
        if metric.name not in self._values:
            self._values[metric.name] = metric.score(self)
        return self._values[metric.name]

    @functools.cached_property
    def words(self) -> str:
        """The normalised text; empty where unknown."""
        return words_of(self.text, self.language)

    @functools.cached_property
    def hypothesis(self) -> str | None:
        """The text as a recogniser wrote it.

        By the transcript where the user gives a folder of them, else by the user's recogniser, else
        by pocketsphinx. None without a recogniser of the language (pocketsphinx has English only)
        or where the folder of transcripts for this kind of speech does not exist.
        """
        models = self.user_models
        if models.transcripts is not None:
            exists = models.transcripts.exists()
            return read_text(models.transcripts / f"{self.id}.txt") if exists else None
        if models.recogniser is None:
            return recognise(self.wav, self.sample_rate) if is_english(self.language) else None
        return recognise_text(models.recogniser, self.wav, self.sample_rate, self.language, self.id)

    @functools.cached_property
    def recognised_words(self) -> str | None:
        """The normalised hypothesis; None without a recogniser."""
        return None if self.hypothesis is None else words_of(self.hypothesis, self.language)

    @functools.cached_property
    def features(self) -> "AcousticFeatures":
        """Acoustic features, for comparisons with another signal."""
        from processors.metrics.signals.acoustic_features import AcousticFeatures

        return AcousticFeatures(self.wav, self.sample_rate, self.phones, self.user_models.encoder)

    @functools.cached_property
    def activity(self) -> SpeechActivity | None:
        """Start, end and pauses of the speech; None for silence."""
        return speech_activity(self.wav, self.sample_rate)


def words_of(text: str, language: str) -> str:
    """Normalises a text for comparison: "It's $5." becomes "it's five dollars".

    Numbers and abbreviations are spelt out in English only.
    """
    english = is_english(language)  # a recogniser may return other scripts
    text = normalise_english(text, unknown="speak") if english else clean_characters(text)
    # letters, marks and numbers; of apostrophes, those inside words
    letters = (c if c == "'" or unicodedata.category(c)[0] in "LMN" else " " for c in text.lower())
    return " ".join(word.strip("'") for word in "".join(letters).split() if word.strip("'"))


def recognise(wav: np.ndarray, sample_rate: int) -> str:
    """Recognises English words with pocketsphinx in a signal, (S,)."""
    if is_silent(wav):
        return ""  # pocketsphinx returns "dog"
    hypothesis = decode(recogniser(), _pcm(wav, sample_rate))
    return "" if hypothesis is None else hypothesis.hypstr


def is_silent(wav: np.ndarray) -> bool:
    """Returns whether a signal, (S,), holds no audible sample."""
    return bool(np.abs(wav).max(initial=0) < _SILENT_PEAK)


@functools.cache
def recogniser(**options: object) -> Any:  # noqa: ANN401  # a type of pocketsphinx
    """Returns a decoder of pocketsphinx; one per process and options: its model takes 0.3 s."""
    from pocketsphinx import Config, Decoder

    return Decoder(Config(samprate=_RECOGNISER_RATE, loglevel="FATAL", **options))


def _pcm(wav: np.ndarray, sample_rate: int) -> np.ndarray:
    """Returns a signal, (S,), not silent, as samples for `decode`, of a fixed peak."""
    import soxr

    wav = soxr.resample(wav, sample_rate, _RECOGNISER_RATE)  # another (S,)
    return (wav * (_LEVEL * 32767 / np.abs(wav).max())).astype("<i2")


def decode(decoder: Any, pcm: np.ndarray) -> Any:  # noqa: ANN401
    """Decodes 16-bit samples of 16 kHz, (S,); returns None where nothing is recognised."""
    decoder.reinit_feat()  # forget the noise and level that it adapted to
    decoder.start_utt()
    decoder.process_raw(pcm.tobytes(), full_utt=True)
    decoder.end_utt()
    return decoder.hyp()


def recognised_words(
    words: Sequence[str], wav: np.ndarray, sample_rate: int
) -> list[RecognisedWord] | None:
    """Finds the words of a text, normalised by `words_of`, in a signal.

    In the order in which they are spoken; None where the grammar has no path through the signal.
    """
    if is_silent(wav):
        return None
    decoder = recogniser(**_OPTIONS)
    for word in words:
        if decoder.lookup_word(word) is None:
            phones = (phone.rstrip("012") for phone in _pronouncer()([word])[0].phones)
            decoder.add_word(word, " ".join(phones), True)
    grammar = decoder.create_fsg(_GRAMMAR, len(words), 2 * len(words), _arcs(words))
    decoder.add_fsg(_GRAMMAR, grammar)
    decoder.activate_search(_GRAMMAR)
    if decode(decoder, _pcm(wav, sample_rate)) is None:
        return None
    # pauses and noises are in brackets, alternative pronunciations are like "the(2)"
    parts = [(part.word, part.start_frame) for part in decoder.seg() if part.word[0] not in "(<["]
    indices = word_indices(words, [word.partition("(")[0] for word, _ in parts])
    starts_s = (frame * _FRAME_S for _, frame in parts)
    return [*zip(indices, starts_s, strict=True)] or None


def word_indices(words: Sequence[str], recognised: Sequence[str]) -> list[int]:
    """Returns indices of recognised words in a text, with the fewest skipped or repeated words."""
    cheapest: dict[int, tuple[int, list[int]]] = {-1: (0, [])}  # by the index of the last word
    for word in recognised:
        cheapest = {
            index: min(
                (cost + abs(index - last - 1), [*path, index])
                for last, (cost, path) in cheapest.items()
            )
            for index, other in enumerate(words)
            if other == word
        }
    left = len(words) - 1
    return min((cost + left - last, path) for last, (cost, path) in cheapest.items())[1]


def _arcs(words: Sequence[str]) -> list[tuple[Any, ...]]:
    """Returns the grammar, as (from, to, probability[, word]) each.

    Each word has two states: 0 to N - 1 before it, with the word as the only arc, and N to 2 N
    between words, with arcs that continue, skip or go back. So two jumps always have a word
    between them.
    """
    N = len(words)
    arcs: list[tuple[Any, ...]] = []
    for i, word in enumerate(words):
        arcs += [(i, N + i + 1, 1.0, word), (N + i, i, 1.0)]
        arcs += [(N + i, i + n, PRICE) for n in range(1, LONGEST + 1) if i + n < N]
        arcs += [(N + i, 2 * N, PRICE)] if i > 0 and N - i <= LONGEST else []
        arcs += [(N + i + 1, i + 1 - n, PRICE) for n in range(1, LONGEST + 1) if i + 1 >= n]
    return arcs


@functools.cache
def _pronouncer() -> "LexiconPhonemizer":
    """Returns the front end's, for words that pocketsphinx's dictionary lacks."""
    from processors.text.g2p import LexiconPhonemizer

    return LexiconPhonemizer()
