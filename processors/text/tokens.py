"""Characters of any language in one form; words and pauses, and phones written inline in braces."""

import re
import unicodedata
from functools import lru_cache
from typing import Literal, NamedTuple

from utils.errors import InputError

_SAME = str.maketrans(
    dict.fromkeys("’‘‛ʼ´`′＇", "'")
    | dict.fromkeys("“”„‟«»″", '"')
    | dict.fromkeys("‐‑﹣－", "-")
    | dict.fromkeys("\ufe0e\ufe0f\u20e3🏻🏼🏽🏾🏿", "")  # variants of the sign before them
    | {"−": " − ", "º": "°", "⁄": "/", "\u2028": "\n", "\u2029": "\n"}
)
MINUS = "−"  # the mathematical sign, always apart from what is next to it
# LaTeX of one line without commands that take arguments
_FORMULA = re.compile(
    r"(?<![\w$\\])\$([A-Za-z]|(?=[^\s$])[^$\n{}]*[=^\\][^$\n{}]*(?<=\S))\$(?![\w$])"
)
_NAMES = re.compile(r"(?<![A-Za-z\\])(?!(?:cos|exp|lim|ln|log|max|min|sin|tan)\b)[A-Za-z]{1,3}\b")
_RAISED = str.maketrans("⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "+-0123456789")
_PAUSES = {
    **dict.fromkeys(",;:()[]—–‒―…、،؛·|", "<,>"),
    **dict.fromkeys(".。．।॥۔։", "<.>"),
    **dict.fromkeys("?？؟", "<?>"),
    **dict.fromkeys("!！", "<!>"),
}
_STRENGTH = ("<,>", "<.>", "<!>", "<?>")  # of neighbouring pauses the strongest stays
_WORD_SIGNS = "'-_%&@#§°/*+"


class Token(NamedTuple):
    """A word, a pause or inline phones."""

    kind: Literal["word", "pause", "phones"]
    text: str  # the word; the pause class; the phones with spaces between them
    shown: str = ""  # the word that is said by inline phones, if it is known


def inline_phones(braced: str) -> Token:
    """Reads what is in braces: phones, and after `|` the word that they are said for."""
    phones, _, shown = braced.partition("|")
    return Token("phones", phones.strip(), shown)


def clean_characters(text: str) -> str:
    """Brings text into one Unicode form (NFKC), without control and format characters.

    Typographic apostrophes, quotes and hyphens become ASCII, decimal digits of all scripts become
    0 to 9, "½" becomes "1/2", "10⁻³" becomes "10^-3", and any white space one space. A minus sign,
    also an en dash before a number, becomes `MINUS` with spaces around it.
    """
    if not text.isascii():
        text = re.sub("[⁺⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+", lambda match: "^" + match[0].translate(_RAISED), text)
        text = re.sub(r"(?<![^\s(\[<>=^])–(?=[.,]?\d)", MINUS, text)
        text = "".join(_plain(char) for char in text.translate(_SAME))
        text = unicodedata.normalize("NFKC", text).translate(_SAME)
    if "$" in text:
        text = _FORMULA.sub(_formula, text)
    # white space is a space; control, format and unassigned characters are nothing
    text = "".join(c if c.isprintable() else " " if c.isspace() else "" for c in text)
    return " ".join(text.split())


def _formula(match: re.Match[str]) -> str:
    """Returns a formula without dollar signs, its variables apart and its commands as words."""
    text = _NAMES.sub(lambda variables: " ".join(variables[0].upper()), match[1])
    return re.sub(r"\\([A-Za-z]+)", r" \1 ", text).replace("\\", "")


def _plain(char: str) -> str:
    """Separates a character where NFKC would merge it with its neighbours."""
    if unicodedata.decomposition(char).startswith("<fraction>"):  # "1½" must not become "11/2"
        return " " + unicodedata.normalize("NFKC", char)
    return str(unicodedata.digit(char)) if unicodedata.category(char) == "Nd" else char


def split_inline(text: str) -> list[tuple[bool, str]]:
    """Splits text at `{...}` into pairs: whether a piece is inline phones, and the piece."""
    pieces = re.split(r"\{([^{}]*)\}", text)
    pieces[1::2] = map(str.strip, pieces[1::2])
    if "" in pieces[1::2] or re.search(r"[{}]", "".join(pieces)):
        raise InputError(f"braces in {text[:80]!r} must hold phones, as in {{HH AH0 L OW1}}")
    return [(i % 2 == 1, piece) for i, piece in enumerate(pieces) if piece.strip()]


def tokenize(text: str) -> list[Token]:
    """Splits text into words and pauses; of adjacent pauses the strongest is kept.

    A comma, full stop or colon between two digits belongs to the word, so that espeak-ng can
    read "3.5" and "12:30" in its language.
    """
    tokens: list[Token] = []
    word = ""
    for index, char in enumerate(f"{text} "):
        kind = kind_of(char)
        inside = 0 < index < len(text) - 1 and text[index - 1].isdigit()
        if kind == "word" or (kind and inside and char in ".,:" and text[index + 1].isdigit()):
            word += char
            continue
        bare, is_dash, word = word.strip("-_"), "-" in word, ""
        if bare.strip("'"):
            tokens.append(Token("word", bare))
        elif is_dash:  # alone it is a pause, and quotes are nothing
            tokens.append(Token("pause", "<,>"))
        if kind:
            tokens.append(Token("pause", kind))
    return merge_pauses(tokens)


def merge_pauses(tokens: list[Token]) -> list[Token]:
    """Replaces each run of pauses by its strongest pause."""
    merged: list[Token] = []
    for token in tokens:
        if token.kind == "pause" and merged and merged[-1].kind == "pause":
            token = max(merged.pop(), token, key=lambda pause: _STRENGTH.index(pause.text))
        merged.append(token)
    return merged


def is_sign(char: str) -> bool:
    """Tells whether a character is a sign that may carry meaning: no letter or punctuation."""
    return char in "%&@#§‰" or (unicodedata.category(char)[0] == "S" and char not in "|`")


@lru_cache(maxsize=4096)
def kind_of(char: str) -> str:
    """Returns the kind of a character: "word", a pause class, or empty for separators."""
    category = unicodedata.category(char)
    in_words = category[0] in "LMN" or category in ("Sc", "Sm") or char in _WORD_SIGNS
    return _PAUSES.get(char, "word" if in_words else "")
