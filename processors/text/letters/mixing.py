"""Which words of a text in letters are said by their phones.

Whether a word is in phones is drawn from names alone, as every random choice here: it does not
depend on the process, the order of utterances or on a resumed run.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from processors.records import SpokenText, Word, WordPhones
from utils.seed import derived_seed

_SEEDS = 2**63  # derived seeds are smaller


def draw(word_phones: Iterable[WordPhones], p: float, *key: str | int) -> list[WordPhones]:
    """Draws the words that are said by their phones, each with probability `p`, by a key."""
    return [w for w in word_phones if derived_seed("arpabet", *key, w.word) < p * _SEEDS]


def substitute(letters: Sequence[str], chosen: Iterable[WordPhones]) -> tuple[str, ...]:
    """A sequence with the phones of the chosen words in place of their letters."""
    mixed: list[str] = []
    done = 0
    for word in chosen:
        mixed += [*letters[done : word.start], *word.phones]
        done = word.end
    return (*mixed, *letters[done:])


def mix(spoken: SpokenText, p: float) -> SpokenText:
    """A text with each word either in letters or in phones, the same at every call."""
    if not spoken.word_phones:
        return spoken
    chosen = draw(spoken.word_phones, p, spoken.normalized)
    by_word = {choice.word: choice for choice in chosen}
    words: list[Word] = []
    shift = 0
    for index, word in enumerate(spoken.words):
        start = word.start + shift
        if index in by_word:
            shift += len(by_word[index].phones) - (word.end - word.start)
        words.append(Word(word.text, start, word.end + shift))
    phones = substitute(spoken.phones, chosen)
    return replace(spoken, phones=phones, words=tuple(words), word_phones=())


def longest(phones: Sequence[str], word_phones: Iterable[WordPhones]) -> int:
    """The length of the longest mixture."""
    return len(phones) + sum(max(0, len(w.phones) - (w.end - w.start)) for w in word_phones)
