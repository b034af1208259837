"""The flags of stage 3 that control how a text is spoken."""

import argparse
import math

from utils.cli import UsageError

CONTROL_RANGE = (0.1, 10.0)  # of factors on pitch, energy and durations
MOST_SHIFT_HZ = 500.0  # up or down: more than the whole range of a voice
_TRANSFORM = "pitch_transform"


def add_control_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the flags of prosody and of the end of each wav."""
    add = parser.add_argument
    add("--pitch_control", type=_factor, default=1.0, help="1.2 is 20 %% higher")
    add("--energy_control", type=_factor, default=1.0, help="1.2 is 20 %% louder")
    add("--duration_control", type=_factor, help="1.2 is 20 %% slower (default: 1)")
    add("--pace", type=_factor, metavar="R", help="1.25 is 25 %% faster: --duration_control 1/R")
    add(
        f"--{_TRANSFORM}_flatten",
        action="store_true",
        help="a monotone: the speaker's mean; this and the next three are done in this order",
    )
    add(f"--{_TRANSFORM}_invert", action="store_true", help="mirror the pitch at the mean")
    add(
        f"--{_TRANSFORM}_amplify",
        type=_finite,
        default=1.0,
        metavar="X",
        help="multiply what the pitch differs from the mean by X",
    )
    add(f"--{_TRANSFORM}_shift", type=_shift, default=0.0, metavar="HZ", help="add HZ, -500 to 500")
    add(
        f"--{_TRANSFORM}_custom",
        metavar="SPEC",
        help="multiply the pitch by a contour that stretches over the text: ramp:A:B, from factor A"
        " to B, or a text file of one factor a line, interpolated linearly; excludes the others",
    )
    add(
        "--fade_out",
        type=_whole,
        default=0,
        metavar="FRAMES",
        help="fade the end of each wav linearly over so many mel frames (default: 0)",
    )


def check_control_arguments(given: argparse.Namespace) -> None:
    """Sets `duration_control` from --pace, and makes sure that the flags go together.

    Raises:
        UsageError: If they do not; the message names the flags.
    """
    if given.pace is not None and given.duration_control is not None:
        raise UsageError("--pace and --duration_control exclude each other")
    if given.duration_control is None:
        given.duration_control = 1.0 if given.pace is None else 1 / given.pace
    others = {"flatten": False, "invert": False, "amplify": 1.0, "shift": 0.0}
    used = [name for name, off in others.items() if vars(given)[f"{_TRANSFORM}_{name}"] != off]
    if given.pitch_transform_custom is not None and used:
        raise UsageError(f"--{_TRANSFORM}_custom and --{_TRANSFORM}_{used[0]} exclude each other")


def _factor(text: str) -> float:
    low, high = CONTROL_RANGE
    value = _finite(text)
    if not low <= value <= high:
        raise argparse.ArgumentTypeError(f"{text}, expected a number from {low:g} to {high:g}")
    return value


def _shift(text: str) -> float:
    value = _finite(text)
    if abs(value) > MOST_SHIFT_HZ:
        limits = f"{-MOST_SHIFT_HZ:g} to {MOST_SHIFT_HZ:g}"
        raise argparse.ArgumentTypeError(f"{text}, expected {limits} Hz")
    return value


def _finite(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{text!r}, expected a finite number")
    return value


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r}, expected a whole number, 0 or more")
    return int(text)
