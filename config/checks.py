"""Checks of configuration values, each raises ValueError and names the key; ranges of controls."""

CONTROL_RANGE = (0.1, 10.0)  # of factors on pitch, energy and durations
MAX_STEPS = 50  # of a flow: more follow it no closer
MAX_TEMPERATURE = 2.0  # of the noise of a flow; training has 1
MAX_SHIFT_HZ = 500.0  # up or down: more than the whole range of a voice
MAX_SEED = 2**63 - 1  # PyTorch's largest


def require_at_least(section: object, least: float, *keys: str) -> None:
    """Raises ValueError for the first of the section's keys whose value is smaller."""
    for key in keys:
        if (value := getattr(section, key)) < least:
            raise ValueError(f"{key} is {value:g}, expected {least:g} or more")


def require_flow(steps: int, temperature: float) -> None:
    """Raises ValueError if a flow has no steps or too many, or a temperature out of range."""
    if not (1 <= steps <= MAX_STEPS and 0 <= temperature <= MAX_TEMPERATURE):
        raise ValueError(
            f"steps are {steps} and temperature is {temperature:g}, expected 1 to {MAX_STEPS} and"
            f" 0 to {MAX_TEMPERATURE:g}"
        )


def require_share(section: object, *keys: str) -> None:
    """Raises ValueError for the first of the keys whose value is not in [0, 1)."""
    for key in keys:
        if not 0 <= (value := getattr(section, key)) < 1:
            raise ValueError(f"{key} is {value:g}, expected a share: 0 or more, less than 1")


def require_odd(section: object, *keys: str) -> None:
    """Raises ValueError for the first of the keys whose value is not an odd number above 0."""
    for key in keys:
        if (value := getattr(section, key)) < 1 or value % 2 == 0:
            raise ValueError(f"{key} is {value}, expected an odd number")


def require_probability(key: str, value: float) -> None:
    """Raises ValueError if a value is not in [0, 1]."""
    if not 0 <= value <= 1:
        raise ValueError(f"{key} is {value:g}, expected a probability, 0 to 1")
