"""What the value of a flag may be."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from config.checks import CONTROL_RANGE, MAX_SEED, MAX_SHIFT_HZ, MAX_STEPS, MAX_TEMPERATURE
from utils.files import user_path


@dataclass(frozen=True)
class Value:
    """How the text of a flag is read.

    In a recipe, a relative path "here" is below the caller's folder; one to be "found" is looked
    for there and then at the root of the repository.
    """

    read: Callable[[str], Any]  # raises ValueError for wrong text, with a reason or without one
    metavar: str  # in the help
    expected: str = ""  # the reason of a ValueError without one
    path: Literal["", "here", "found"] = ""
    free: bool = False  # may look like a flag
    may_be_empty: bool = False  # in a recipe; otherwise empty text counts as no flag


def choice(*names: str) -> Value:
    """Builds a choice of several names."""
    names_or = "|".join(names)
    return matching(names_or, names_or, f"{', '.join(names[:-1])} or {names[-1]}")


def matching(metavar: str, pattern: str, expected: str, *, may_be_empty: bool = False) -> Value:
    """Builds text of which a regular expression matches the whole."""

    def read(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError
        return text

    return Value(read, metavar, expected, may_be_empty=may_be_empty)


def _within(type_: type, pattern: str, least: float, most: float) -> Callable[[str], Any]:
    def read(text: str) -> Any:  # noqa: ANN401  (a number of the type)
        if not re.fullmatch(pattern, text):
            raise ValueError
        value = type_(text)
        if not least <= value <= most or math.isinf(value):
            raise ValueError
        return value

    return read


def whole(least: int, most: int | None = None) -> Value:
    """Builds a whole number of up to 19 digits."""
    read = _within(int, r"[0-9]{1,19}", least, most or math.inf)
    return Value(read, "N", f"a whole number from {least}{f' to {most}' if most else ''}")


def number(example: str, least: float = -math.inf, most: float = math.inf) -> Value:
    """Builds a finite number in plain decimals; the example is for messages."""
    limits = "" if math.isinf(most) else f" from {least:g} to {most:g},"
    read = _within(float, r"-?([0-9]+\.?[0-9]*|\.[0-9]+)", least, most)
    return Value(read, "X", f"a number{limits} such as {example}")


def _existing(kind: Literal["file", "folder", "file or folder"]) -> Callable[[str], Path]:
    def read(text: str) -> Path:
        path = user_path(text)
        if text and path.is_dir() and "folder" not in kind:
            raise ValueError("is a folder, expected a file")
        if path.is_file() and "file" not in kind:
            raise ValueError("is a file, expected a folder")
        if not text or not (path.is_file() or path.is_dir()):
            raise ValueError(f"no such {kind}")
        return path

    return read


def _text(text: str) -> str:
    if not text.strip():
        raise ValueError("the text is empty")
    return text


def _new_folder(text: str) -> Path:
    if not text or user_path(text).is_file():
        raise ValueError("is a file, expected a folder" if text else "expected a folder")
    return user_path(text)


def _contour(text: str) -> str:
    if not re.fullmatch(r"ramp:[0-9.]+:[0-9.]+", text) and not user_path(text).is_file():
        raise ValueError
    return text


def _stages(text: str) -> range:
    if not re.fullmatch(r"all|[0-9](-[0-9])?", text):
        raise ValueError
    first, last = ("0", "4") if text == "all" else (text[0], text[-1])
    if first > last:
        raise ValueError("the range runs backwards")
    if last > "4":
        raise ValueError("the last stage is 4")
    return range(int(first), int(last) + 1)


TEXT = Value(_text, "TEXT", free=True, may_be_empty=True)
WORD = Value(str, "NAME")
YES_OR_NO = choice("yes", "no")
COUNT = whole(1)
SEED = whole(0, MAX_SEED)
FACTOR = number("1.2", *CONTROL_RANGE)
SHIFT = number("-50", -MAX_SHIFT_HZ, MAX_SHIFT_HZ)
STEPS = whole(1, MAX_STEPS)
TEMPERATURE = number("0.5", 0, MAX_TEMPERATURE)
NUMBER = number("1.5")
STAGES = Value(_stages, "STAGES", "a stage from 0 to 4, a range such as 1-3, or all")
GPU = r"(-?[0-9]+|(GPU|MIG)-[\w-]+)"  # also the names that nvidia-smi -L prints
_GPU_LIST = "numbers and commas, as in 0 or 0,1,2,3"
GPUS = matching("LIST", f"({GPU}(,{GPU})*)?", _GPU_LIST, may_be_empty=True)
_CHARACTERS = "letters, digits, dots, dashes and underscores, 100 at most"
EXPERIMENT = matching("NAME", r"(?a)(?![-.])[\w.-]{1,100}", _CHARACTERS)
SETTING = matching("KEY=VALUE", r"(?s)[^=]+=.*", "key.path=value")
NAME = "[a-z][a-z0-9_]*"
NAMES = matching("LIST", f"{NAME}(,{NAME})*", "names and commas, as in mcd,wer", may_be_empty=True)
FUNCTION = matching("FUNCTION", r"[^\s/:]+:[^\s/:]+", "module:function, as in my_package.asr:hear")
MODEL = Value(str, "MODEL", path="found")  # a folder, or a name on the Hub
FILE = Value(_existing("file"), "FILE", path="found")
CONFIG = Value(_existing("file"), "FILE", path="found", may_be_empty=True)
FOLDER = Value(_existing("folder"), "DIR", path="found")
INPUT = Value(_existing("file or folder"), "PATH", path="found")
OUTPUTS = Value(_new_folder, "DIR", path="here", may_be_empty=True)
REPORT = Value(_new_folder, "DIR", path="here")
CONTOUR = Value(_contour, "SPEC", "ramp:A:B, such as ramp:0.5:1.5, or a file", path="found")
