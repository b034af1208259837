"""Speech with its labels, and its recognition.

The recogniser is pocketsphinx with the English model of its wheel, unless the user gives another or
transcripts. It runs offline; it is old and misreads about a fifth of the words of clean recordings.
"""

import functools
import unicodedata
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from processors.audio.speech_level import SpeechActivity, speech_activity
from processors.metrics.recognition.user_models import UserFunctionError, UserModels
from processors.metrics.records import Metric, MetricValue
from processors.records import TimedPhone
from processors.text.normalisation.english import is_english, normalise_english
from processors.text.tokens import clean_characters
from utils.errors import InputError
from utils.files import read_text

if TYPE_CHECKING:  # it imports packages that training does not need
    from processors.metrics.signals.acoustic_features import AcousticFeatures

_RECOGNISER_RATE = 16000  # Hz, of pocketsphinx's acoustic model
_LEVEL = 0.9  # peak: the same for quiet and loud recordings
_SILENT_PEAK = 1e-6


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
        hypothesis = models.recogniser(self.wav, self.sample_rate, self.language)
        if not isinstance(hypothesis, str):
            raise UserFunctionError(
                f"{models.recogniser}: returned {type(hypothesis).__name__} for {self.id}; a "
                "recogniser returns the text as str"
            )
        return hypothesis

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
    try:
        text = normalise_english(text) if is_english(language) else clean_characters(text)
    except InputError:  # a letter that is not Latin, which a recogniser may return
        text = clean_characters(text)
    # letters, marks and numbers; of apostrophes, those inside words
    characters = (
        c if c == "'" or unicodedata.category(c)[0] in "LMN" else " " for c in text.lower()
    )
    return " ".join(word.strip("'") for word in "".join(characters).split() if word.strip("'"))


def recognise(wav: np.ndarray, sample_rate: int) -> str:
    """Recognises English words with pocketsphinx in a signal, (S,)."""
    if is_silent(wav):
        return ""  # pocketsphinx returns "dog"
    hypothesis = decode(recogniser(), wav, sample_rate)
    return "" if hypothesis is None else hypothesis.hypstr


def is_silent(wav: np.ndarray) -> bool:
    """Returns whether a signal, (S,), holds no audible sample."""
    return bool(np.abs(wav).max(initial=0) < _SILENT_PEAK)


@functools.cache
def recogniser(**options: object) -> Any:  # noqa: ANN401  # a type of pocketsphinx
    """Returns a decoder of pocketsphinx; one per process, since reading its model takes 0.3 s."""
    from pocketsphinx import Config, Decoder

    return Decoder(Config(samprate=_RECOGNISER_RATE, loglevel="FATAL", **options))


def decode(decoder: Any, wav: np.ndarray, sample_rate: int) -> Any:  # noqa: ANN401
    """Decodes a signal, (S,), not silent, at a fixed peak; None where nothing is recognised."""
    import soxr

    wav = soxr.resample(wav, sample_rate, _RECOGNISER_RATE)  # another (S,)
    pcm = (wav * (_LEVEL * 32767 / np.abs(wav).max())).astype("<i2").tobytes()
    decoder.reinit_feat()  # forget the noise and level that it adapted to
    decoder.start_utt()
    decoder.process_raw(pcm, full_utt=True)
    decoder.end_utt()
    return decoder.hyp()
