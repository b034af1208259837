"""Matches the file names of another project with the ids of utterances."""

import re
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
    `<speaker>-duration-<id>`; or it has the form of the pattern, as in `take1_{id}`.
    """
    expressions = [_AFTER, _BEFORE]
    if pattern:
        if pattern.count("{id}") != 1:
            raise InputError(
                f"--name_pattern {pattern!r}: expected {{id}} in it, as in '{{id}}_phones'"
            )
        before, after = map(re.escape, pattern.split("{id}"))
        expressions = [re.compile(f"{before}(?P<id>.+){after}")]
    by_id: dict[str, list[SourceEntry]] = {}
    extra = []
    for entry in entries:
        matches = [match["id"] for form in expressions if (match := form.fullmatch(entry.name))]
        names = matches if pattern else [entry.name, *matches]
        id = next((name for name in names if name in ids), None)
        if id is None:
            extra.append(entry.name)
        else:
            by_id.setdefault(id, []).append(entry)
    return Matches(
        {id: by_id[id][0] for id in sorted(by_id) if len(by_id[id]) == 1},
        missing=sorted({*ids} - by_id.keys()),
        extra=sorted(extra),
        doubled=sorted(id for id in by_id if len(by_id[id]) > 1),
    )
