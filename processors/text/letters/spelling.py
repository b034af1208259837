"""Words to letters, with the phones of those whose pronunciation is certain.

A word has phones if the user's lexicon has it, or CMUdict has it once. Words of several
pronunciations ("read", "the") and unknown words have none; an unknown word in s or 's has those of
its stem and Z. This is the rule of NVIDIA's FastPitch 1.1, whose list of further heteronyms is not
used.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence

from processors.text.g2p import is_arpabet
from processors.text.lexicon import Pronunciation, has_variants, lookup
from processors.text.symbols import APOSTROPHE
from processors.text.tokens import Token
from utils.errors import InputError

Phones = tuple[str, ...]
_ENDING = re.compile(r"'?s$")


class LetterPhonemizer:
    """The letters of words; see Phonemizer.

    With phones, words get them in addition to their letters, and braces hold phones.
    """

    def __init__(
        self,
        user_lexicon: Mapping[str, Phones] | None = None,
        *,
        with_phones: bool = False,
        prefix: str = "",
    ) -> None:
        self.user_lexicon = dict(user_lexicon or {})
        self._with_phones = with_phones
        self._prefix = prefix

    def known_phone(self, symbol: str) -> bool:
        """Whether a symbol may be in braces: a phone of ARPAbet, or a letter."""
        return is_arpabet(symbol) if self._with_phones else is_letter(symbol)

    @staticmethod
    def reads(sign: str) -> bool:
        """False: a sign has no letters."""
        return False

    def __call__(self, words: Sequence[str]) -> list[Pronunciation]:
        """The letters of each word, and its phones if their pronunciation is certain."""
        return [self._pronounce(word) for word in words]

    def _pronounce(self, word: str) -> Pronunciation:
        bare = word.strip(APOSTROPHE)
        phones = self._phones_of(bare.lower()) if self._with_phones else None
        if phones is None:
            return Pronunciation(_spell(word), in_lexicon=True)
        before, after = word.split(bare, maxsplit=1)
        named = [f"{self._prefix}{phone}" for phone in phones]
        return Pronunciation(_spell(word), in_lexicon=True, instead=(*before, *named, *after))

    def _phones_of(self, word: str) -> Phones | None:
        if word in self.user_lexicon:
            return self.user_lexicon[word]
        if (phones := lookup(word)) is not None:
            return None if has_variants(word) else phones
        stem = _ENDING.sub("", word)
        phones = None if stem == word or has_variants(stem) else lookup(stem)
        return None if phones is None else (*phones, "Z")


def is_letter(symbol: str) -> bool:
    """Whether a symbol is one letter in lower case, a combining mark, or an apostrophe."""
    if len(symbol) != 1:
        return False
    return symbol == APOSTROPHE or (
        unicodedata.category(symbol)[0] in "LM" and symbol == symbol.lower()
    )


def split_words(token: Token) -> Iterator[Token]:
    """The words of a token: "well-known" has two. Apostrophes around words are removed."""
    if token.kind != "word":
        yield token
        return
    plain = "".join(char if char == APOSTROPHE or _is_written(char) else " " for char in token.text)
    for word in plain.split():
        if bare := word.strip(APOSTROPHE):
            yield Token("word", bare)


def _is_written(char: str) -> bool:
    """Whether a character is a letter, a combining mark or a number."""
    return unicodedata.category(char)[0] in "LMN"


def _spell(word: str) -> Phones:
    letters = tuple(word.lower())
    if wrong := [letter for letter in letters if not is_letter(letter)]:
        raise InputError(f"'{wrong[0]}' in '{word}' is not a letter; write it in words")
    return letters
