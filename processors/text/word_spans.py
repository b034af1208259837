"""Assigns phones to words if a phonemizer has merged or split words."""

from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher

Phones = tuple[str, ...]
_VOWELS = frozenset("aeiouyæøœɐɑɒɔəɘɚɛɜɝɞɤɨɪɯɵɶʉʊʌʏᵻ")
_INSERTED = 0.8  # against 1.2 for a vowel in a consonant's place: those rather do not correspond


def share_phones(
    words: Sequence[str], groups: Sequence[Phones], alone: Sequence[Phones]
) -> list[Phones]:
    """Assigns the phones of a clause to its words.

    Groups that sound like one of the words said alone are fixed first; between those, phones
    are shared by the alignment of least edit distance.

    Args:
        words: The words of the clause.
        groups: Phones as said in the clause, in groups that need not be words.
        alone: The phones of each word said alone.

    Returns:
        One tuple per word, in order. They hold all the phones of `groups`, unless some word would
        get none: such words, and those near them, keep the phones they have alone.
    """
    shared: list[Phones] = []
    for word_range, group_range in _two_sided(_gaps(groups, alone)):
        own = [alone[index] for index in word_range]
        said = [groups[index] for index in group_range]
        plain = all(words[index].isalpha() for index in word_range)
        shared += said if plain and len(said) == len(own) else _share_gap(said, own)
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


def _share_gap(said: Sequence[Phones], own: Sequence[Phones]) -> list[Phones]:
    phones = [phone for group in said for phone in group]
    if len(own) == 1:
        return [tuple(phones) or own[0]]
    expected = [phone for word in own for phone in word]
    if not expected:
        return list(own)
    word_of = [index for index, word in enumerate(own) for _ in word]
    shared: list[list[str]] = [[] for _ in own]
    for phone, place in zip(phones, _places(phones, expected), strict=True):
        shared[word_of[place]].append(phone)
    # A word that lost all its phones to its neighbours must still be said.
    return [tuple(word) for word in shared] if all(shared) else list(own)


def _places(phones: Sequence[str], expected: Sequence[str]) -> list[int]:
    """For each phone the place in `expected` that it stands for (Wagner and Fischer 1974)."""
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
