"""English text to words, by ordered rules.

The order matters: addresses contain digits and dots that no later rule may change, dates contain
numbers, prices contain units, and a reference ("No. 5") needs its number in figures.
"""

import re
from collections.abc import Collection

from processors.text.normalisation.abbreviations import ABBREVIATIONS, ADDRESSES, say_acronyms
from processors.text.normalisation.characters import (
    BEFORE_NUMBERS,
    SHARPS,
    apply,
    clean_characters,
    say_signs,
    tidy_punctuation,
    to_ascii_letters,
)
from processors.text.normalisation.dates import DATES, HALVES, NAMES, TIMES
from processors.text.normalisation.numbers import NUMBERS, ROMAN
from processors.text.normalisation.quantities import PRICES, UNITS

_DIGIT = re.compile(r"[0-9]")


def is_english(language: str) -> bool:
    """Whether an espeak language code is one of English."""
    return language.split("-")[0] == "en"


def normalise_english(text: str, own_words: Collection[str] = ()) -> str:
    """Writes English text in words ("Dr. Lee paid $5." becomes "Doctor Lee paid five dollars.").

    Numbers are read the American way, without "and"; so are dates written in figures (month
    first, unless the first number is over 12).

    Args:
        own_words: Words of a user lexicon in lower case; in capitals they are not acronyms.

    Returns:
        Words of a to z with apostrophes and hyphens, and the marks `, . ; : ? !`. Text of only
        these is returned unchanged.

    Raises:
        InputError: If a letter is not Latin.
    """
    return tidy_punctuation(english_in_words(text, own_words))


def english_in_words(text: str, own_words: Collection[str] = ()) -> str:
    """Spells out a text like `normalise_english`, but keeps its punctuation and quotes."""
    text = to_ascii_letters(clean_characters(text))
    text = apply((*ADDRESSES, *SHARPS), text)
    has_digits = bool(_DIGIT.search(text))
    if has_digits:
        text = apply((*BEFORE_NUMBERS, *DATES, *TIMES, *PRICES, *UNITS), text)
    text = apply((*HALVES, *NAMES, *ABBREVIATIONS, *ROMAN), text)
    if has_digits:
        text = apply(NUMBERS, text)
    return say_signs(say_acronyms(text, own_words))
