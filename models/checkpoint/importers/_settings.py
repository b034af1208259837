"""Settings of other projects by Arion's keys, without defaults for missing values.

A table gives the key in the file by Arion's key, both dotted: {"train.adam.lr": "learning_rate"}.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from utils.config import Tree, plain_tree
from utils.errors import InputError
from utils.files import read_text

Table = Mapping[str, str]


def value_at(values: object, key: str) -> Any:  # noqa: ANN401  (JSON)
    """Looks up a dotted key; None if it is missing."""
    for name in key.split("."):
        values = values.get(name) if isinstance(values, Mapping) else None
    return values


def existing(values: Mapping[str, object], table: Table) -> dict[str, object]:
    """Selects the settings that exist, by Arion's keys."""
    return {ours: value_at(values, key) for ours, key in table.items() if _has(values, key)}


def required(values: Mapping[str, object], table: Table, path: Path) -> dict[str, object]:
    """Selects settings by Arion's keys.

    Raises:
        InputError: If one is missing; names it.
    """
    if missing := [key for key in table.values() if not _has(values, key)]:
        raise InputError(
            f"{path}: {', '.join(missing)} is missing; expected the settings that the weights were"
            " trained with"
        )
    return existing(values, table)


def tree_of(task: str, settings: Mapping[str, object], path: Path) -> Tree:
    """Builds the tree of an ordinary config.json.

    Args:
        task: "tts" or "vocoder".
        settings: Values by dotted key; `preprocess.f_max` may be None for half of the sample rate.
    """
    general = {"task": task, "dataset": ["unnamed"], "dataset_path": {}, "log_dir": f"ckpts/{task}"}
    settings = general | dict(settings)
    rate = settings["preprocess.sample_rate"]
    if settings["preprocess.f_max"] is None and isinstance(rate, int | float):
        settings["preprocess.f_max"] = rate / 2
    values: dict[str, Any] = {}
    for key, value in settings.items():
        *sections, last = key.split(".")
        section = values
        for name in sections:
            section = section.setdefault(name, {})
        section[last] = value
    return plain_tree(values, path)


def read_yaml(path: Path) -> Mapping[str, object]:
    """Reads a YAML file of keys: plain values, never objects.

    Raises:
        InputError: If it cannot be read, or PyYAML is missing.
    """
    try:
        import yaml  # not at the top: few models need it
    except ImportError as error:
        raise InputError(f"{path}: reading it needs PyYAML: pip install pyyaml") from error
    text = read_text(path)
    try:
        values = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: no such date
        raise InputError(f"{path}: not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(values, Mapping):
        raise InputError(f"{path}: expected keys with values, found {type(values).__name__}")
    return values


def _has(values: object, key: str) -> bool:
    section, _, last = key.rpartition(".")
    inner = value_at(values, section) if section else values
    return isinstance(inner, Mapping) and last in inner
