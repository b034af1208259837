"""English words to ARPAbet: user lexicon, CMUdict, suffix rules, letter-to-sound, spelling.

The first source that has the word is used; words without a vowel are spelt. All but lexicon words
are reported as outside the vocabulary.
"""

from collections.abc import Mapping, Sequence

from processors.text.espeak_arpabet import with_primary_stress
from processors.text.letter_to_sound import pronounce
from processors.text.lexicon import LETTER_A, Pronunciation, letter_name, lookup
from processors.text.symbols import ARPABET
from utils.errors import InputError

_ARPABET = frozenset(ARPABET)
_SIBILANTS = frozenset(("S", "Z", "SH", "ZH", "CH", "JH"))
_VOICELESS = frozenset(("P", "T", "K", "F", "TH"))
Phones = tuple[str, ...]


def is_arpabet(symbol: str) -> bool:
    """Whether a symbol is an ARPAbet phone, vowels with or without a stress digit."""
    return symbol in _ARPABET


class LexiconPhonemizer:
    """ARPAbet pronunciations of English words."""

    known_phone = staticmethod(is_arpabet)

    def __init__(self, user_lexicon: Mapping[str, Phones] | None = None) -> None:
        self.user_lexicon = dict(user_lexicon or {})
        self._spoken: dict[str, Pronunciation] = {}

    @staticmethod
    def reads(sign: str) -> bool:
        """True: a sign that no rule has replaced is an error that names it."""
        return True

    def __call__(self, words: Sequence[str]) -> list[Pronunciation]:
        """The pronunciation of each word of a clause."""
        return [
            Pronunciation(LETTER_A, in_lexicon=True)
            if word == "A" and _is_letter(words, index)
            else self._pronounce(word)
            for index, word in enumerate(words)
        ]

    def _pronounce(self, word: str) -> Pronunciation:
        if word not in self._spoken:
            self._spoken[word] = self._whole(word) or self._parts(word)
        return self._spoken[word]

    def _whole(self, word: str) -> Pronunciation | None:
        """A word, with or without the quotes around it, if a lexicon contains it."""
        for form in (word, word.rstrip("'"), word.lstrip("'"), word.strip("'")):
            if phones := self._held(form):
                return Pronunciation(phones, in_lexicon=True)
        return None

    def _held(self, word: str) -> Phones | None:
        return self.user_lexicon.get(word.lower()) or lookup(word)

    def _parts(self, word: str) -> Pronunciation:
        """The parts of a compound ("well-known", "F-16") one after the other."""
        parts = [part for part in word.replace("-", " ").split() if part.strip("'")]
        if len(parts) > 1:
            pronunciations = [
                Pronunciation(LETTER_A, in_lexicon=True) if part == "A" else self._pronounce(part)
                for part in parts
            ]
            phones = tuple(phone for part in pronunciations for phone in part.phones)
            return Pronunciation(phones, in_lexicon=all(part.in_lexicon for part in pronunciations))
        return Pronunciation(self._by_rule(word.strip("'-")), in_lexicon=False)

    def _by_rule(self, word: str) -> Phones:
        return self._inflected(word) or with_primary_stress(pronounce(word) or ()) or _spelt(word)

    def _inflected(self, word: str) -> Phones | None:
        """A known word with one of the endings 's, s, ed, ing."""
        lower = word.lower()
        for ending, stems, attach in (
            ("'s", lambda stem: [stem], _with_s),
            ("s", _plural_stems, _with_s),
            ("ed", _verb_stems, _with_ed),
            ("ing", _verb_stems, lambda phones: (*phones, "IH0", "NG")),
        ):
            if lower.endswith(ending):
                for stem in stems(lower.removesuffix(ending)):
                    phones = self._held(stem) if len(stem) > 1 else None
                    if phones:
                        return attach(phones)
        return None


def _is_letter(words: Sequence[str], index: int) -> bool:
    """Whether a capital A is a letter: inside a clause, or before another single letter."""
    following = words[index + 1 : index + 2]
    return index > 0 or any(len(word) == 1 and word.isupper() for word in following)


def _plural_stems(stem: str) -> list[str]:
    """Stems of a word without its "s": "boxe" gives box, "partie" gives party."""
    stems = [stem]
    if stem.endswith("ie"):
        stems.append(stem[:-2] + "y")
    if stem.endswith(("se", "ze", "xe", "che", "she", "oe")):
        stems.append(stem[:-1])
    return stems


def _verb_stems(stem: str) -> list[str]:
    """Stems of a word without "ed" or "ing": "hop" gives hope, "stopp" stop, "tri" try."""
    stems = [stem, stem + "e"]
    if len(stem) > 2 and stem[-2] in "aeiou":  # one vowel, one consonant: "hoping" is from hope
        stems.reverse()
    if len(stem) > 2 and stem[-1] == stem[-2]:
        stems.append(stem[:-1])
    if stem.endswith("i"):
        stems.append(stem[:-1] + "y")
    return stems


def _with_s(phones: Phones) -> Phones:
    if phones[-1] in _SIBILANTS:
        return (*phones, "IH0", "Z")
    return (*phones, "S" if phones[-1] in _VOICELESS else "Z")


def _with_ed(phones: Phones) -> Phones:
    if phones[-1] in ("T", "D"):
        return (*phones, "IH0", "D")
    voiceless = phones[-1] in _VOICELESS or phones[-1] in ("S", "SH", "CH")
    return (*phones, "T" if voiceless else "D")


def _spelt(word: str) -> Phones:
    names = [letter_name(letter) for letter in word if letter != "'"]
    if not names or None in names:
        raise InputError(
            f"'{word}' has no English pronunciation; write it in words, or add it to lexicon_path"
        )
    return tuple(phone for name in names if name for phone in name)
