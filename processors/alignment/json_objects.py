"""Words and phones with times as JSON objects, by whatever names projects call them."""

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import Any

from processors.alignment import AlignmentError
from processors.alignment.timed import Grid, Interval, make_grid

_STARTS = ("start_s", "start", "begin", "xmin")
_ENDS = ("end_s", "end", "stop", "xmax")
_LENGTHS = ("duration_s", "duration", "dur", "length")
_PHONES = ("phone", "label", "name", "text")
_WORDS = ("word", "text", "label", "name")
_SECONDS = ("recording_s", "seconds")


def grid_of(row: object) -> Grid:
    """Phones and words of an object: `phones` and `words` in it, or `phones` in each of `words`.

    Each phone and word is an object with a name, a start, and an end or a length, in seconds.

    Raises:
        AlignmentError: If it is something else.
    """
    if not isinstance(row, dict):
        raise AlignmentError(f"expected an object with phones, found {str(row)[:60]!r}")
    words = _rows(row, "words")
    if isinstance(row.get("phones"), list):
        phones = [_interval(one, _PHONES) for one in _rows(row, "phones")]
        timed = [_interval(one, _WORDS) for one in words]
    else:
        phones = [_interval(one, _PHONES) for word in words for one in _rows(word, "phones")]
        timed = [*_around(words)]
    if not phones:
        raise AlignmentError(f"no phones; it has {', '.join(map(str, row)) or 'nothing'}")
    return make_grid(_number(row, _SECONDS), timed, phones)


def _rows(row: Mapping[str, Any], key: str) -> Sequence[Mapping[str, Any]]:
    found = row.get(key, [])
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise AlignmentError(f"`{key}` is no list of objects")
    return found


def _around(words: Sequence[Mapping[str, Any]]) -> Iterator[Interval]:
    """Words that last as long as their phones."""
    for word in words:
        phones = [_interval(one, _PHONES) for one in _rows(word, "phones")]
        if phones:
            yield Interval(_name(word, _WORDS), phones[0].start_s, phones[-1].end_s)


def _interval(row: Mapping[str, Any], names: Sequence[str]) -> Interval:
    label = _name(row, names)
    start_s, end_s = _number(row, _STARTS), _number(row, _ENDS)
    if start_s is not None and end_s is None and (length_s := _number(row, _LENGTHS)) is not None:
        end_s = start_s + length_s
    if start_s is None or end_s is None:
        raise AlignmentError(f"{label!r} has no start, or no end or duration")
    return Interval(label, start_s, end_s)


def _name(row: Mapping[str, Any], names: Sequence[str]) -> str:
    found = [row[key] for key in names if isinstance(row.get(key), str)]
    if not found:
        raise AlignmentError(f"{str(row)[:60]} has no name: expected {' or '.join(names[:2])}")
    return str(found[0])


def _number(row: Mapping[str, Any], names: Sequence[str]) -> float | None:
    found = [row[key] for key in names if isinstance(row.get(key), (int, float))]
    try:
        return float(found[0]) if found else None
    except OverflowError:  # an integer of hundreds of digits
        return inf
