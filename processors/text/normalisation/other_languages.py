"""Signs that espeak-ng leaves out or misreads, as words of other languages than English."""

import re
from functools import partial

from processors.text.tokens import MINUS

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
# no leading zero: that is a part of a date or a telephone number
_NUMBER = r"(?:0|[1-9]\d*)(?:[.,]\d+)?"
_RANGE = re.compile(
    rf"(?<![\w.,:/+-])(?<!\d )({_NUMBER})\s?[-–—]\s?({_NUMBER})(?![\w:/-]|[.,]\d| \d|\s?[-–—=])"
)
_NEGATIVE = re.compile(r"(?:(?<![^\s(\[<>=^*/×+:])|(?<=\d[eE]))-(?=[.,]?\d)")


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
