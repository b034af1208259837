"""Matches the words of a text with the words or phones of another transcript of the same text.

Aligners split words in their own ways: "don't" into "do" and "n't", "well-known" into two words,
unknown words into `<unk>`. Symbol by symbol (letters or phones) the transcripts are nearly equal.
"""

import unicodedata
from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import accumulate, chain, pairwise

import numpy as np

MIN_WORDS = 0.5  # shared by two transcripts; 2030 pairs of other sentences shared at most 0.5
MIN_LETTERS = 0.6  # likewise, where words are split otherwise; those pairs shared at most 0.51
UNKNOWN = "?"  # symbol for any number of others: `<unk>`, `[laugh]`, `spn`, a number in digits
MAX_EDITED = 0.5  # of the symbols: more differ where two phone sets are compared

Symbols = Sequence[str]


def is_same_text(words: Sequence[str], others: Sequence[str]) -> bool:
    """Returns whether two transcripts can be of the same text.

    They can if `MIN_WORDS` of the words or `MIN_LETTERS` of the letters agree in order. Numbers,
    unknown words (`<unk>`) and other writing systems, such as pinyin for Chinese, cannot be
    compared.
    """
    if not is_comparable(words, others):
        return True
    first, second = _spelt(words), _spelt(others)
    agree = sum(block.size for block in _matcher(first, second).get_matching_blocks())
    unknown = len(others) - len(second)  # each may be any word of the text
    if agree >= MIN_WORDS * (len(first) - unknown):
        return True
    return _matcher("".join(first), "".join(second)).ratio() >= MIN_LETTERS


def is_comparable(words: Sequence[str], others: Sequence[str]) -> bool:
    """Returns whether two transcripts are both words of one writing system."""
    # by the first words of the names of their letters, such as LATIN
    scripts, other_scripts = (
        {unicodedata.name(char, "").partition(" ")[0] for word in _spelt(text) for char in word}
        for text in (words, others)
    )
    return not scripts.isdisjoint(other_scripts)


def first_missing_word(
    words: Sequence[Symbols], units: Sequence[Symbols]
) -> tuple[int, int] | None:
    """Finds the first word of a text that a transcript lacks, and counts the units before it.

    A word is missing if an alignment of least edits (Wagner and Fischer 1974) deletes all of its
    symbols; if the phones have other names, none is missing. The units of the other transcript are
    words or phones.
    """
    text, other = [*chain(*words)], [*chain(*units)]
    before = _edits(text, other)  # (S + 1, U + 1)
    after = _edits(text[::-1], other[::-1])[::-1, ::-1]  # (S + 1, U + 1)
    least = before[-1, -1]
    if least - abs(len(text) - len(other)) > MAX_EDITED * min(len(text), len(other)):
        return None
    for index, (start, end) in enumerate(pairwise([0, *accumulate(map(len, words))])):
        edits = before[start] + (end - start) + after[end]  # (U + 1,)
        if end > start and edits.min() == least:
            n_symbols = np.flatnonzero(edits == least)[-1]
            ends = [*accumulate(map(len, units))]
            return index, int(np.searchsorted(ends, n_symbols, side="right"))
    return None


def _edits(text: Symbols, other: Symbols) -> np.ndarray:
    """Counts edits from each beginning of the text to each of the other, (S + 1, U + 1)."""
    symbols = np.array(other, dtype=object)  # (U,)
    is_unknown = symbols == UNKNOWN
    columns = np.arange(len(other) + 1)
    edits = [columns]
    for symbol in text:
        above = edits[-1]
        swapped = above[:-1] + ((symbols != symbol) & ~is_unknown)
        removed = np.array([above[0] + 1, *np.minimum(swapped, above[1:] + ~is_unknown)])
        edits.append(np.minimum.accumulate(removed - columns) + columns)
    return np.array(edits)


def symbols_of(word: str) -> Symbols:
    """Returns letters of a word, to compare; `UNKNOWN` for one that can stand for other words."""
    letters = _letters(word)
    is_label = word.startswith(("<", "[", "(", "{")) or any(char.isdigit() for char in word)
    return UNKNOWN if is_label or not letters else letters


def _matcher(first: Sequence[str], second: Sequence[str]) -> SequenceMatcher[str]:
    return SequenceMatcher(None, first, second, autojunk=False)


def _letters(word: str) -> str:
    """Returns small letters without accents; none for `<unk>` and numbers."""
    chars = "" if word.startswith("<") else unicodedata.normalize("NFKD", word.casefold())
    return "".join(char for char in chars if char.isalpha())


def _spelt(words: Sequence[str]) -> list[str]:
    return [*filter(None, map(_letters, words))]


def match_boundaries(words: Sequence[Symbols], units: Sequence[Symbols]) -> list[int]:
    """Finds the end of each word of a text, as a number of units of the other transcript.

    Both are given by their symbols. The ends never decrease, and the last one is len(units).
    """
    first, second = [*chain(*words)], [*chain(*units)]
    # each boundary between symbols of the text in the other transcript, spread evenly where they
    # differ
    boundaries = [0.0] * (len(first) + 1)
    for _, start, end, other_start, other_end in _matcher(first, second).get_opcodes():
        step = (other_end - other_start) / max(end - start, 1)
        for offset in range(end - start + 1):
            boundaries[start + offset] = other_start + offset * step
    ends = [0, *accumulate(map(len, units))]  # in symbols, after so many units
    matched = [0]
    for word_end in accumulate(map(len, words)):
        distances = [abs(end - boundaries[word_end]) for end in ends]
        matched.append(max(distances.index(min(distances)), matched[-1]))
    return [*matched[1:-1], len(units)]
