"""Words of other languages in English text, in the letters a to z: accents and other scripts."""

import re
import unicodedata
from collections.abc import Collection
from functools import lru_cache
from itertools import groupby

from config.text import UnknownCharacters
from processors.text.g2p import lookup
from utils.errors import InputError, ScriptError

# Latin letters that Unicode does not decompose into a base letter and a mark.
_LATIN = str.maketrans(
    {
        "æ": "ae", "Æ": "Ae", "œ": "oe", "Œ": "Oe", "ø": "o", "Ø": "O", "ß": "ss", "ẞ": "SS",
        "ł": "l", "Ł": "L", "đ": "d", "Đ": "D", "ð": "th", "Ð": "Th", "þ": "th", "Þ": "Th",
        "ı": "i", "ħ": "h", "Ħ": "H", "ŋ": "ng", "ə": "e", "ŧ": "t",
    }
)  # fmt: skip
_UNIT_LETTERS = "μΩ"  # micro and ohm: the unit rules read them after a number
_AFTER_NUMBER = re.compile(r"\d\s?[kMmGT]?$")

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
_ACUTE = re.compile(r"ée?(s?)$")
_AS_ACUTE = re.compile(r"(?:EY.|S IY.)(?: Z)?$")  # pronunciations that end as "é", or "fiancée"


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
    elif (match := _ACUTE.search(lower)) and not _AS_ACUTE.search(
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
        if not is_foreign or (run in _UNIT_LETTERS and _AFTER_NUMBER.search(written[-4:])):
            written += run
        elif unknown == "speak":
            if _SYMBOLS.fullmatch(run) and not _WORD.match(text, end):  # "Ωmega" is a word
                written += "".join(f" {_greek_name(letter)} " for letter in run)
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


def _greek_name(letter: str) -> str:
    base = unicodedata.normalize("NFD", letter)[0]
    return unicodedata.name(base).split()[-1].lower().replace("lamda", "lambda")


def _ascii(char: str) -> str:
    category = unicodedata.category(char)
    if char.isascii() or char in _UNIT_LETTERS or category[0] not in "LMN":
        return char
    base = "".join(part for part in unicodedata.normalize("NFKD", char) if part.isascii())
    if base or category[0] == "M":
        return base
    raise ScriptError(
        f"'{char}' ({unicodedata.name(char, 'unnamed character')}) is not a letter of English",
        "choose a voice of its language, or set inference.unknown_characters to speak, or skip to"
        " leave it out; for a corpus set its language and phone_extractor espeak",
    )
