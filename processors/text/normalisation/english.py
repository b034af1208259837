"""English text to words: `normalise_english` is the whole path.

The order of the rules matters: addresses contain digits and dots that no later rule may change,
dates contain numbers, prices contain units, and a reference ("No. 5") needs its number in figures.
Most texts have no digits, so they skip the rules of numbers.
"""

import re
from collections.abc import Collection

from config.text import UnknownCharacters
from processors.text.normalisation import rule
from processors.text.normalisation.abbreviations import ABBREVIATIONS, ADDRESSES, say_acronyms
from processors.text.normalisation.dates import DATES, HALVES, NAMES, TIMES
from processors.text.normalisation.foreign import to_ascii_letters
from processors.text.normalisation.notation import NOTATION
from processors.text.normalisation.numbers import BEFORE_NUMBERS, NUMBERS, ROMAN
from processors.text.normalisation.quantities import PRICES, UNITS
from processors.text.tokens import clean_characters

_SIGNS = {
    "&": "and", "@": "at", "+": "plus", "=": "equals", "±": "plus or minus", "÷": "divided by",
    "×": "times", "<": "less than", ">": "greater than", "≤": "less than or equal to",
    "≥": "greater than or equal to", "≠": "is not equal to", "≈": "approximately", "√": "root",
    "∞": "infinity", "%": "percent", "°": "degrees", "§": "section", "©": "copyright", "€": "euros",
    "£": "pounds", "$": "dollars", "¥": "yen", "¢": "cents", "#": "hash", "^": "to the power of",
    "/": "slash", "\\": "backslash", "μ": "mu", "Ω": "ohm", "‰": "per mille", "₹": "rupees",
    "₽": "rubles", "₩": "won", "₿": "bitcoin", "₺": "lira", "₪": "shekels", "₦": "naira",
    "₱": "pesos", "₫": "dong", "∙": "times", "⋅": "times", "−": "minus", "⇒": "implies", "∑": "sum",
    "∏": "product", "∫": "integral", "∂": "partial", "∇": "nabla", "∆": "delta", "∈": "in",
    "∉": "not in", "∀": "for all", "∃": "there exists", "∪": "union", "∩": "intersection",
    "⊂": "subset of", "∅": "the empty set", "∝": "is proportional to", "≡": "is identical to",
    "≅": "is congruent to", "∥": "parallel to", "⊥": "perpendicular to", "∠": "angle", "¬": "not",
    "∧": "and", "∨": "or", "®": "registered", "¶": "paragraph", "♯": "sharp", "♭": "flat",
}  # fmt: skip
_NAMED_SIGN = re.compile("[" + re.escape("".join(_SIGNS)) + "]")

_CLUSTER = re.compile(r"\s*[,.;:?!](?:[\s,.;:?!]*[,.;:?!])?")
_STRENGTH = ",:;.!?"
_ELIDED = "em|tis|twas|cause|til|bout|round|n|kay|course|cuse|gain|frisco"
_PUNCTUATION = (
    rule(r"[\"*_`~|•·<>{}\\]+(?=\s|$)|(?:(?<=\s)|^)[\"*_`~|•·]+", " "),
    rule(r"[\"*_`~•·]", " "),
    rule(r"[()\[\]]", ", "),
    rule(r"(?<=[a-z]):(?=[a-z])", " "),
    rule(r"\s*(?:[–—―‒]|--+)\s*|\s-+\s|(?<=\w)-+\s(?=\w)", ", "),
    rule(r"(?<!\w)-+|-+(?!\w)", " "),
    rule(rf"(?i)(?<!\w)'+(?!(?:{_ELIDED})\b)", " "),
    rule(r"(?<![sSnN])'+(?!\w)|'{2,}", " "),
    rule(r"\.{2,}(?=[\s\"')\]]*\S)", ", "),
    rule(r"[^A-Za-z0-9\s,.;:?!'-]", " "),
)
_WRITTEN = {"!": "≠", "<": "≤", ">": "≥", "=": "=", "&": "&"}  # != and so on, by their first sign
_OPERATORS = (  # of programs; C#, a note or a language
    rule(r"(?i)(?<!\w)([A-G])#(?![A-Za-z])", r"\1 sharp "),
    rule(r"(?<![<>=!&])(?:[!<>=]=|&&)=?(?![<>=&])", lambda m: f" {_WRITTEN[m[0][0]]} "),
    rule(r"(?<=\d)\s?[-=]+>\s?(?=[$£€]?\d)", " to "),
    rule(r"(?<![<=-])[-=]+>(?!>)", ", "),
    rule(r"(?<![\w*])([A-Za-z]|\d+)( ?)\*\*\2(?=(?:-?\d+|[a-z])\b(?!\*))", r"\1^"),
)
_WITHOUT_DIGITS = (*ADDRESSES, *_OPERATORS, *HALVES, *NAMES, *ABBREVIATIONS, *ROMAN)
_RULES = (
    *ADDRESSES, *_OPERATORS, *NOTATION, *BEFORE_NUMBERS, *DATES, *TIMES, *PRICES, *UNITS,
    *HALVES, *NAMES, *ABBREVIATIONS, *ROMAN, *NUMBERS,
)  # fmt: skip
_CAPITALS = re.compile(r"[A-Z]{2}|[A-Z]&[A-Z]|[a-z][A-Z]")  # what `say_acronyms` looks for
_MARKUP = "~`*|_"  # read as words by some rules, otherwise without meaning


def normalise_english(
    text: str, own_words: Collection[str] = (), unknown: UnknownCharacters = "refuse"
) -> str:
    """Writes English text in words ("Dr. Lee paid $5." becomes "Doctor Lee paid five dollars.").

    Numbers are read the American way, without "and"; so are dates written in figures (month
    first, unless the first number is over 12).

    The result has words of a to z with apostrophes and hyphens, and the marks `, . ; : ? !`. Text
    of only these is returned unchanged.

    Args:
        own_words: Words of a user lexicon in lower case; in capitals they are not acronyms.
        unknown: Whether letters of other scripts are spoken, left out, or a ScriptError.
    """
    return tidy_punctuation(english_in_words(text, own_words, unknown))


def english_in_words(text: str, own_words: Collection[str], unknown: UnknownCharacters) -> str:
    """Spells out a text like `normalise_english`, but keeps its punctuation and quotes."""
    text = clean_characters(text)
    if not text.isascii():
        text = to_ascii_letters(text, unknown, own_words)
    for pattern, say in _RULES if re.search(r"[0-9]", text) else _WITHOUT_DIGITS:
        text = pattern.sub(say, text)
    if _CAPITALS.search(text):
        text = say_acronyms(text, own_words)
    return say_signs(text)


def say_signs(text: str) -> str:
    """Replaces signs by their names; those without one (`has_name`) are removed later."""
    return _NAMED_SIGN.sub(lambda match: f" {_SIGNS[match[0]]} ", text)


def has_name(sign: str) -> bool:
    """Returns whether a sign is read as a word, or is markup; emoji and arrows are neither."""
    return sign in _SIGNS or sign in _MARKUP


def tidy_punctuation(text: str) -> str:
    """Keeps only words, apostrophes, hyphens and single marks `, . ; : ? !`.

    Quotes are removed; brackets, dashes and dots inside a sentence become commas; of several marks
    in a row the strongest is kept.
    """
    for pattern, mark in _PUNCTUATION:
        text = pattern.sub(mark, text)
    text = _CLUSTER.sub(lambda match: max(match[0], key=_STRENGTH.find) + " ", text)
    return " ".join(text.lstrip(" ,.;:?!").split())
