"""Speech by espeak-ng, whose phones and their times are known to the sample.

espeak reports the onset of each phone, and these phones are aligned. Compared with the place where
the sound changes most within 30 ms (3,500 phones of English), its events have two peculiarities:

- A short silence that belongs to a phone, such as the closure of a stop, precedes the event. Here
  the phone begins with it: at the event of its word, or where the samples become exactly 0.
  Thus 99 % of changes between vowels and voiceless stops are within 10 ms, 90 % at sibilants.
- The event of a vowel after a nasal or a liquid comes after its transition, 20 ms after the sound
  has changed (median, nasals). That of an `l` after a vowel can come near its end, 44 ms late
  (median, Spanish), and a nasal that is part of its vowel has an event of no length. The onsets
  of these phones are treated as unknown.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import nan
from pathlib import Path
from typing import NamedTuple

import numpy as np
import soundfile

from preprocessors.manifest import Utterance
from tools.benchmarks.boundaries.clips import Clip, WordOnsets
from tools.benchmarks.boundaries.espeak_library import WORD, Event, Speech, speak

SENTENCES = Path(__file__).parent / "sentences"
LANGUAGES = ("de", "es", "fr-fr", "nl")  # those with sentences there
_VOICES = {"fr-fr": "fr"}  # if the name differs from the language
_MARKS = ".,;:?!"
_VOWELS = tuple("aeiouyæøœɐɑɒɔəɚɛɜɞɤɨɪɯɵʉʊʌʏᵻ")
_NASALS_AND_LIQUIDS = tuple("mnŋɲɳlɫɭʎrɹɾɻʀʁjwɥʋ")
_LATERALS = tuple("lɫɭ")
_STRESS = "ˈˌ"
_BEGINNING = Event(WORD, 0, 0, "")


class _SpokenWord(NamedTuple):
    place: int  # in the text
    phones: tuple[str, ...]
    starts: tuple[float, ...]  # samples


def read_sentences(language: str) -> list[str]:
    """The sentences of a language, one a line."""
    return (SENTENCES / f"{language}.txt").read_text(encoding="utf-8").splitlines()


def synthetic_clips(
    texts: Sequence[str], language: str, folder: Path, variants: Sequence[str] = ("",)
) -> tuple[Clip, ...]:
    """Synthesises texts with espeak.

    Args:
        texts: Sentences.
        language: espeak language code.
        folder: Where the recordings go.
        variants: Of espeak's voice, such as "f1", a female one; each speaks all texts.
            Those with an echo (f2 to f5) are never silent.
    """
    return tuple(
        _clip(text, language, variant, folder / f"{language}-{variant}{number:04d}.wav")
        for variant in variants
        for number, text in enumerate(texts)
    )


def _clip(text: str, language: str, variant: str, audio: Path) -> Clip:
    voice = _VOICES.get(language, language)
    speech = speak(text, f"{voice}+{variant}" if variant else voice)
    soundfile.write(audio, speech.wav, speech.sample_rate)
    words = list(_words(speech))
    speaker = f"espeak-{language}-{variant}"
    utterance = Utterance(audio.stem, audio, _text_of(words, text), speaker, language)
    return Clip(utterance, tuple(_heard(word, speech.sample_rate) for word in words))


def _heard(word: _SpokenWord, sample_rate: int) -> WordOnsets:
    return WordOnsets(" ".join(word.phones), tuple(start / sample_rate for start in word.starts))


def _text_of(words: Sequence[_SpokenWord], text: str) -> str:
    """The phones of each word in braces, with the punctuation of the text."""
    nexts = [word.place for word in words[1:]] + [len(text)]
    spoken = []
    for word, end in zip(words, nexts, strict=True):
        marks = [char for char in text[word.place : end] if char in _MARKS]
        spoken.append("{" + " ".join(word.phones) + "}" + "".join(marks[-1:]))
    return " ".join(spoken)


def _words(speech: Speech) -> Iterator[_SpokenWord]:
    """The words that have phones; events without a name are silence."""
    place, last = 0, ""
    phones: list[tuple[str, float]] = []
    end = Event(WORD, len(speech.wav), 0, "")
    for (before, event), (_, after) in pairwise(pairwise((_BEGINNING, *speech.events, end))):
        if event.kind == WORD:
            if phones:
                yield _spoken_word(place, phones)
            phones, place = [], event.place
            continue
        if event.name:
            known = event.sample < after.sample and not _hides_start(last, event.name)
            start = _start(speech.wav, before, event) if known else nan
            phones.append((event.name.replace("-", ""), start))  # "-": without stress
        last = event.name
    if phones:
        yield _spoken_word(place, phones)


def _spoken_word(place: int, phones: Sequence[tuple[str, float]]) -> _SpokenWord:
    names, starts = zip(*phones, strict=True)
    return _SpokenWord(place, names, starts)


def _hides_start(before: str, phone: str) -> bool:
    """Whether the event of a phone comes after its transition."""
    if before.lstrip(_STRESS).startswith(_VOWELS):
        return phone.startswith(_LATERALS)
    return before.startswith(_NASALS_AND_LIQUIDS) and phone.lstrip(_STRESS).startswith(_VOWELS)


def _start(wav: np.ndarray, before: Event, phone: Event) -> int:
    """Where a phone begins, with the silence that espeak makes for it; in samples."""
    if before.kind == WORD:
        return before.sample
    if not before.name:  # a silence of its own
        return phone.sample
    sound = np.flatnonzero(wav[before.sample : phone.sample])
    return before.sample + int(sound[-1]) + 1 if len(sound) else phone.sample
