"""Written text to words: cleaned characters for every language, spelt-out words for English."""
