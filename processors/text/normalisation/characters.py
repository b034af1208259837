"""Normalisation of characters: Unicode forms, control characters, accents."""

import re
import unicodedata

from utils.errors import InputError

_SAME = str.maketrans(
    dict.fromkeys("’‘‛ʼ´`′＇", "'")
    | dict.fromkeys("“”„‟«»″", '"')
    | dict.fromkeys("‐‑﹣－", "-")
    | dict.fromkeys("\ufe0e\ufe0f\u20e3🏻🏼🏽🏾🏿", "")  # variants of the sign before them
    | {"−": " − ", "º": "°", "⁄": "/", "\u2028": "\n", "\u2029": "\n"}
)
MINUS = "−"  # the mathematical sign, always apart from what is next to it
_DASH_MINUS = re.compile(r"(?<![^\s(\[<>=^])–(?=[.,]?\d)")
_EXPONENT = re.compile("[⁺⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+")
_RAISED = str.maketrans("⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "+-0123456789")
# Latin letters that Unicode does not decompose into a base letter and a mark.
_LATIN = str.maketrans(
    {
        "æ": "ae", "Æ": "Ae", "œ": "oe", "Œ": "Oe", "ø": "o", "Ø": "O", "ß": "ss", "ẞ": "SS",
        "ł": "l", "Ł": "L", "đ": "d", "Đ": "D", "ð": "th", "Ð": "Th", "þ": "th", "Þ": "Th",
        "ı": "i", "ħ": "h", "Ħ": "H", "ŋ": "ng", "ə": "e", "ŧ": "t",
    }
)  # fmt: skip
_UNIT_LETTERS = "μΩ"  # micro and ohm: the unit rules read them


class OtherScriptError(InputError):
    """A letter that is not Latin in English text; the message says what a corpus needs."""

    def __init__(self, letter: str) -> None:
        super().__init__(
            f"{letter} is not a letter of English; write the text in English, or set the corpus's"
            " language and phone_extractor espeak"
        )
        self.letter = letter  # with its name


def clean_characters(text: str) -> str:
    """Text in one Unicode form (NFKC), without control and format characters.

    Typographic apostrophes, quotes and hyphens become ASCII, decimal digits of all scripts become
    0 to 9, "½" becomes "1/2", "10⁻³" becomes "10^-3", and any white space one space. A minus sign,
    also an en dash before a number, becomes `MINUS` with spaces around it.
    """
    if not text.isascii():
        text = _EXPONENT.sub(lambda match: "^" + match[0].translate(_RAISED), text)
        text = _DASH_MINUS.sub(MINUS, text)
        text = "".join(_plain(char) for char in text.translate(_SAME))
        text = unicodedata.normalize("NFKC", text).translate(_SAME)
    # white space is a space; control, format and unassigned characters are nothing
    text = "".join(c if c.isprintable() else " " if c.isspace() else "" for c in text)
    return " ".join(text.split())


def _plain(char: str) -> str:
    """A character, separated where NFKC would merge it with its neighbours."""
    if unicodedata.decomposition(char).startswith("<fraction>"):  # "1½" must not become "11/2"
        return " " + unicodedata.normalize("NFKC", char)
    if unicodedata.category(char) == "Nd":
        return str(unicodedata.digit(char))
    return char


def to_ascii_letters(text: str) -> str:
    """English text with letters a to z only: accents are removed, ligatures split."""
    if text.isascii():
        return text
    return "".join(_ascii(char) for char in text.translate(_LATIN))


def _ascii(char: str) -> str:
    category = unicodedata.category(char)
    if char.isascii() or char in _UNIT_LETTERS or category[0] not in "LMN":
        return char
    base = "".join(part for part in unicodedata.normalize("NFKD", char) if part.isascii())
    if base or category[0] == "M":
        return base
    raise OtherScriptError(f"'{char}' ({unicodedata.name(char, 'unnamed character')})")
