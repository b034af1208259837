"""Settings of other projects, read without defaults for missing values."""

from collections.abc import Mapping
from pathlib import Path

from utils.errors import InputError
from utils.files import read_text


def section(values: Mapping[str, object], *names: str) -> Mapping[str, object]:
    """Selects a section, such as `section(args, "model", "hifigan")`; empty if it is missing.

    Args:
        values: The settings.
        names: Of the sections, from the outside in.
    """
    for name in names:
        inner = values.get(name)
        values = inner if isinstance(inner, Mapping) else {}
    return values


def required(values: Mapping[str, object], where: Path | str, *keys: str) -> dict[str, object]:
    """Selects values of a section that must exist.

    Args:
        values: The section.
        where: Its file and name, for messages.
        keys: Of the values.

    Raises:
        InputError: If one is missing; names it.
    """
    if missing := [key for key in keys if key not in values]:
        raise InputError(
            f"{where}: {', '.join(missing)} is missing; expected the settings that the weights "
            "were trained with"
        )
    return {key: values[key] for key in keys}


def renamed(values: Mapping[str, object], names: Mapping[str, str]) -> dict[str, object]:
    """Selects the settings that exist, under Arion's names.

    Args:
        values: The section.
        names: Names in the file by Arion's names.
    """
    return {own: values[name] for own, name in names.items() if name in values}


def upper_edge(f_max: object, sample_rate: object) -> object:
    """Returns the upper edge of the mel, Hz: half of the sample rate for null.

    Args:
        f_max: Hz, or None.
        sample_rate: Hz.
    """
    if f_max is None and isinstance(sample_rate, int | float):
        return sample_rate / 2
    return f_max


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
