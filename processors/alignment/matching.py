"""Where the boundaries between words lie in another rendering of the same text.

An aligner writes words in its own way: "don't" as "do" and "n't", "well-known" as two words,
what it does not know as `<unk>`. Symbol by symbol (letters or phones) the two are nearly equal.
"""

from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import accumulate, chain

Symbols = Sequence[str]


def match_boundaries(words: Sequence[Symbols], units: Sequence[Symbols]) -> list[int]:
    """Finds for each word how many units are over when it is over.

    Args:
        words: The symbols of each word of the text.
        units: The symbols of each word, or each phone, of the other rendering.

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
    matcher = SequenceMatcher(None, first, second, autojunk=False)
    for _, start, end, other_start, other_end in matcher.get_opcodes():
        step = (other_end - other_start) / max(end - start, 1)
        for offset in range(end - start + 1):
            places[start + offset] = other_start + offset * step
    return places
