"""IPA phones from espeak-ng, through phonemizer and the library in espeakng-loader.

Both packages are under the GPL and optional: they are imported at the first call only.
The stress marks "ˈ" and "ˌ" stay part of the vowel that follows them, so that every symbol has a
duration of its own. espeak keeps state per library handle, so each thread has its own backends
(with one backend shared by four threads, 70 % of the phones were wrong, without an error).
"""

import logging
import os
import threading
import unicodedata
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import accumulate, chain, pairwise
from typing import Any, Final

from config.text import UnknownCharacters
from processors.text.g2p import Phones, Pronunciation
from processors.text.normalisation.foreign import transliterated
from utils.errors import InputError

INSTALL: Final = "pip install 'phonemizer>=3.4' espeakng-loader"
_CACHED_WORDS = 65536  # per thread and language
_thread = threading.local()
_VOWELS = frozenset("aeiouyæøœɐɑɒɔəɘɚɛɜɝɞɤɨɪɯɵɶʉʊʌʏᵻ")
_INSERTED = 0.8  # less than 1.2 for a vowel and a consonant, which seldom correspond


class EspeakPhonemizer:
    """IPA pronunciations of the words of any language that espeak-ng has a voice for."""

    def __init__(
        self,
        language: str,
        user_lexicon: Mapping[str, Phones] | None = None,
        unknown: UnknownCharacters = "refuse",
    ) -> None:
        self.language = language
        self._refuses = unknown == "refuse"
        self._user_lexicon = user_lexicon or {}
        _voice(language)

    def reads(self, sign: str) -> bool:
        """Returns whether espeak has a word for a sign in this language."""
        return bool(_voice(self.language).alone(sign))

    def __call__(self, words: Sequence[str]) -> list[Pronunciation]:
        """Looks up the pronunciation of each word of a clause, in its context.

        espeak merges some words ("of the" gives one group of phones) and splits others ("25" gives
        two); then phones are assigned to words by the pronunciations of single words.
        """
        voice = _voice(self.language)
        spoken = groups = voice.groups(" ".join(words))
        if len(spoken) != len(words) or not all(word.isalpha() for word in words):
            spoken = share_phones(words, spoken, [voice.alone(word) for word in words])
        said: list[Pronunciation] = []
        starts, group_starts = ([*accumulate(map(len, row), initial=0)] for row in (spoken, groups))
        is_shared = [*chain(*spoken)] == [*chain(*groups)]  # words may have other phones alone
        for word, phones, start in zip(words, spoken, starts[:-1], strict=True):
            chosen = self._user_lexicon.get(word.lower(), phones)
            if not chosen and not self._refuses:  # of a script that espeak cannot read
                chosen = voice.alone(transliterated(word))
            if not chosen:
                raise InputError(f"espeak ({self.language}) has no phones for '{word}'; remove it")
            is_joined = is_shared and start not in group_starts and chosen == phones
            said.append(Pronunciation(chosen, in_lexicon=True, is_joined=is_joined))
        return said


def is_ipa(symbol: str) -> bool:
    """Tells whether a symbol looks like one IPA phone: letters, marks, stress and tone."""
    bare = unicodedata.normalize("NFD", symbol.lstrip("ˈˌ"))
    return bool(bare) and bare[0].isalpha() and all(map(_is_ipa_character, bare))


def _is_ipa_character(char: str) -> bool:
    if char.isascii():
        return char.islower() or char.isdigit() or char == "."  # digits and dots mark tones
    letter = char in "æçðøœħŋβθχ" or "ɐ" <= char <= "˿" or "ᴀ" <= char <= "ᶿ"
    return letter or unicodedata.category(char) in ("Mn", "Lm", "Sk")


class _EspeakVoice:
    """An espeak backend of one language for one thread, with a cache of single words."""

    def __init__(self, backend: Any, separator: Any) -> None:  # noqa: ANN401
        self._backend = backend
        self._separator = separator
        # the phones of a word in isolation
        self.alone = lru_cache(_CACHED_WORDS)(lambda word: tuple(chain(*self.groups(word))))

    def groups(self, text: str) -> list[Phones]:
        """Reads a text as phones, grouped as espeak groups them."""
        (line,) = self._backend.phonemize([text], separator=self._separator, strip=True) or ("",)
        # "h_ə_l_ˈoʊ"; "-" is liaison, or no stress
        groups = [group.replace("-", "").split("_") for group in line.split()]
        return [tuple(filter(None, group)) for group in groups if any(group)]


def _voice(language: str) -> _EspeakVoice:
    voices: dict[str, _EspeakVoice] = vars(_thread)
    if language not in voices:
        voices[language] = _open_voice(language)
    return voices[language]


def _open_voice(language: str) -> _EspeakVoice:
    try:
        import espeakng_loader
        from phonemizer.backend import EspeakBackend
        from phonemizer.separator import Separator
    except ImportError as error:
        raise InputError(f"phone_extractor espeak needs two packages: {INSTALL}") from error
    # Worker processes inherit environment variables, but not phonemizer's own settings. All three
    # are needed: with the library alone, espeak-ng ends the process if it does not find its data.
    os.environ.setdefault("PHONEMIZER_ESPEAK_LIBRARY", espeakng_loader.get_library_path())
    os.environ.setdefault("PHONEMIZER_ESPEAK_DATA_PATH", espeakng_loader.get_data_path())
    os.environ.setdefault("ESPEAK_DATA_PATH", espeakng_loader.get_data_path())
    voices: dict[str, str] = EspeakBackend.supported_languages()
    if language not in voices:
        near = [code for code in voices if code[:2] == language[:2]]
        near += [code for code, name in voices.items() if name.lower().startswith(language.lower())]
        nearest = ", ".join(sorted(dict.fromkeys(near), key=len)[:6])  # "en-us" before "en-gb-x-rp"
        hint = f"nearest: {nearest}" if near else f"it has {', '.join(sorted(voices))}"
        raise InputError(f"espeak has no language '{language}'; {hint}")
    logger = logging.getLogger("arion.phonemizer")
    logger.setLevel(logging.CRITICAL)  # no warnings about foreign words
    backend = EspeakBackend(
        language,
        with_stress=True,
        language_switch="remove-flags",
        words_mismatch="ignore",
        logger=logger,
    )
    return _EspeakVoice(backend, Separator(phone="_", word=" ", syllable=""))


def share_phones(
    words: Sequence[str], groups: Sequence[Phones], alone: Sequence[Phones]
) -> list[Phones]:
    """Assigns the phones of a clause to its words.

    Groups equal to the pronunciation of a single word, but for stress, are assigned first; between
    those, phones are shared by the alignment of least edit distance. Words that would get none, and
    those near them, keep the phones they have alone.

    Args:
        groups: Phones of the clause, in groups that need not be words.
        alone: Phones of each word in isolation.
    """
    shared: list[Phones] = []
    for (word, group), (last_word, last_group) in pairwise(_cuts(groups, alone)):
        expected, heard = alone[word:last_word], groups[group:last_group]
        plain = all(map(str.isalpha, words[word:last_word]))
        shared += heard if plain and len(heard) == len(expected) else _share_gap(heard, expected)
    return shared


def _cuts(groups: Sequence[Phones], alone: Sequence[Phones]) -> list[tuple[int, int]]:
    """Finds indices of words and of groups at which both can be cut, so that no part is empty."""
    bare_groups, bare_words = map(_without_stress, groups), map(_without_stress, alone)
    matcher = SequenceMatcher(None, [*bare_words], [*bare_groups], autojunk=False)
    blocks = matcher.get_matching_blocks()
    cuts = {(b.a + offset, b.b + offset) for b in blocks for offset in range(b.size + 1)}
    kept = [(len(alone), len(groups))]
    for cut in sorted(cuts, reverse=True):  # what lacks words or groups goes with what is before
        if cut[0] < kept[-1][0] and cut[1] < kept[-1][1]:
            kept.append(cut)
    while len(kept) > 1 and 0 in kept[-1]:
        kept.pop()
    return [(0, 0), *reversed(kept)]


def _share_gap(groups: Sequence[Phones], alone: Sequence[Phones]) -> list[Phones]:
    phones, expected = [*chain(*groups)], [*chain(*alone)]
    if len(alone) == 1:
        return [tuple(phones) or alone[0]]
    if not expected:
        return list(alone)
    word_of = [index for index, word in enumerate(alone) for _ in word]
    shared: list[list[str]] = [[] for _ in alone]
    for phone, place in zip(phones, _places(phones, expected), strict=True):
        shared[word_of[place]].append(phone)
    # no word may be left without phones
    return [tuple(word) for word in shared] if all(shared) else list(alone)


def _places(phones: Sequence[str], expected: Sequence[str]) -> list[int]:
    """Finds the index in `expected` of each phone's counterpart (Wagner and Fischer 1974)."""
    row, column = len(phones), len(expected)
    cost = [[index * _INSERTED for index in range(column + 1)]]
    for phone in phones:
        above = cost[-1]
        cost.append([len(cost) * _INSERTED])
        for index, other in enumerate(expected):
            swap = above[index] + _distance(phone, other)
            skip = min(above[index + 1], cost[-1][index]) + _INSERTED
            cost[-1].append(min(swap, skip))
    places = [0] * row
    while row > 0:
        here = cost[row][column]
        if column > 0 and here == cost[row][column - 1] + _INSERTED:
            column -= 1
            continue
        places[row - 1] = max(column - 1, 0)
        if column > 0 and here != cost[row - 1][column] + _INSERTED:
            column -= 1
        row -= 1
    return places


def _distance(first: str, second: str) -> float:
    first, second = _without_stress((first, second))
    if first == second:
        return 0.0
    return 0.6 if (first[:1] in _VOWELS) == (second[:1] in _VOWELS) else 1.2


def _without_stress(phones: Phones) -> Phones:
    return tuple(phone.lstrip("ˈˌ") for phone in phones)
