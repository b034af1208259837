"""Functions of the user's own: a recogniser of speech, an encoder of voices."""

import functools
import importlib
import inspect
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from utils.config import nearest
from utils.errors import InputError, described

Recogniser = Callable[[np.ndarray, int, str], str]  # wav (S,) float32, Hz, language: the text
Encoder = Callable[[np.ndarray, int], np.ndarray]  # wav (S,) float32, Hz: (D,), of a voice


class UserFunctionError(InputError):
    """A function of the user's fails, or gives something else than it should.

    It will do so at other utterances as well: whoever calls it had better stop.
    """


@dataclass(frozen=True)
class UserModels:
    """What a user brings to the scores. It may be sent to other processes.

    Attributes:
        recogniser: Writes down what is said; None for pocketsphinx, which knows English only.
        transcripts: Folder of what any recogniser heard: `<id>.txt` of what was synthesised, and
            `recorded/<id>.txt` of the recordings, which may be missing altogether. It comes before
            a recogniser.
        encoder: Tells voices apart by the angle between its vectors.
    """

    recogniser: Recogniser | None = None
    transcripts: Path | None = None
    encoder: Encoder | None = None


@dataclass(frozen=True)
class UserFunction:
    """A function by its name, which every process imports for itself when it calls it.

    Attributes:
        name: "package.module:function".
        folder: Where its module is looked for after all other places.
    """

    name: str
    folder: Path

    def __call__(self, *arguments: Any) -> Any:  # noqa: ANN401  # what the function takes and gives
        """Calls the function.

        Raises:
            UserFunctionError: If it fails; says where in the user's file.
        """
        function = _imported(self.name, self.folder)
        try:
            return function(*arguments)
        except Exception as error:
            place = _place_of(error, function)
            raise UserFunctionError(f"{self.name} fails: {described(error)}{place}") from error


def load_function(name: str) -> UserFunction:
    """The function that a user names; modules in the current folder are found as well.

    Args:
        name: "package.module:function".

    Raises:
        InputError: If the name is written otherwise, the module is missing or cannot be imported,
            or holds no such function.
    """
    function = UserFunction(name, Path.cwd())
    _imported(function.name, function.folder)
    return function


def _place_of(error: Exception, function: Callable[..., Any]) -> str:
    """The last line of the function's own file that was reached, or its first; " (FILE, line 3)".

    Empty where it is not written in Python.
    """
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        return ""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == code.co_filename]
    return f" ({code.co_filename}, line {(lines or [code.co_firstlineno])[-1]})"


@functools.cache
def _imported(name: str, folder: Path) -> Callable[..., Any]:
    module_name, _, attribute = name.partition(":")
    if not attribute.isidentifier() or not all(map(str.isidentifier, module_name.split("."))):
        raise InputError(
            f"{name!r} names no function: expected package.module:function, as my_asr:transcribe"
        )
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    module = _module(name, module_name)
    if not hasattr(module, attribute):
        known = [one for one in vars(module) if callable(getattr(module, one))]
        where = module.__file__ or module_name
        raise InputError(f"{name}: {where} holds no {attribute}{nearest(attribute, known)}")
    function = getattr(module, attribute)
    if not callable(function):
        raise InputError(f"{name}: is no function, but {type(function).__name__}")
    return function


def _module(name: str, module_name: str) -> ModuleType:
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name and f"{module_name}.".startswith(f"{error.name}."):
            raise InputError(
                f"{name}: there is no module {error.name} in the folder you are in; put its folder "
                "into the variable PYTHONPATH"
            ) from error
        raise InputError(f"{name}: {module_name} imports {error.name}: install it") from error
    except (ImportError, SyntaxError) as error:
        raise InputError(f"{name}: cannot be imported: {error}") from error
