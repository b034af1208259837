"""The input of NVIDIA's English Tacotron 2 and FastPitch: symbol ids, and text as their symbols.

Symbol sets of DeepLearningExamples: `english_basic` (148 symbols) is `phone_extractor`
"nvidia_english", `english_basic_lowercase` (123) "nvidia_english_lowercase". Ids are theirs, names
are those of this toolkit: `<pad>` for `_`, `<space>` for a space, `<,>` for a comma; ARPAbet has
the prefix `@`, since `B` is a capital letter here. TensorFlowTTS's symbols for LJ Speech (149) are
those of english_basic and `<eos>`: "tensorflowtts_english".

The text is that of the English normaliser in lower case, with its punctuation and spaces. NVIDIA's
cleaners differ from it in details:
- "1,200" is "one thousand two hundred" (`english_cleaners`: "twelve hundred"), dates, times, units,
  e-mail addresses and fractions are read in full; acronyms are single letters with spaces ("f b i",
  `english_cleaners_v2`: "f.b.i."), and `english_cleaners` leaves them as words.
- Characters without a symbol, such as `"` in english_basic, are left out; the warning on signs that
  are not spoken names them.
- More words may be said by phones, see processors/text/letters/spelling.py.
"""

import re
from collections.abc import Collection
from typing import NamedTuple

from processors.text.normalisation.english import english_in_words
from processors.text.symbols import APOSTROPHE, ARPABET, END, PAD, WORD_BOUNDARY, Vocabulary
from processors.text.tokens import Token

ARPABET_PREFIX = "@"
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_SETS = {  # the symbols between the pad and ARPAbet, in the order of their ids
    "nvidia_english": f"-!'(),.:;? {_LETTERS.upper()}{_LETTERS}",
    "nvidia_english_lowercase": f"-!'\"(),.:;? {_LETTERS}",
    "tensorflowtts_english": f"-!'(),.:;? {_LETTERS.upper()}{_LETTERS}",
}
_DASHES = str.maketrans({"‒": "-", "–": "-", "−": "-", "—": "--", "―": "--"})
_BEFORE_MARK = re.compile(r"\s+(?=[,.;:?!)])")
_AFTER_MARK = re.compile(r"(?<=[(])\s+")
_PIECE = re.compile(r"\{[^{}]*\}|'*[^\W_]+(?:'+[^\W_]+)*'*|.")


def nvidia_vocabulary(phone_extractor: str) -> Vocabulary:
    """The symbols of a set, by its name in `_SETS`, in the order of NVIDIA's ids."""
    phones = (f"{ARPABET_PREFIX}{phone}" for phone in sorted(ARPABET))
    end = (END,) if phone_extractor == "tensorflowtts_english" else ()
    return Vocabulary((PAD, *map(_name, _SETS[phone_extractor]), *phones, *end))


def normalise(text: str, own_words: Collection[str] = ()) -> str:
    """English text in words, in lower case, with its punctuation; see `normalise_english`."""
    plain = english_in_words(text, own_words).translate(_DASHES).lower()
    return " ".join(plain.split())


class SymbolText(NamedTuple):
    """A text as symbols."""

    text: str
    tokens: list[Token]  # words, punctuation and spaces; phones in braces
    unspoken: tuple[str, ...]  # characters without a symbol, each once; they are left out


def read(normalised: str, phone_extractor: str) -> SymbolText:
    """Splits the output of `normalise`, with phones in braces, into words and marks."""
    pieces = _PIECE.findall(normalised)
    unspoken = [
        piece for piece in pieces if _is_mark(piece) and piece not in _SETS[phone_extractor]
    ]
    said = "".join(" " if piece in unspoken else piece for piece in pieces)
    text = _AFTER_MARK.sub("", _BEFORE_MARK.sub("", " ".join(said.split())))
    tokens = [_token(piece) for piece in _PIECE.findall(text)]
    return SymbolText(text, tokens, tuple(dict.fromkeys(unspoken)))


def _token(piece: str) -> Token:
    if piece.startswith("{"):
        return Token("phones", piece.strip("{}"))
    return Token("pause", _name(piece)) if _is_mark(piece) else Token("word", piece)


def _is_mark(piece: str) -> bool:
    """Whether a piece is neither phones nor a word."""
    return len(piece) == 1 and not piece.isalnum()


def _name(char: str) -> str:
    if char == " ":
        return WORD_BOUNDARY
    return char if char.isalnum() or char == APOSTROPHE else f"<{char}>"
