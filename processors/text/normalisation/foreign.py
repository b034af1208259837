"""Words of other languages in English text, in the letters a to z; signs in other languages."""

import re
import unicodedata
from collections.abc import Collection
from functools import lru_cache, partial
from itertools import groupby

from config.text import UnknownCharacters
from processors.text.g2p import lookup
from processors.text.tokens import MINUS
from utils.errors import InputError, ScriptError

# Latin letters that Unicode does not decompose into a base letter and a mark.
_LATIN = str.maketrans({
    "æ": "ae", "Æ": "Ae", "œ": "oe", "Œ": "Oe", "ø": "o", "Ø": "O", "ß": "ss", "ẞ": "SS",
    "ł": "l", "Ł": "L", "đ": "d", "Đ": "D", "ð": "th", "Ð": "Th", "þ": "th", "Þ": "Th",
    "ı": "i", "ħ": "h", "Ħ": "H", "ŋ": "ng", "ə": "e", "ŧ": "t",
})  # fmt: skip
_UNIT_LETTERS = "μΩ"  # micro and ohm: the unit rules read them after a number

# as they would be written in English: CMUdict has other words or sounds without the accents
_RESPELT = {
    "naïve": "nah-eve", "naïvely": "nah-eve-ly", "naïveté": "nah-eve-tay", "déjà": "day-zhah",
    "à": "ah", "touché": "tooshay", "coupé": "coopay", "résumé": "rezuhmay", "über": "oober",
    "rosé": "rozay", "blasé": "blahzay", "pâté": "pahtay", "lamé": "lahmay", "maté": "mahtay",
    "señor": "senyor", "niño": "neenyo", "niña": "neenya", "olé": "olay", "brontë": "brontay",
    "são": "sow", "soupçon": "soupson", "née": "nay", "crème": "crem", "jalapeño": "hahlapainyo",
}  # fmt: skip
_ACCENTED = re.compile(r"(?<![^\W\d_])[^\W\d_]*[^\x00-\x7f\W\d_][^\W\d_]*")
_WORD = re.compile("[a-z]{2}")
_SYMBOLS = re.compile("[Ͱ-Ͽἀ-῾]|[Α-Ω]{1,3}")
_AS_ACUTE = re.compile(r"(?:EY.|S IY.)(?: Z)?$")  # pronunciations that end as "é", or "fiancée"

# signs that espeak-ng leaves out or misreads, as words of other languages than English
_LATIN_MINUS = ("af", "bs", "da", "de", "en", "et", "hr", "id", "ms", "nb", "pl", "ro", "sl", "sv")
_SIGN_WORDS = {
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
_AMOUNT = r"(?:0|[1-9]\d*)(?:[.,]\d+)?"
_RANGE = re.compile(
    rf"(?<![\w.,:/+-])(?<!\d )({_AMOUNT})\s?[-–—]\s?({_AMOUNT})(?![\w:/-]|[.,]\d| \d|\s?[-–—=])"
)
_NEGATIVE = re.compile(r"(?:(?<![^\s(\[<>=^*/×+:])|(?<=\d[eE]))-(?=[.,]?\d)")


def to_ascii_letters(
    text: str, unknown: UnknownCharacters = "refuse", own_words: Collection[str] = ()
) -> str:
    """Writes English text with letters a to z only: accents are removed, ligatures split.

    A word that English speakers say by its accents is written as they say it ("résumé").

    Args:
        unknown: Whether letters of other scripts are spoken, left out, or a ScriptError.
        own_words: Words of a user lexicon in lower case, which only lose their accents.
    """
    text = _ACCENTED.sub(lambda match: _loan_word(match[0], own_words), text)
    if unknown != "refuse":
        text = in_latin(text, unknown)
    return "".join(map(_ascii, text.translate(_LATIN)))


def _loan_word(word: str, own_words: Collection[str]) -> str:
    """Writes a word as it is said, if its letters without accents are said otherwise."""
    lower = word.lower()
    bare = "".join(c for c in unicodedata.normalize("NFKD", lower) if c.isascii())
    if word.isupper() or bare in own_words:
        return word
    stem = lower.removesuffix("s")
    if lower in _RESPELT or stem in _RESPELT:
        respelt = _RESPELT.get(lower) or _RESPELT[stem] + "s"
    elif (match := re.search(r"ée?(s?)$", lower)) and not _AS_ACUTE.search(
        " ".join(lookup(bare) or lookup(bare.removesuffix("s")) or ())
    ):
        soft = re.sub("c$", "s", lower[: match.start()])
        respelt = f"{soft}ay{match[1]}"
    elif "ñ" in lower and lookup(bare) is None:
        respelt = lower.replace("ñ", "ny")
    elif "ö" in lower and lookup(german := lower.replace("ö", "oe")) is not None:
        respelt = german
    else:
        return word
    return respelt.capitalize() if word[0].isupper() else respelt


def in_latin(text: str, unknown: UnknownCharacters = "speak") -> str:
    """Writes letters of other scripts in Latin ones; those that have none are left out.

    Words are transliterated ("λόγος" is "logos"), and Greek letters that are symbols named: single
    ones, and up to three capitals. With `unknown` "skip" all are left out.
    """
    written, end = "", 0
    for is_foreign, letters in groupby(text, is_foreign_letter):
        run = "".join(letters)
        end += len(run)
        if not is_foreign or (run in _UNIT_LETTERS and re.search(r"\d\s?[kMmGT]?$", written[-4:])):
            written += run
        elif unknown == "speak":
            if _SYMBOLS.fullmatch(run) and not _WORD.match(text, end):  # "Ωmega" is a word
                bare = (unicodedata.normalize("NFD", letter)[0] for letter in run)
                names = (unicodedata.name(letter).split()[-1].lower() for letter in bare)
                written += "".join(f" {name.replace('lamda', 'lambda')} " for name in names)
            else:
                apart = " " * (unicodedata.category(run[0]) == "Lo")  # no script with capitals
                written += f"{apart}{transliterated(run)}{apart}"
    return written


@lru_cache(maxsize=4096)
def is_foreign_letter(char: str) -> bool:
    """Returns whether a character is a letter, mark or number without letters of English."""
    if char.isascii() or ord(char) in _LATIN or unicodedata.category(char)[0] not in "LMN":
        return False
    return not any(part.isascii() for part in unicodedata.normalize("NFKD", char))


def left_out(char: str, unknown: UnknownCharacters) -> bool:
    """Returns whether a character is a letter or number that `to_ascii_letters` leaves out."""
    return is_foreign_letter(char) and char.isalnum() and not in_latin(char, unknown).strip()


@lru_cache(maxsize=4096)
def transliterated(word: str) -> str:
    """Writes a word of any script in the letters a to z: "習近平" is "Xi Jin Ping"."""
    try:
        from anyascii import anyascii
    except ImportError:  # in the folder of an exported voice
        raise InputError(f"{word!r}: other scripts need a package: pip install anyascii") from None
    latin = re.sub("[^A-Za-z0-9]", "", anyascii(word))
    if lookup(latin) is not None:  # "BeiJing"
        return latin[0] + latin[1:].lower()
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", latin)


def _ascii(char: str) -> str:
    category = unicodedata.category(char)
    if char.isascii() or char in _UNIT_LETTERS or category[0] not in "LMN":
        return char
    base = "".join(part for part in unicodedata.normalize("NFKD", char) if part.isascii())
    if base or category[0] == "M":
        return base
    raise ScriptError(
        f"'{char}' ({unicodedata.name(char, 'unnamed character')}) is not a letter of English",
        "write it in words; for a corpus of another language set its language and phone_extractor"
        " espeak; in synthesis set inference.unknown_characters to speak, or skip to leave it out",
    )


def name_signs(text: str, language: str) -> str:
    """Replaces signs by words of the language; those without a word are left to espeak-ng.

    A hyphen before a number, but not inside one, is a minus, and between two ascending numbers a
    range.
    """
    code = language.split("-")[0]
    text = _NEGATIVE.sub(MINUS, _RANGE.sub(partial(_named_range, _RANGE_WORDS.get(code)), text))
    for sign, words in _SIGN_WORDS.items():
        text = text.replace(sign, f" {words[code]} " if code in words else sign)
    return " ".join(text.split())


def _named_range(word: str | None, match: re.Match[str]) -> str:
    low, high = (float(number.replace(",", ".")) for number in match.groups())
    return f"{match[1]} {word} {match[2]}" if word and low < high else match[0]
