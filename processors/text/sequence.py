"""Puts the phones or letters of words, and the pauses between them, into one sequence."""

from config.text import TextConfig
from processors.records import Word, WordPhones
from processors.text.lexicon import Pronunciation
from processors.text.symbols import END, FULL_STOP, SHORT_PAUSE, SILENCE, WORD_BOUNDARY


class PhoneSequence:
    """Grows from left to right; SpokenText describes its form.

    Attributes:
        phones: Phones, letters and pauses.
        word_phones: Phones of the words that are in letters.
        unknown: Words that no lexicon holds.
    """

    def __init__(self, config: TextConfig) -> None:
        self._keeps_marks = config.has_nvidia_symbols
        self._ends_in_eos = config.ends_in_eos
        self._classes = config.pauses == "classes"
        self._bounded = config.in_letters and not self._keeps_marks
        self.phones: list[str] = []
        self.words: list[Word] = []
        self.word_phones: list[WordPhones] = []
        self.unknown: list[str] = []
        if self._classes and not self._keeps_marks:
            self.phones.append(SILENCE)

    def add_word(self, text: str, said: Pronunciation) -> None:
        """Appends a word, and the boundary before it."""
        if self._bounded and self._ends_in_word:
            self.phones.append(WORD_BOUNDARY)
        start, end = len(self.phones), len(self.phones) + len(said.phones)
        if said.instead:
            self.word_phones.append(WordPhones(len(self.words), start, end, said.instead))
        self.words.append(Word(text, start, end))
        self.phones += said.phones
        if not said.in_lexicon:
            self.unknown.append(text)

    def add_pause(self, name: str) -> None:
        """Appends a pause or mark by its name; punctuation before the first word makes none."""
        if self._keeps_marks:
            self.phones.append(name)
        elif self.words:
            self.phones.append(name if self._classes else SHORT_PAUSE)

    def finish(self) -> None:
        """Makes the sequence end as it must: with the class of the final punctuation, if any."""
        if self._keeps_marks:
            self.phones += [END] * self._ends_in_eos
            return
        if self._classes and self._ends_in_word:
            self.phones.append(FULL_STOP)
        if self.phones[-1] == SHORT_PAUSE:
            self.phones.pop()

    @property
    def _ends_in_word(self) -> bool:
        return bool(self.words) and self.words[-1].end == len(self.phones)
