"""What is heard in speech: by pocketsphinx, by a recogniser of the user's, or by transcripts.

pocketsphinx is the offline recogniser, with the English model that its wheel carries. It is old
and weak: it misreads about a fifth of the words of clean recordings.
"""

import functools
import unicodedata
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from processors.records import TimedPhone
from processors.scoring.user_models import Recogniser, UserFunctionError, UserModels
from processors.text.normalize import clean_characters, normalize_english
from utils.errors import InputError
from utils.files import read_text

RECOGNISER_RATE = 16000  # Hz, of pocketsphinx's acoustic model
RECORDED = "recorded"  # folder of the transcripts of recordings, in that of transcripts
_LEVEL = 0.9  # peak: a common one keeps a quiet recording and a loud one comparable
_SILENT_PEAK = 1e-6


@dataclass(frozen=True)
class LabelledSpeech:
    """A sound, and what is said in it.

    Attributes:
        wav: (S,) float32 in [-1, 1].
        sample_rate: Hz.
        text: As written; empty where nobody wrote it down.
        language: espeak language code; empty where unknown.
        phones: Phones and pauses with times; none where nobody aligned them.
        id: Of the utterance.
        recorded: Whether this is the recording.
        plugins: The user's recogniser and encoder.
    """

    wav: np.ndarray
    sample_rate: int
    text: str
    language: str
    phones: tuple[TimedPhone, ...] = ()
    id: str = ""
    recorded: bool = False
    user_models: UserModels = field(default_factory=UserModels)

    @functools.cached_property
    def hypothesis(self) -> str | None:
        """What is heard, as the recogniser wrote it, once for all metrics; None: nobody listens."""
        return hear(self)


def hear(speech: LabelledSpeech) -> str | None:
    """What is said in a sound, as whoever listens writes it.

    That is the transcript where there is a folder of them, else the user's recogniser, else
    pocketsphinx.

    Returns:
        The text; None where nobody listens: pocketsphinx knows English only, and the folder of
        transcripts, or that of the recordings in it, may be missing altogether.

    Raises:
        InputError: If the transcript is missing or not readable.
        UserFunctionError: If the user's recogniser fails, or gives something else than text.
    """
    plugins = speech.user_models
    if plugins.transcripts is not None:
        return _transcript(plugins.transcripts, speech)
    if plugins.recogniser is not None:
        return _ask(plugins.recogniser, speech)
    return recognise(speech.wav, speech.sample_rate) if is_english(speech.language) else None


def is_silent(wav: np.ndarray) -> bool:
    """Whether there is nothing in a sound, (S,), that could be heard."""
    return bool(np.abs(wav).max(initial=0) < _SILENT_PEAK)


def is_english(language: str) -> bool:
    """Whether an espeak language code is one of English."""
    return language.split("-")[0] == "en"


def words_of(text: str, language: str) -> str:
    """A text as it is compared: lower-case words without punctuation, English in full.

    "It's $5." is "it's five dollars" in English; other languages keep their figures.
    """
    if is_english(language):
        try:
            text = normalize_english(text)
        except InputError:  # a letter that is not Latin, which a recogniser may well have heard
            text = clean_characters(text)
    else:
        text = clean_characters(text)
    letters = (char if _belongs(char) else " " for char in text.lower())
    return " ".join(word.strip("'") for word in "".join(letters).split() if word.strip("'"))


def recognise(wav: np.ndarray, sample_rate: int) -> str:
    """The words that pocketsphinx reads in a sound, (S,) float32."""
    if is_silent(wav):
        return ""  # where it would read "dog"
    decoder = _decoder()
    decoder.reinit_feat()  # its statistics of noise and level adapt to what it heard before
    decoder.start_utt()
    decoder.process_raw(pcm_of(wav, sample_rate), full_utt=True)
    decoder.end_utt()
    hypothesis = decoder.hyp()
    return hypothesis.hypstr if hypothesis is not None else ""


@functools.cache
def _decoder() -> Any:  # noqa: ANN401  # a type of pocketsphinx
    """One per process: reading its model takes 0.3 s, a fifth of the work for a short sentence."""
    from pocketsphinx import Config, Decoder

    return Decoder(Config(samprate=RECOGNISER_RATE, loglevel="FATAL"))


def transcript_of(folder: Path, id: str, *, recorded: bool) -> Path:
    """Where what was heard in an utterance stands, or in its recording."""
    return (folder / RECORDED if recorded else folder) / f"{id}.txt"


def _transcript(folder: Path, speech: LabelledSpeech) -> str | None:
    path = transcript_of(folder, speech.id, recorded=speech.recorded)
    if not path.parent.exists():
        return None
    try:
        return read_text(path)
    except InputError as error:
        raise InputError(
            f"{error}; the transcripts of {folder} must hold one of every utterance"
        ) from error


def pcm_of(wav: np.ndarray, sample_rate: int) -> bytes:
    """A sound that is not silent as 16-bit samples at the recogniser's rate and level."""
    import soxr

    wav = soxr.resample(wav, sample_rate, RECOGNISER_RATE)  # another (S,)
    return (wav * (_LEVEL * 32767 / np.abs(wav).max())).astype("<i2").tobytes()


def _ask(recogniser: Recogniser, speech: LabelledSpeech) -> str:
    heard = recogniser(speech.wav, speech.sample_rate, speech.language)
    if not isinstance(heard, str):
        name = getattr(recogniser, "name", repr(recogniser))
        raise UserFunctionError(
            f"{name}: gave {type(heard).__name__} for {speech.id}; a recogniser gives the text "
            "that it heard, as str"
        )
    return heard


def _belongs(char: str) -> bool:
    """Whether a character is part of a word; apostrophes around it are stripped later."""
    return char == "'" or unicodedata.category(char)[0] in "LMN"
