"""Matches the file names of another project with the ids of utterances."""

import re
from collections import Counter
from collections.abc import Collection, Iterable
from typing import NamedTuple

from processors.durations.sources import SourceEntry
from utils.errors import InputError

_BEFORE = re.compile(r"(?:.+-)?(?:durations?|align(?:ment)?)-(?P<id>.+)", re.IGNORECASE)
_AFTER = re.compile(
    r"(?P<id>.+?)[-_.](?:durations?|dur|align(?:ment)?|phones?|states?)", re.IGNORECASE
)


class Matches(NamedTuple):
    """The entries of a source, by the utterances of a corpus."""

    entries: dict[str, SourceEntry]  # by id
    missing: list[str]  # ids without an entry, sorted
    extra: list[str]  # names that belong to no utterance, sorted
    doubled: list[str]  # ids with several entries, sorted; none of them is used


def match_names(entries: Iterable[SourceEntry], ids: Collection[str], pattern: str = "") -> Matches:
    """Finds the entry of each utterance.

    A name is the id, or the id with a common prefix or suffix: `<id>-durations`,
    `<speaker>-duration-<id>`.

    Args:
        entries: Of a source.
        ids: Of the corpus.
        pattern: Form of the names, as in `take1_{id}`; empty: as above.

    Raises:
        InputError: If the pattern does not contain `{id}` once.
    """
    expression = _expression(pattern)
    known = frozenset(ids)
    found: dict[str, SourceEntry] = {}
    counted: Counter[str] = Counter()
    extra = []
    for entry in entries:
        id = _id_of(entry.name, known, expression)
        if id is None:
            extra.append(entry.name)
        else:
            counted[id] += 1
            found[id] = entry
    doubled = sorted(id for id, n in counted.items() if n > 1)
    missing = sorted(known - found.keys())
    single = {id: found[id] for id in sorted(found) if counted[id] == 1}
    return Matches(single, missing, sorted(extra), doubled)


def _expression(pattern: str) -> re.Pattern[str] | None:
    if not pattern:
        return None
    if pattern.count("{id}") != 1:
        raise InputError(
            f"--name_pattern {pattern!r}: expected {{id}} in it, as in '{{id}}_phones'"
        )
    before, after = pattern.split("{id}")
    return re.compile(f"{re.escape(before)}(?P<id>.+){re.escape(after)}")


def _id_of(name: str, ids: Collection[str], expression: re.Pattern[str] | None) -> str | None:
    if expression is None and name in ids:
        return name
    for one in (expression,) if expression else (_AFTER, _BEFORE):
        match = one.fullmatch(name)
        if match and match["id"] in ids:
            return match["id"]
    return None
