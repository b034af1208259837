"""Assigns phones to words if a phonemizer has merged or split words."""

from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher

Phones = tuple[str, ...]
_VOWELS = frozenset("aeiouyæøœɐɑɒɔəɘɚɛɜɝɞɤɨɪɯɵɶʉʊʌʏᵻ")
_INSERTED = 0.8  # less than 1.2 for a vowel and a consonant, which seldom correspond


def share_phones(
    words: Sequence[str], groups: Sequence[Phones], alone: Sequence[Phones]
) -> list[Phones]:
    """Assigns the phones of a clause to its words.

    Groups equal to the pronunciation of a single word, but for stress, are assigned first; between
    those, phones are shared by the alignment of least edit distance. Words that would get none, and
    those near them, keep the phones they have alone.

    Args:
        groups: Phones of the clause, in groups that need not be words.
        alone: Phones of each word in isolation.
    """
    shared: list[Phones] = []
    for word_range, group_range in _two_sided(_gaps(groups, alone)):
        expected = [alone[index] for index in word_range]
        heard = [groups[index] for index in group_range]
        plain = all(words[index].isalpha() for index in word_range)
        same_number = plain and len(heard) == len(expected)
        shared += heard if same_number else _share_gap(heard, expected)
    return shared


def _gaps(groups: Sequence[Phones], alone: Sequence[Phones]) -> Iterator[tuple[range, range]]:
    """Ranges of words and of groups that correspond, each anchor and each run between anchors."""
    bare_groups = [_without_stress(group) for group in groups]
    bare_words = [_without_stress(word) for word in alone]
    matcher = SequenceMatcher(None, bare_words, bare_groups, autojunk=False)
    word = group = 0
    for match in matcher.get_matching_blocks():
        if match.a > word or match.b > group:
            yield range(word, match.a), range(group, match.b)
        for offset in range(match.size):
            word, group = match.a + offset, match.b + offset
            yield range(word, word + 1), range(group, group + 1)
        word, group = match.a + match.size, match.b + match.size


def _two_sided(gaps: Iterable[tuple[range, range]]) -> list[tuple[range, range]]:
    """Gaps with those that lack words or groups joined to a neighbour."""
    joined: list[tuple[range, range]] = []
    for words, groups in gaps:
        if joined and not (words and groups and all(joined[-1])):
            before = joined.pop()
            words = range(before[0].start, words.stop)
            groups = range(before[1].start, groups.stop)
        joined.append((words, groups))
    return joined


def _share_gap(groups: Sequence[Phones], alone: Sequence[Phones]) -> list[Phones]:
    phones = [phone for group in groups for phone in group]
    if len(alone) == 1:
        return [tuple(phones) or alone[0]]
    expected = [phone for word in alone for phone in word]
    if not expected:
        return list(alone)
    word_of = [index for index, word in enumerate(alone) for _ in word]
    shared: list[list[str]] = [[] for _ in alone]
    for phone, place in zip(phones, _places(phones, expected), strict=True):
        shared[word_of[place]].append(phone)
    # no word may be left without phones
    return [tuple(word) for word in shared] if all(shared) else list(alone)


def _places(phones: Sequence[str], expected: Sequence[str]) -> list[int]:
    """Index in `expected` of each phone's counterpart (Wagner and Fischer 1974)."""
    rows, columns = len(phones), len(expected)
    cost = [[column * _INSERTED for column in range(columns + 1)]]
    for row in range(1, rows + 1):
        cost.append([row * _INSERTED])
        for column in range(1, columns + 1):
            swap = cost[row - 1][column - 1] + _distance(phones[row - 1], expected[column - 1])
            skip = min(cost[row - 1][column], cost[row][column - 1]) + _INSERTED
            cost[row].append(min(swap, skip))
    places, column = [0] * rows, columns
    row = rows
    while row > 0:
        here = cost[row][column]
        if column > 0 and here == cost[row][column - 1] + _INSERTED:
            column -= 1
            continue
        places[row - 1] = max(column - 1, 0)
        if column > 0 and here != cost[row - 1][column] + _INSERTED:
            column -= 1
        row -= 1
    return places


def _distance(first: str, second: str) -> float:
    first, second = first.lstrip("ˈˌ"), second.lstrip("ˈˌ")
    if first == second:
        return 0.0
    return 0.6 if (first[:1] in _VOWELS) == (second[:1] in _VOWELS) else 1.2


def _without_stress(phones: Phones) -> Phones:
    return tuple(phone.lstrip("ˈˌ") for phone in phones)
