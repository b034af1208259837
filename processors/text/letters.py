"""Text as letters, as letters mixed with phones, and as the symbols of NVIDIA's models.

A word has phones if the user's lexicon has it, or if CMUdict has one pronunciation of it. Words of
several pronunciations ("read", "the") and unknown words have none; an unknown word in s or 's has
those of its stem and Z. This is the rule of NVIDIA's FastPitch 1.1, whose list of further
heteronyms is not used.

Which words are said by their phones is drawn from names alone, as every random choice here: it does
not depend on the process, the order of utterances or on a resumed run.

The text of NVIDIA's English Tacotron 2 and FastPitch is that of the English normaliser in lower
case, with its punctuation and spaces; docs/text.md lists how NVIDIA's cleaners differ from it.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from processors.records import SpokenText, Word, WordPhones
from processors.text.g2p import Phones, Pronunciation, has_variants, lookup
from processors.text.symbols import APOSTROPHE, SYMBOL_SETS, mark_name
from processors.text.tokens import Token, inline_phones
from utils.errors import InputError
from utils.seed import derived_seed

DASHES = str.maketrans({"‒": "-", "–": "-", "−": "-", "—": "--", "―": "--"})
_PIECE = re.compile(r"\{[^{}]*\}|'*[^\W_]+(?:'+[^\W_]+)*'*|.")
_HYPHENATED = re.compile(r"\{[^{}]*\}|'*[^\W_]+(?:['-]+[^\W_]+)*'*|.")
_SEEDS = 2**63  # derived seeds are smaller


class LetterPhonemizer:
    """The letters of words; with a lexicon also their phones, and braces then hold phones."""

    def __init__(self, user_lexicon: Mapping[str, Phones] | None = None, prefix: str = "") -> None:
        self._user_lexicon = user_lexicon
        self._prefix = prefix

    def __call__(self, words: Sequence[str]) -> list[Pronunciation]:
        """Returns the letters of each word, and its phones if their pronunciation is certain."""
        said = []
        for word in words:
            letters, bare, instead = tuple(word.lower()), word.strip(APOSTROPHE), ()
            if wrong := [letter for letter in letters if not is_letter(letter)]:
                raise InputError(f"'{wrong[0]}' in '{word}' is not a letter; write it in words")
            if (phones := self._phones_of(bare.lower())) is not None:
                before, after = word.split(bare, maxsplit=1)
                instead = (*before, *(f"{self._prefix}{phone}" for phone in phones), *after)
            said.append(Pronunciation(letters, in_lexicon=True, instead=instead))
        return said

    def _phones_of(self, word: str) -> Phones | None:
        if self._user_lexicon is None:
            return None
        if word in self._user_lexicon:
            return self._user_lexicon[word]
        if (phones := lookup(word)) is not None:
            return None if has_variants(word) else phones
        stem = re.sub(r"'?s$", "", word)
        phones = None if stem == word or has_variants(stem) else lookup(stem)
        return None if phones is None else (*phones, "Z")


def is_letter(symbol: str) -> bool:
    """Returns whether a symbol is one letter in lower case, a combining mark, or an apostrophe."""
    is_small = len(symbol) == 1 and symbol == symbol.lower()
    return is_small and (symbol == APOSTROPHE or unicodedata.category(symbol)[0] in "LM")


def split_words(token: Token) -> Iterator[Token]:
    """Yields the words of a token: "well-known" has two. Apostrophes around words are removed."""
    if token.kind != "word":
        yield token
        return
    is_part = [char == APOSTROPHE or unicodedata.category(char)[0] in "LMN" for char in token.text]
    plain = "".join(c if keep else " " for c, keep in zip(token.text, is_part, strict=True))
    bare = (word.strip(APOSTROPHE) for word in plain.split())
    yield from (Token("word", word) for word in bare if word)


def read_symbols(normalised: str, phone_extractor: str) -> tuple[str, list[Token], tuple[str, ...]]:
    """Splits English words in lower case, phones in braces and punctuation into words and marks.

    Returns:
        What is spoken of the text, its words and marks, and the marks that the set lacks.
    """
    set_symbols = SYMBOL_SETS[phone_extractor]
    # a hyphen that is no symbol is in words
    pattern = _PIECE if "-" in set_symbols else _HYPHENATED
    pieces = pattern.findall(normalised)
    unspoken = dict.fromkeys(p for p in pieces if _is_mark(p) and p not in set_symbols)
    spoken = "".join(" " if piece in unspoken else piece for piece in pieces)
    text = re.sub(r"\s+(?=[,.;:?!)])|(?<=\()\s+", "", " ".join(spoken.split()))
    tokens = []
    for piece in pattern.findall(text):
        plain = Token("pause", mark_name(piece)) if _is_mark(piece) else Token("word", piece)
        tokens.append(inline_phones(piece.strip("{}")) if piece.startswith("{") else plain)
    return text, tokens, tuple(unspoken)


def _is_mark(piece: str) -> bool:
    """Returns whether a piece is neither phones nor a word."""
    return len(piece) == 1 and not piece.isalnum()


def draw(word_phones: Iterable[WordPhones], p: float, *key: str | int) -> list[WordPhones]:
    """Draws the words that are said by their phones, each with probability `p`, by a key."""
    return [w for w in word_phones if derived_seed("arpabet", *key, w.word) < p * _SEEDS]


def substitute(letters: Sequence[str], chosen: Iterable[WordPhones]) -> tuple[str, ...]:
    """Puts the phones of the chosen words in place of their letters."""
    mixed = list(letters)
    for word in reversed([*chosen]):
        mixed[word.start : word.end] = word.phones
    return tuple(mixed)


def mix(spoken: SpokenText, p: float) -> SpokenText:
    """Writes a text with each word in letters or in phones, the same at every call."""
    chosen = draw(spoken.word_phones, p, spoken.normalized)
    growth = {choice.word: len(choice.phones) - (choice.end - choice.start) for choice in chosen}
    words, shift = [], 0
    for index, (text, start, end) in enumerate(spoken.words):
        words.append(Word(text, start + shift, end + shift + growth.get(index, 0)))
        shift += growth.get(index, 0)
    phones = substitute(spoken.phones, chosen)
    return replace(spoken, phones=phones, words=tuple(words), word_phones=())


def longest(phones: Sequence[str], word_phones: Iterable[WordPhones]) -> int:
    """Returns the length of the longest mixture."""
    return len(phones) + sum(max(0, len(w.phones) - (w.end - w.start)) for w in word_phones)
