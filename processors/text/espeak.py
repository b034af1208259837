"""IPA phones from espeak-ng, through phonemizer and the library in espeakng-loader.

Both packages are under the GPL and optional: they are imported at the first call only.
The stress marks "ˈ" and "ˌ" stay part of the vowel that follows them, so that every symbol has a
duration of its own. espeak keeps state per library handle, so each thread has its own backends
(with one backend shared by four threads, 70 % of the phones were wrong, without an error).
"""

import importlib.util
import logging
import os
import threading
import unicodedata
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from typing import Any, Final

from processors.text.lexicon import Pronunciation
from processors.text.word_spans import share_phones
from utils.errors import InputError

Phones = tuple[str, ...]
INSTALL: Final = "pip install 'phonemizer>=3.4' espeakng-loader"
_CACHED_WORDS = 65536  # per thread and language
_thread = threading.local()


@cache
def is_installed() -> bool:
    """Whether phonemizer and espeakng-loader can be imported."""
    return all(importlib.util.find_spec(name) for name in ("phonemizer", "espeakng_loader"))


class EspeakPhonemizer:
    """IPA pronunciations of the words of any language that espeak-ng has a voice for.

    Attributes:
        language: espeak language code, such as "en-us", "de" or "fr-fr".
        user_lexicon: IPA pronunciations by lower-case word; they take precedence.
        known_phone: Whether a symbol is one IPA phone.
    """

    def __init__(self, language: str, user_lexicon: Mapping[str, Phones] | None = None) -> None:
        self.language = language
        self.user_lexicon = dict(user_lexicon or {})
        _voice(language)

    @staticmethod
    def known_phone(symbol: str) -> bool:
        """See `is_ipa`."""
        return is_ipa(symbol)

    def reads(self, sign: str) -> bool:
        """Whether espeak has a word for a sign in this language."""
        return bool(_voice(self.language).alone(sign))

    def __call__(self, words: Sequence[str]) -> list[Pronunciation]:
        """The pronunciation of each word of a clause, in its context."""
        spoken = speak(self.language, words)
        chosen = [
            self.user_lexicon.get(word.lower(), phones)
            for word, phones in zip(words, spoken, strict=True)
        ]
        for word, phones in zip(words, chosen, strict=True):
            if not phones:
                raise InputError(f"espeak ({self.language}) has no phones for '{word}'; remove it")
        return [Pronunciation(phones, in_lexicon=True) for phones in chosen]


def is_ipa(symbol: str) -> bool:
    """Whether a symbol looks like one IPA phone: letters, marks, perhaps stress and tone."""
    bare = unicodedata.normalize("NFD", symbol.lstrip("ˈˌ"))
    return bool(bare) and bare[0].isalpha() and all(map(_is_ipa_character, bare))


def _is_ipa_character(char: str) -> bool:
    if char.isascii():
        return char.islower() or char.isdigit() or char == "."  # digits and dots mark tones
    letter = char in "æçðøœħŋβθχ" or "ɐ" <= char <= "˿" or "ᴀ" <= char <= "ᶿ"
    return letter or unicodedata.category(char) in ("Mn", "Lm", "Sk")


def speak(language: str, words: Sequence[str]) -> list[Phones]:
    """The phones of each word of a clause; none only if espeak has none for the word alone.

    espeak merges some words ("of the" gives one group of phones) and splits others ("25" gives
    two); the phones are assigned to words by comparison with the pronunciations of single words.
    """
    voice = _voice(language)
    groups = voice.groups(" ".join(words))
    if len(groups) == len(words) and all(word.isalpha() for word in words):
        return groups
    return share_phones(words, groups, [voice.alone(word) for word in words])


class _Voice:
    """An espeak backend of one language for one thread, with a cache of single words."""

    def __init__(self, backend: Any, separator: Any) -> None:  # noqa: ANN401
        self._backend = backend
        self._separator = separator
        self._alone: dict[str, Phones] = {}

    def groups(self, text: str) -> list[Phones]:
        """The phones of a text, grouped as espeak groups them."""
        (line,) = self._backend.phonemize([text], separator=self._separator, strip=True) or ("",)
        groups = [_phones(group) for group in line.split()]
        return [group for group in groups if group]

    def alone(self, word: str) -> Phones:
        """The phones of a word in isolation."""
        if word not in self._alone:
            if len(self._alone) >= _CACHED_WORDS:
                self._alone.clear()
            self._alone[word] = tuple(phone for group in self.groups(word) for phone in group)
        return self._alone[word]


def _phones(group: str) -> Phones:
    """Splits "h_ə_l_ˈoʊ" into phones; "-" (liaison, or no stress) is removed."""
    return tuple(phone for part in group.split("_") if (phone := part.replace("-", "")))


def _voice(language: str) -> _Voice:
    voices: dict[str, _Voice] = vars(_thread).setdefault("voices", {})
    if language not in voices:
        voices[language] = _open_voice(language)
    return voices[language]


def _open_voice(language: str) -> _Voice:
    _point_to_library()
    from phonemizer.backend import EspeakBackend
    from phonemizer.separator import Separator

    if not EspeakBackend.is_supported_language(language):
        raise InputError(_unknown_language(language, EspeakBackend.supported_languages()))
    backend = EspeakBackend(
        language,
        with_stress=True,
        language_switch="remove-flags",
        words_mismatch="ignore",
        logger=_silent_logger(),
    )
    return _Voice(backend, Separator(phone="_", word=" ", syllable=""))


def _point_to_library() -> None:
    """Sets the paths of espeak-ng for phonemizer, unless the environment already does.

    Worker processes inherit environment variables, but not phonemizer's own settings. All three are
    needed: with the library alone, espeak-ng ends the process if it does not find its data.
    """
    if not is_installed():
        raise InputError(f"phone_extractor espeak needs two packages: {INSTALL}")
    import espeakng_loader

    os.environ.setdefault("PHONEMIZER_ESPEAK_LIBRARY", espeakng_loader.get_library_path())
    os.environ.setdefault("PHONEMIZER_ESPEAK_DATA_PATH", espeakng_loader.get_data_path())
    os.environ.setdefault("ESPEAK_DATA_PATH", espeakng_loader.get_data_path())


def _unknown_language(language: str, voices: Mapping[str, str]) -> str:
    related = [code for code in voices if code.split("-")[0] == language.split("-")[0]]
    related.sort(key=len)  # "en-us" before "en-gb-x-rp"
    by_name = [code for code, name in voices.items() if name.lower().startswith(language.lower())]
    near = [*related, *by_name, *get_close_matches(language, voices, n=4, cutoff=0.4)]
    nearest = ", ".join(list(dict.fromkeys(near))[:6]) or ", ".join(sorted(voices))
    return f"espeak has no language '{language}'; nearest: {nearest}"


def _silent_logger() -> logging.Logger:
    """A logger without phonemizer's warnings about foreign words."""
    logger = logging.getLogger("arion.phonemizer")
    logger.setLevel(logging.CRITICAL)
    return logger
