"""Written text to words: cleaned characters for every language, spelt-out words for English."""

from processors.text.normalize.characters import clean_characters
from processors.text.normalize.english import english_in_words, is_english, normalize_english
from processors.text.normalize.sign_words import name_signs
from processors.text.normalize.signs import has_name

__all__ = [
    "clean_characters",
    "english_in_words",
    "has_name",
    "is_english",
    "name_signs",
    "normalize_english",
]
