"""Names of tensors in another project and in Arion, in both directions."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from torch import Tensor

_PLACE = re.compile(r"\{(?P<name>\w+)(?P<later>\+1)?\}")
_VALUES = {"word": "[a-z]+"}  # all others are numbers


class TensorNames:
    """Pairs of beginnings of names; the first that fits is used.

    A beginning may have places: `{word}` in lower case, and numbers such as `{n}`. `{n+1}` is one
    more than `{n}` in the other name.

    Args:
        rows: Beginnings in the other project and in Arion.
    """

    def __init__(self, rows: Sequence[tuple[str, str]]) -> None:
        self._to_own = [_Rule(_pattern(theirs), theirs, own) for theirs, own in rows]
        self._to_original = [_Rule(_pattern(own), own, theirs) for theirs, own in rows]

    def own(self, name: str) -> str | None:
        """Arion's name of a tensor of the other project; None if no row fits."""
        return _first(self._to_own, name)

    def renamed(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Tensors of the other project by Arion's names; those that no row fits keep theirs."""
        return {self.own(name) or name: tensor for name, tensor in tensors.items()}

    def original(self, name: str) -> str:
        """The other project's name of a tensor of Arion; the same if no row fits."""
        return _first(self._to_original, name) or name


class _Rule(NamedTuple):
    pattern: re.Pattern[str]
    source: str
    target: str


def _pattern(beginning: str) -> re.Pattern[str]:
    end, parts = 0, []
    for place in _PLACE.finditer(beginning):
        name = place["name"]
        parts.append(re.escape(beginning[end : place.start()]))
        parts.append(f"(?P<{name}>{_VALUES.get(name, '[0-9]+')})")
        end = place.end()
    return re.compile("".join([*parts, re.escape(beginning[end:])]))


def _first(rules: Sequence[_Rule], name: str) -> str | None:
    for rule in rules:
        if match := rule.pattern.match(name):
            return _filled(rule, match) + name[match.end() :]
    return None


def _filled(rule: _Rule, match: re.Match[str]) -> str:
    """The target with the values that the source has."""
    later_in_source = {place["name"] for place in _PLACE.finditer(rule.source) if place["later"]}

    def value(place: re.Match[str]) -> str:
        name = place["name"]
        if name in _VALUES:
            return match[name]
        return str(int(match[name]) - (name in later_in_source) + (place["later"] is not None))

    return _PLACE.sub(value, rule.target)
