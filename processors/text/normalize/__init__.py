"""Written text to words: cleaned characters for every language, spelt-out words for English."""

from processors.text.normalize.characters import clean_characters
from processors.text.normalize.english import normalize_english

__all__ = ["clean_characters", "normalize_english"]
