"""Configuration files on disk: json5, `base_config` chains and `--set`."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from utils.errors import InputError
from utils.files import read_text

Keys = tuple[str, ...]  # a key path: ("train", "adam", "lr")
SET = "--set"
_MAX_DEPTH = 50
_TOO_DEEP = f"more than {_MAX_DEPTH} brackets inside each other"


class ConfigError(InputError):
    """An error in a configuration; the message names the file and the key."""


@dataclass(frozen=True)
class Tree:
    """The values of a configuration before validation."""

    values: Mapping[str, object]  # sections (dicts), lists and plain values
    # for each key path, the file that set it last, or `--set`; in the order of the chain
    origins: Mapping[Keys, str]
    path: Path  # the file at the end of the chain

    def origin(self, keys: Keys) -> str:
        """Returns the file that set a key; for a missing key, that of its section."""
        while keys and keys not in self.origins:
            keys = keys[:-1]
        return self.origins.get(keys, _shown(self.path))


def read_tree(path: Path, overrides: Sequence[str] = ()) -> Tree:
    """Reads a configuration file, its `base_config` chain, and overrides.

    `base_config` names another file, or lists several, relative to the file that contains it.
    Values of the child take precedence, and those of later files in the list: sections are merged,
    lists and plain values replaced.

    Args:
        path: json5 file: JSON that also allows comments, trailing commas and bare keys.
        overrides: `key.path=value`. The value is json5; anything that is not json5 is text.

    Raises:
        ConfigError: If a file is missing, is not json5, has a key twice or is based on itself, or
            an override has no `=`.
    """
    values: dict[str, object] = {}
    origins: dict[Keys, str] = {}
    for name, layer in _read_chain(path, (), set()):
        _merge(values, origins, layer, name)
    return overridden(Tree(values, origins, path), overrides)


def overridden(tree: Tree, overrides: Sequence[str]) -> Tree:
    """Returns the tree with values replaced by overrides, as for `read_tree`."""
    values, origins = dict(tree.values), dict(tree.origins)
    for override in overrides:
        path, equals, text = override.partition("=")
        names = path.strip().split(".")
        if not equals or not all(names):
            raise ConfigError(f"{SET} {override!r}: expected key.path=value")
        try:
            value = _parse(text)
        except ValueError:
            value = text
        *sections, last = names
        layer = {last: value}
        for name in reversed(sections):
            layer = {name: layer}
        _merge(values, origins, layer, SET)
    return Tree(values, origins, tree.path)


def plain_tree(values: Mapping[str, object], path: Path) -> Tree:
    """Builds a tree of sections, lists and plain values from a file of another format."""
    return Tree(values, dict.fromkeys(_key_paths(values), _shown(path)), path)


def _read_chain(
    path: Path, seen: tuple[Path, ...], applied: set[Path]
) -> Iterator[tuple[str, dict[str, object]]]:
    """Yields name and values of the files below in the chain, then of this one, each once."""
    name, resolved = _shown(path), path.resolve()
    if resolved in seen:
        chain = " -> ".join(_shown(p) for p in (*seen, resolved))
        raise ConfigError(f"{name}: base_config is circular: {chain}")
    if resolved in applied:  # a base of two files in a list
        return
    applied.add(resolved)
    values = read_values(path)
    base = values.pop("base_config", None)
    for file in base if isinstance(base, list) else [] if base is None else [base]:
        if not isinstance(file, str) or not (path.parent / file).is_file():
            fault = f"{name}: base_config {json.dumps(file, ensure_ascii=False)}: no such file"
            expected = "expected a file name, or a list of them, relative to this file"
            raise ConfigError(f"{fault}; {expected}")
        yield from _read_chain(path.parent / file, (*seen, resolved), applied)
    yield name, values


def read_values(path: Path) -> dict[str, object]:
    """Reads one json5 file; `base_config` is treated like any other key."""
    name = _shown(path)
    try:
        value = _parse(read_text(path))
    except InputError as error:
        raise ConfigError(str(error)) from error
    except ValueError as error:
        fault = str(error).replace("<string>:", "line ")
        raise ConfigError(f"{name}: {fault}; correct the file") from error
    if not isinstance(value, dict):
        raise ConfigError(f"{name}: expected {{ ... }} with keys, found {type(value).__name__}")
    return value


def read_yaml(path: Path) -> Mapping[str, object]:
    """Reads a YAML file of keys: plain values, never objects; InputError if it is none."""
    import yaml

    text = read_text(path)
    try:
        values = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: no such date
        raise InputError(f"{path}: not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(values, Mapping):
        raise InputError(f"{path}: expected keys with values, found {type(values).__name__}")
    return values


def _parse(text: str) -> object:
    """Parses as JSON if possible, else as json5: 1000 times slower."""
    try:
        try:
            value = json.loads(text, object_pairs_hook=_without_duplicates)
        except json.JSONDecodeError:
            import json5

            value = json5.loads(text, allow_duplicate_keys=False)
        _check_depth(value)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    return value


def _check_depth(value: object, left: int = _MAX_DEPTH) -> None:
    if left < 0:
        raise ValueError(_TOO_DEEP)
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for part in parts:
        _check_depth(part, left - 1)


def _without_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    values = dict(pairs)
    if len(values) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f'Duplicate key "{twice}" found in object')
    return values


def _merge(
    values: dict[str, object],
    origins: dict[Keys, str],
    child: Mapping[str, object],
    origin: str,
    keys: Keys = (),
) -> None:
    """Merges `child` into `values`, and its origin into `origins`."""
    for name, value in child.items():
        old = values.get(name)
        if isinstance(value, dict) and isinstance(old, dict):
            values[name] = merged = dict(old)
            _merge(merged, origins, value, origin, (*keys, name))
        else:
            values[name] = value
            for path in _key_paths({name: value}):
                here = (*keys, *path)
                origins.pop(here, None)  # the order is that of the chain
                origins[here] = origin


def _key_paths(values: Mapping[str, object]) -> Iterator[Keys]:
    for name, value in values.items():
        yield (name,)
        if isinstance(value, dict):
            yield from ((name, *keys) for keys in _key_paths(value))


def _shown(path: Path) -> str:
    """Returns a path for messages: relative to the working folder if it is inside."""
    path = path.resolve()
    folder = Path.cwd()
    return str(path.relative_to(folder) if path.is_relative_to(folder) else path)
