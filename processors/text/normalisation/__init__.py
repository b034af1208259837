"""Written text to words: cleaned characters for every language, spelt-out words for English."""

from processors.text.normalisation.characters import clean_characters
from processors.text.normalisation.english import english_in_words, is_english, normalise_english
from processors.text.normalisation.sign_words import name_signs
from processors.text.normalisation.signs import has_name

__all__ = [
    "clean_characters",
    "english_in_words",
    "has_name",
    "is_english",
    "name_signs",
    "normalise_english",
]
