"""Tensors of other projects: their names in Arion, their sizes, parts that are joined."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor

from utils.errors import InputError

_PLACE = re.compile(r"\{(?P<name>[a-z]+)(?P<later>\+1)?\}")


class TensorNames:
    """Pairs of beginnings of names; the first that fits is used.

    A beginning may have places: numbers such as `{n}`, and words in lower case such as `{part}`,
    which have several letters. `{n+1}` is one more than `{n}` of the other project.

    Args:
        rows: Beginnings in the other project and in Arion.
    """

    def __init__(self, rows: Sequence[tuple[str, str]]) -> None:
        self._rows = [(_pattern(theirs), ours) for theirs, ours in rows]

    def translated(self, name: str) -> str | None:
        """Arion's name of a tensor of the other project; None if no row fits."""
        for pattern, beginning in self._rows:
            if match := pattern.match(name):
                return _filled(beginning, match) + name[match.end() :]
        return None

    def renamed(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Tensors of the other project by Arion's names; those that no row fits keep theirs."""
        return {self.translated(name) or name: tensor for name, tensor in tensors.items()}


def join(tensors: dict[str, Tensor], names: Sequence[str], target: str) -> None:
    """Replaces tensors by one, their rows one after another.

    Nothing is changed if one is missing or their shapes differ: the network then refuses them.

    Args:
        names: Names of the parts in their order.
    """
    parts = [tensors[name] for name in names if name in tensors]
    if len(parts) == len(names) and len({part.shape for part in parts}) == 1 and parts[0].ndim:
        for name in names:
            del tensors[name]
        tensors[target] = torch.cat(parts)


def size_of(tensors: Mapping[str, Tensor], name: str, axis: int, path: Path) -> int:
    """Looks up one size of a tensor.

    Raises:
        InputError: If there is no such tensor, or if it has fewer axes; names the file.
    """
    shape = tuple(tensors[name].shape) if name in tensors else None
    if shape is None or len(shape) <= axis:
        what = "missing" if shape is None else f"of the shape {shape}"
        raise InputError(f"{path}: the tensor {name} is {what}; is the file whole?")
    return shape[axis]


def _pattern(beginning: str) -> re.Pattern[str]:
    end, parts = 0, []
    for place in _PLACE.finditer(beginning):
        name = place["name"]
        parts.append(re.escape(beginning[end : place.start()]))
        parts.append(f"(?P<{name}>{'[0-9]+' if len(name) == 1 else '[a-z]+'})")
        end = place.end()
    return re.compile("".join([*parts, re.escape(beginning[end:])]))


def _filled(beginning: str, match: re.Match[str]) -> str:
    """A beginning with the numbers and words of a match in its places."""
    return _PLACE.sub(
        lambda place: (
            str(int(match[place["name"]]) + 1) if place["later"] else match[place["name"]]
        ),
        beginning,
    )
