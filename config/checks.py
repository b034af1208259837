"""Checks of configuration values, each raises ValueError and names the key; ranges of controls."""

from collections.abc import Callable, Sequence

CONTROL_RANGE = (0.1, 10.0)  # of factors on pitch, energy and durations
MAX_STEPS = 50  # of a flow: more follow it no closer
MAX_TEMPERATURE = 2.0  # of the noise of a flow; training has 1
MAX_SHIFT_HZ = 500.0  # up or down: more than the whole range of a voice
MAX_SEED = 2**63 - 1  # PyTorch's largest


def _require(
    section: object, keys: Sequence[str], is_accepted: Callable[[float], bool], expected: str
) -> None:
    for key in keys:
        value = getattr(section, key)
        if value is not None and not is_accepted(value):
            raise ValueError(f"{key} is {value:g}, expected {expected}")


def require_at_least(section: object, least: float, *keys: str) -> None:
    """Raises ValueError for the first of the section's keys whose value is smaller."""
    _require(section, keys, lambda value: value >= least, f"{least:g} or more")


def require_share(section: object, *keys: str) -> None:
    """Raises ValueError for the first of the keys whose value is not in [0, 1)."""
    _require(section, keys, lambda value: 0 <= value < 1, "a share: 0 or more, less than 1")


def require_odd(section: object, *keys: str) -> None:
    """Raises ValueError for the first of the keys whose value is not an odd number above 0."""
    _require(section, keys, lambda value: value > 0 and value % 2 == 1, "an odd number")


def require_probability(section: object, *keys: str) -> None:
    """Raises ValueError for the first of the keys whose value is set and not in [0, 1]."""
    _require(section, keys, lambda value: 0 <= value <= 1, "a probability, 0 to 1")


def require_flow(steps: int, temperature: float) -> None:
    """Raises ValueError if a flow has no steps or too many, or a temperature out of range."""
    if not (1 <= steps <= MAX_STEPS and 0 <= temperature <= MAX_TEMPERATURE):
        found = f"steps are {steps} and temperature is {temperature:g}"
        raise ValueError(f"{found}, expected 1 to {MAX_STEPS} and 0 to {MAX_TEMPERATURE:g}")
