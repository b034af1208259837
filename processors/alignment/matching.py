"""Matches the words of a text with the words or phones of another transcript of the same text.

Aligners split words in their own ways: "don't" into "do" and "n't", "well-known" into two words,
unknown words into `<unk>`. Symbol by symbol (letters or phones) the transcripts are nearly equal.
"""

import unicodedata
from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import accumulate, chain

MIN_WORDS = 0.5  # shared by two transcripts; 2030 pairs of other sentences shared at most 0.5
MIN_LETTERS = 0.6  # likewise, where words are split otherwise; those pairs shared at most 0.51
N_MARKS = 5  # this many words of at most two kinds are word classes, not a sentence

Symbols = Sequence[str]


def is_same_text(words: Sequence[str], others: Sequence[str]) -> bool:
    """Whether two transcripts can be of the same text.

    They can if `MIN_WORDS` of the words or `MIN_LETTERS` of the letters agree in order. Numbers,
    unknown words (`<unk>`), marks of word classes (EMU's C and F) and other writing systems, such
    as pinyin for Chinese, cannot be compared.

    Args:
        words: Of the text.
        others: Of the other transcript.
    """
    first = [letters for letters in map(_letters, words) if letters]
    second = [letters for letters in map(_letters, others) if letters]
    if not first or not second or not _scripts(first) & _scripts(second):
        return True
    if len(set(second)) <= 2 and len(second) >= N_MARKS:
        return True
    agree = sum(block.size for block in _matcher(first, second).get_matching_blocks())
    unknown = len(others) - len(second)  # each may be any word of the text
    if agree >= MIN_WORDS * (len(first) - unknown):
        return True
    return _matcher("".join(first), "".join(second)).ratio() >= MIN_LETTERS


def _matcher(first: Sequence[str], second: Sequence[str]) -> SequenceMatcher[str]:
    return SequenceMatcher(None, first, second, autojunk=False)


def _letters(word: str) -> str:
    """Small letters without accents; none for `<unk>` and numbers."""
    if word.startswith("<"):
        return ""
    return "".join(
        char for char in unicodedata.normalize("NFKD", word.casefold()) if char.isalpha()
    )


def _scripts(words: Sequence[str]) -> set[str]:
    """Writing systems, by the first words of the letters' names: `LATIN`, `CJK`."""
    return {unicodedata.name(char, "").partition(" ")[0] for word in words for char in word}


def match_boundaries(words: Sequence[Symbols], units: Sequence[Symbols]) -> list[int]:
    """Finds the end of each word, as a number of units.

    Args:
        words: The symbols of each word of the text.
        units: The symbols of each word, or each phone, of the other transcript.

    Returns:
        One number per word, in [0, len(units)], never decreasing, the last one len(units).
    """
    ends = [0, *accumulate(len(unit) for unit in units)]  # in symbols, after so many units
    place_of = _places([*chain(*words)], [*chain(*units)])
    matched = [0]
    for word_end in accumulate(len(word) for word in words):
        place = place_of[word_end]
        nearest = min(range(len(ends)), key=lambda count: abs(ends[count] - place))
        matched.append(max(nearest, matched[-1]))
    return [*matched[1:-1], len(units)]


def _places(first: Symbols, second: Symbols) -> list[float]:
    """For each boundary between symbols of `first` its place in `second`.

    Where the two differ, boundaries are spread evenly.
    """
    places = [0.0] * (len(first) + 1)
    for _, start, end, other_start, other_end in _matcher(first, second).get_opcodes():
        step = (other_end - other_start) / max(end - start, 1)
        for offset in range(end - start + 1):
            places[start + offset] = other_start + offset * step
    return places
