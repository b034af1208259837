"""Written text to words: cleaned characters for every language, spelt-out words for English."""

from processors.text.normalize.characters import clean_characters
from processors.text.normalize.english import is_english, normalize_english

__all__ = ["clean_characters", "is_english", "normalize_english"]
