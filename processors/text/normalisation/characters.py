"""Cleaned characters, substitution rules, and signs that are read aloud, in several languages."""

import re
import unicodedata
from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

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
_MARKUP = "~`*|_"  # read as words by some rules, otherwise without meaning
_CLUSTER = re.compile(r"\s*[,.;:?!](?:[\s,.;:?!]*[,.;:?!])?")
_STRENGTH = ",:;.!?"
_ELIDED = "em|tis|twas|cause|til|bout|round|n|kay|course|cuse|gain|frisco"
_PLAIN = re.compile(r"[A-Za-z0-9\s,.;:?!'-]*")


class Rule(NamedTuple):
    """A pattern and its replacement."""

    pattern: re.Pattern[str]
    say: Callable[[re.Match[str]], str] | str


def rule(pattern: str, say: Callable[[re.Match[str]], str] | str, flags: int = 0) -> Rule:
    """Builds a rule, with ASCII semantics of digits and word characters."""
    return Rule(re.compile(pattern, flags | re.ASCII), say)


def apply(rules: Iterable[Rule], text: str) -> str:
    """Applies rules in order."""
    for pattern, say in rules:
        text = pattern.sub(say, text)
    return text


class OtherScriptError(InputError):
    """A letter that is not Latin in English text; the message says what a corpus needs."""

    def __init__(self, letter: str) -> None:
        super().__init__(
            f"{letter} is not a letter of English; write the text in English, or set the corpus's"
            " language and phone_extractor espeak"
        )
        self.letter = letter  # with its name

    def __reduce__(self) -> tuple[type, tuple[str]]:
        return type(self), (self.letter,)


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


_SAID = {
    "&": "and", "@": "at", "+": "plus", "=": "equals", "±": "plus or minus", "÷": "divided by",
    "×": "times", "<": "less than", ">": "greater than", "≤": "less than or equal to",
    "≥": "greater than or equal to", "≠": "is not equal to", "≈": "approximately", "√": "root",
    "∞": "infinity", "%": "percent", "°": "degrees", "§": "section", "©": "copyright",
    "€": "euros", "£": "pounds", "$": "dollars", "¥": "yen", "¢": "cents", "#": "hash",
    "^": "to the power of", "/": "slash", "\\": "backslash", "μ": "mu", "Ω": "ohm",
    "‰": "per mille",
    "₹": "rupees", "₽": "rubles", "₩": "won", "∙": "times", "−": "minus",
}  # fmt: skip
_SIGN = re.compile("[" + re.escape("".join(_SAID)) + "]")

SHARPS = (rule(r"(?<!\w)([A-G])#(?![A-Za-z])", r"\1 sharp ", re.I),)  # C#, a note or a language
BEFORE_NUMBERS = (
    rule(r"#\s?(?=\d)", " number "),
    rule(r"\bNo\s(?=\d)", "number "),
    rule(r"~\s?(?=[\d$£€])", "about "),
    rule(r"±\s?(?=[\d])", "plus or minus "),
    rule(r"§§?\s?(?=\d)", "section "),
    rule(r"(?<=\d)\s?\+(?=\s|$|[,.;!?])", " plus"),
    rule(r"(?<=\d)\s-\s(?=\d+\s*=)", " minus "),
    rule(r"(?<=\d)\s?\*\s?(?=\d)", " times "),
    rule(r"(?<=\d)\s×\s(?=\d+\s*=)", " times "),
    rule(
        r"(?<=\d)(?<!\b0)\s?[x×]\s?(?=\d)|(?<=\b0)(?:\s[x×]\s?|×)(?=\d)|(?<=[\da-z])\s[x×]\s(?=\d)",
        " by ",
    ),
    rule(r"(?<![\d.,])\d{1,3}(?: \d{3}){2,}(?![\d.,]\d)", lambda m: m[0].replace(" ", "")),
    rule(r"(?<![\d.,])(\d{1,3}) 000(?!\d| \d)", r"\g<1>000"),
)
_PUNCTUATION = (
    rule(r"[\"*_`~|•·<>{}\\]+(?=\s|$)|(?:(?<=\s)|^)[\"*_`~|•·]+", " "),
    rule(r"[\"*_`~•·]", " "),
    rule(r"[()\[\]]", ", "),
    rule(r"(?<=[a-z]):(?=[a-z])", " "),
    rule(r"\s*(?:[–—―‒]|--+)\s*|\s-+\s|(?<=\w)-+\s(?=\w)", ", "),
    rule(r"(?<!\w)-+|-+(?!\w)", " "),
    rule(rf"(?<!\w)'+(?!(?:{_ELIDED})\b)", " ", re.I),
    rule(r"(?<![sSnN])'+(?!\w)|'{2,}", " "),
    rule(r"\.{2,}(?=[\s\"')\]]*\S)", ", "),
)
_LATIN_MINUS = ("af", "bs", "da", "de", "en", "et", "hr", "id", "ms", "nb", "pl", "ro", "sl", "sv")
_WORDS = {
    MINUS: dict.fromkeys(_LATIN_MINUS, "minus") | {
        "ar": "ناقص", "bg": "минус", "bn": "মাইনাস", "ca": "menys", "cmn": "负", "el": "μείον",
        "es": "menos", "fa": "منفی", "fi": "miinus", "fr": "moins", "he": "מינוס", "hi": "माइनस",
        "ja": "マイナス", "ko": "마이너스", "lt": "minus", "lv": "mīnus", "mk": "минус",
        "pt": "menos", "ru": "минус", "sr": "минус", "tr": "eksi", "uk": "мінус", "vi": "âm",
        "yue": "負",
    },
    "^": {
        "ar": "أس", "ca": "elevat a", "cs": "na", "de": "hoch", "en": "to the power of",
        "es": "elevado a", "fr": "puissance", "it": "alla", "nl": "tot de macht",
        "pl": "do potęgi", "pt": "elevado a", "ru": "в степени", "sv": "upphöjt till",
        "tr": "üssü", "uk": "у степені",
    },
    "°": {
        "ar": "درجة", "cmn": "度", "da": "grader", "el": "βαθμοί", "fi": "astetta", "he": "מעלות",
        "hi": "डिग्री", "ja": "度", "ko": "도", "ru": "градусов", "sv": "grader", "uk": "градусів",
        "vi": "độ",
    },
    "€": {
        "cmn": "欧元", "fa": "یورو", "he": "אירו", "hi": "यूरो", "ja": "ユーロ", "ko": "유로",
        "pl": "euro", "ru": "евро", "uk": "євро", "vi": "ơ rô",
    },
    "$": {"cmn": "美元", "ja": "ドル", "ko": "달러"},
    "%": {"ar": "بالمئة", "ja": "パーセント", "ko": "퍼센트"},
    "=": {"ar": "يساوي", "fr": "égale", "ja": "イコール"},
}  # fmt: skip
# the word between the ends of a range, which espeak-ng leaves out
_RANGE_WORDS = {
    "ca": "a", "cs": "až", "da": "til", "de": "bis", "en": "to", "es": "a", "fr": "à", "it": "a",
    "nb": "til", "nl": "tot", "pl": "do", "pt": "a", "ru": "до", "sk": "až", "sv": "till",
    "uk": "до",
}  # fmt: skip
_NUMBER = (
    r"(?:0|[1-9]\d*)(?:[.,]\d+)?"  # no leading zero: that is a part of a date or a telephone number
)
_RANGE = re.compile(
    rf"(?<![\w.,:/+-])(?<!\d )({_NUMBER})\s?[-–—]\s?({_NUMBER})(?![\w:/-]|[.,]\d| \d|\s?[-–—=])"
)
_NEGATIVE = re.compile(r"(?:(?<![^\s(\[<>=^*/×+:])|(?<=\d[eE]))-(?=[.,]?\d)")


def say_signs(text: str) -> str:
    """Replaces signs by their names; those without one (`has_name`) are removed later."""
    if not _PLAIN.fullmatch(text):
        text = _SIGN.sub(lambda match: f" {_SAID[match[0]]} ", text)
    return text


def has_name(sign: str) -> bool:
    """Whether a sign is read as a word, or is markup; emoji and arrows are neither."""
    return sign in _SAID or sign in _MARKUP


def tidy_punctuation(text: str) -> str:
    """Keeps only words, apostrophes, hyphens and single marks `, . ; : ? !`.

    Quotes are removed; brackets, dashes and dots inside a sentence become commas; of several marks
    in a row the strongest is kept.
    """
    for pattern, say in _PUNCTUATION:
        text = pattern.sub(say, text)
    text = "".join(char if _PLAIN.fullmatch(char) else " " for char in text)
    text = _CLUSTER.sub(lambda match: max(match[0], key=_STRENGTH.find) + " ", text)
    return " ".join(text.lstrip(" ,.;:?!").split())


def name_signs(text: str, language: str) -> str:
    """Replaces signs by words of the language; those without a word are left to espeak-ng.

    A hyphen before a number, but not inside one, is a minus, and between two ascending numbers a
    range.
    """
    text = _RANGE.sub(partial(_named_range, _RANGE_WORDS.get(language.split("-")[0])), text)
    text = _NEGATIVE.sub(MINUS, text)
    for sign, words in _WORDS.items():
        if sign in text and (word := words.get(language.split("-")[0])):
            text = text.replace(sign, f" {word} ")
    return " ".join(text.split())


def _named_range(word: str | None, match: re.Match[str]) -> str:
    low, high = (float(number.replace(",", ".")) for number in match.groups())
    return match[0] if word is None or low >= high else f"{match[1]} {word} {match[2]}"
