"""The vocabulary of a model, from its text settings and the phones of its data."""

from collections.abc import Iterable

from config.text import TextConfig
from processors.text.letters.nvidia import nvidia_vocabulary
from processors.text.symbols import WORD_BOUNDARY, Vocabulary, arpabet_vocabulary, vocabulary_of


def model_vocabulary(text: TextConfig, phones: Iterable[str]) -> Vocabulary:
    """Symbols of the data; with a lexicon also all of ARPAbet, so that every word is covered."""
    if text.has_nvidia_symbols:
        return nvidia_vocabulary(text.phone_extractor)
    symbols = {*phones, WORD_BOUNDARY} if text.in_letters else set(phones)
    if text.phone_extractor in ("espeak", "letters"):
        return vocabulary_of(symbols)
    arpabet = arpabet_vocabulary().symbols
    return Vocabulary((*arpabet, *sorted(symbols - set(arpabet))))
