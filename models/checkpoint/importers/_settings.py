"""Settings of other projects, taken as they stand: what is missing has no default."""

from collections.abc import Mapping
from pathlib import Path

from utils.errors import InputError


def section(values: Mapping[str, object], *names: str) -> Mapping[str, object]:
    """A section in sections, such as `section(args, "model", "hifigan")`; empty if missing."""
    for name in names:
        inner = values.get(name)
        values = inner if isinstance(inner, Mapping) else {}
    return values


def required(values: Mapping[str, object], where: Path | str, *keys: str) -> dict[str, object]:
    """Some values of a section, which there must be.

    Args:
        values: The section.
        where: Its file, and its name in it, for messages.
        keys: Of these values.

    Raises:
        InputError: If one is missing; names it.
    """
    if missing := [key for key in keys if key not in values]:
        raise InputError(
            f"{where}: it does not say {', '.join(missing)}; expected the settings that the "
            "weights were trained with"
        )
    return {key: values[key] for key in keys}


def taken(values: Mapping[str, object], names: Mapping[str, str]) -> dict[str, object]:
    """Those of some settings that are there, under our names: `names` gives theirs by ours."""
    return {ours: values[theirs] for ours, theirs in names.items() if theirs in values}


def upper_edge(f_max: object, sample_rate: object) -> object:
    """The upper edge of the mel in Hz, where theirs may be null: half of the rate."""
    if f_max is None and isinstance(sample_rate, int | float):
        return sample_rate / 2
    return f_max
