"""Configurations as typed dataclasses, with errors that name the file, the key and the remedy."""

import dataclasses
import json
import math
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING
from pathlib import Path
from typing import Any, Literal, TypeVar, Union

from utils.config_tree import SET, ConfigError, Keys, Tree, plain_tree
from utils.errors import closest, nearest

T = TypeVar("T")
_KINDS = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}


def build(
    cls: type[T],
    tree: Tree,
    sections: Mapping[str, type] | None = None,
    check: Callable[[T], None] = lambda _config: None,
) -> T:
    """Builds a dataclass from a tree, checking every key and type.

    Fields may be bool, int, float, str, Literal, tuple (from lists), dict[str, X], other
    dataclasses (sections), `X | None`, `X | tuple[Y, ...]`, and `object` where `sections` says the
    class. A whole number is accepted for a float, and nothing else for something else. A section
    that is left out has its defaults.

    Args:
        sections: Class of each top-level field that `cls` annotates as `object`.
        check: Raises a ValueError if the values do not go together.

    Raises:
        ConfigError: If a key is unknown or missing, a value has the wrong type, is not finite or is
            not one of the choices, or a dataclass or `check` rejects the values (ValueError).
    """
    builder = _Builder(tree, cls, dict(sections or {}), check)
    try:
        return builder.section(cls, tree.values, ())
    except _RejectedError as rejected:
        givers = ", ".join(sorted(_givers(tree, rejected.keys, builder)))
        where = f"section {'.'.join(rejected.keys)}: " if rejected.keys else ""
        raise ConfigError(f"{givers}: {where}{rejected.reason}") from rejected.reason


class _RejectedError(Exception):
    """The values of a section do not go together; `keys` is its position."""

    def __init__(self, keys: Keys, reason: ValueError) -> None:
        super().__init__(keys, reason)
        self.keys, self.reason = keys, reason


def _givers(tree: Tree, section: Keys, builder: "_Builder") -> set[str]:
    """Returns the origins of the values without one of which a configuration is accepted.

    If there is none, that of the value in the section which was set last.
    """
    givers: set[str] = set()
    last = tree.origin(section)
    sections = {keys[:depth] for keys in tree.origins for depth in range(len(keys))}
    for keys, origin in tree.origins.items():
        if keys[: len(section)] != section or keys in sections:
            continue
        last = origin
        try:
            builder.section(builder.root, _without(tree.values, keys), ())
        except (ConfigError, _RejectedError):
            continue
        givers.add(origin)
    return givers or {last}


def _without(values: Mapping[str, object], keys: Keys) -> dict[str, object]:
    """Copies nested sections without one value, which may be missing."""
    others = {name: value for name, value in values.items() if name != keys[0]}
    section = values.get(keys[0])
    if keys[1:] and isinstance(section, Mapping):
        others[keys[0]] = _without(section, keys[1:])
    return others


def build_complete(cls: type[T], plain: object, path: Path) -> T:
    """Builds a dataclass from a file that must hold every field, as `to_plain` gives it.

    Fields with `later` in their metadata may be missing: files from before them mean the default.
    """
    if not isinstance(plain, Mapping):
        raise ConfigError(f"{path}: it is {_shown(plain)}, expected a section {{ ... }}")
    for field in dataclasses.fields(cls):  # type: ignore[arg-type]
        if field.name not in plain and not field.metadata.get("later"):
            raise ConfigError(f"{path}: missing key {field.name}")
    return build(cls, plain_tree(plain, path))


def key_paths(cls: type, sections: Mapping[str, type] | None = None) -> Iterator[Keys]:
    """Yields key paths of all fields of a dataclass; `sections` as for `build`."""
    for name, hint in (typing.get_type_hints(cls) | dict(sections or {})).items():
        yield (name,)
        if dataclasses.is_dataclass(hint):
            yield from ((name, *keys) for keys in key_paths(hint))  # type: ignore[arg-type]


@dataclasses.dataclass
class _Builder:
    """Walks the tree and the types together; `keys` is the current position."""

    tree: Tree
    root: type
    sections: dict[str, type]  # of fields of the root
    check: Callable[[Any], None]  # of the root

    def section(self, cls: type[T], values: object, keys: Keys) -> T:
        """Builds one dataclass from a section."""
        if not isinstance(values, Mapping):
            raise self._wrong(values, keys, "a section { ... }")
        hints = typing.get_type_hints(cls) | ({} if keys else self.sections)
        for name in values:
            if name not in hints:
                raise self._unknown(name, list(hints), keys)
        fields: dict[str, object] = {}
        for field in dataclasses.fields(cls):  # type: ignore[arg-type]  # it is a dataclass
            name, hint = field.name, hints[field.name]
            if name in values:
                fields[name] = self.value(hint, values[name], (*keys, name))
            elif field.default is MISSING and field.default_factory is MISSING:
                if not dataclasses.is_dataclass(hint):  # a section has its own defaults
                    where = self.tree.origin((*keys, name))
                    raise ConfigError(f"{where}: missing key {'.'.join((*keys, name))}")
                fields[name] = self.section(hint, {}, (*keys, name))  # type: ignore[arg-type]
        try:
            config = cls(**fields)
            if not keys:
                self.check(config)
        except ValueError as error:
            raise _RejectedError(keys, error) from error
        return config

    def value(self, hint: Any, value: object, keys: Keys) -> object:  # noqa: ANN401  (a type form)
        """Checks one value against its type."""
        if dataclasses.is_dataclass(hint):
            return self.section(hint, value, keys)  # type: ignore[arg-type]  # a class
        origin, arguments = typing.get_origin(hint), typing.get_args(hint)
        if origin is Literal:
            return self._choice(arguments, value, keys)
        if origin is tuple:
            return self._tuple(arguments, value, keys)
        if origin is dict:
            if not isinstance(value, Mapping):
                raise self._wrong(value, keys, "a section { name: ... }")
            return {k: self.value(arguments[1], v, (*keys, k)) for k, v in value.items()}
        if origin in (Union, types.UnionType):
            if value is None and type(None) in arguments:
                return None
            is_list = isinstance(value, list | tuple)
            tuples = [hint for hint in arguments if typing.get_origin(hint) is tuple]
            return self.value(tuples[0] if tuples and is_list else arguments[0], value, keys)
        return self._plain(hint, value, keys)

    def _plain(self, expected: type, value: object, keys: Keys) -> object:
        if expected is float and type(value) is int:
            value = float(value)
        if type(value) is not expected:
            raise self._wrong(value, keys, _KINDS[expected])
        if isinstance(value, float) and not math.isfinite(value):
            raise self._wrong(value, keys, "a finite number")
        if isinstance(value, str) and "\0" in value:  # no path may hold it
            raise self._wrong(value, keys, "text without the character U+0000")
        return value

    def _choice(self, choices: tuple[object, ...], value: object, keys: Keys) -> object:
        """Checks a Literal. A number stands for its spelling: `model.variant=1.0` is "1.0"."""
        for choice in choices:
            if choice == (value if type(value) is type(choice) else str(value)):
                return choice
        names = [str(choice) for choice in choices]
        expected = f"one of {', '.join(names)}{nearest(str(value), names)}"
        raise self._wrong(value, keys, expected)

    def _tuple(self, hints: tuple[Any, ...], value: object, keys: Keys) -> tuple[object, ...]:
        if not isinstance(value, list | tuple):
            raise self._wrong(value, keys, "a list [ ... ]")
        if hints[-1] is Ellipsis:
            hints = hints[:1] * len(value)
        if len(hints) != len(value):
            raise self._wrong(value, keys, f"a list of {len(hints)} values")
        return tuple(self.value(hints[i], v, (*keys, str(i))) for i, v in enumerate(value))

    def _unknown(self, name: str, siblings: list[str], keys: Keys) -> ConfigError:
        here, known = (*keys, name), f"known keys: {', '.join(sorted(siblings))}"
        paths = [path for path in key_paths(self.root, self.sections) if path[-1] == name]
        paths += [(*keys, close) for close in closest(name, siblings)]
        hint = f"did you mean {'.'.join(paths[0])}?" if paths else known
        return ConfigError(f"{self.tree.origin(here)}: unknown key {'.'.join(here)}; {hint}")

    def _wrong(self, value: object, keys: Keys, expected: str) -> ConfigError:
        origin, name = self.tree.origin(keys), ".".join(keys)
        fault = f"{origin}: {name} is {_shown(value)}, expected {expected}"
        if origin == SET and expected == _KINDS[str]:
            in_list = keys[-1].isdigit()  # which has no keys
            remedy = f'"{value}" in the list' if in_list else f"{SET} '{name}=\"{value}\"'"
            fault = f"{fault}; for text write {remedy}"
        return ConfigError(fault)


def lines_with_origins(config: object, tree: Tree) -> list[str]:
    """Returns a line `key.path = value  # origin` for every key, in the order of the dataclasses.

    Values are JSON, as `--set` accepts them; the origin is a file, `--set` or `default`.
    """
    pairs = ((keys, json.dumps(v, ensure_ascii=False)) for keys, v in leaves(to_plain(config)))
    return [f"{'.'.join(k)} = {v}  # {tree.origins.get(k, 'default')}" for k, v in pairs]


def leaves(values: Mapping[str, object], keys: Keys = ()) -> Iterator[tuple[Keys, object]]:
    """Yields the key path and value of everything that is not a section with keys of its own."""
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from leaves(value, (*keys, name))
        else:
            yield (*keys, name), value


def to_plain(config: object) -> dict[str, Any]:
    """Converts a configuration to plain dicts and lists for JSON; `build` undoes it."""
    plain: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(config)))  # type: ignore[call-overload]
    return plain


def _shown(value: object) -> str:
    """Returns a value as written in the file, shortened."""
    if isinstance(value, Mapping):
        return "a section"
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else text[:57] + "..."
