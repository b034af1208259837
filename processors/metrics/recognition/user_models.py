"""The user's own models as Python functions: a speech recogniser, a speaker encoder."""

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

from utils.errors import InputError, described, nearest

Recogniser = Callable[[np.ndarray, int, str], str]  # wav (S,) float32, Hz, language: the text
Encoder = Callable[[np.ndarray, int], np.ndarray]  # wav (S,) float32, Hz: speaker embedding (D,)


class UserFunctionError(InputError):
    """A function of the user's raises, or returns something of the wrong type.

    It would do so for other utterances as well, so callers should stop.
    """


@dataclass(frozen=True)
class UserModels:
    """Functions and transcripts of the user, for scoring. May be sent to other processes."""

    # speech recogniser; None for pocketsphinx, which has English only
    recogniser: Recogniser | None = None
    # Folder of hypotheses of any recogniser: `<id>.txt` of the synthesised speech, and
    # `recorded/<id>.txt` of the recordings (the subfolder may be missing). It takes precedence over
    # a recogniser.
    transcripts: Path | None = None
    encoder: Encoder | None = None  # speaker encoder; its embeddings are compared by their cosine


@dataclass(frozen=True)
class UserFunction:
    """A function by its name; every process imports it on its first call."""

    name: str  # "package.module:function"
    folder: Path  # folder that is searched for its module, after all others

    def __call__(self, *arguments: Any) -> Any:  # noqa: ANN401  # those of the user's function
        """Calls the function; an error names the line in the user's file."""
        function = _imported(self.name, self.folder)
        try:
            return function(*arguments)
        except Exception as error:
            place = _place_of(error, function)
            raise UserFunctionError(f"{self.name} fails: {described(error)}{place}") from error


def load_function(name: str) -> UserFunction:
    """Finds a user's "package.module:function"; the current folder is searched as well."""
    function = UserFunction(name, Path.cwd())
    _imported(function.name, function.folder)
    return function


def name_of(function: Callable[..., object] | None) -> str:
    """The name of a user's function as it was given, for messages."""
    return function.name if isinstance(function, UserFunction) else repr(function)


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
        functions = [key for key, value in vars(module).items() if callable(value)]
        where = module.__file__ or module_name
        raise InputError(f"{name}: {where} holds no {attribute}{nearest(attribute, functions)}")
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
                f"{name}: there is no module {error.name} in the current folder; put its folder "
                "into the variable PYTHONPATH"
            ) from error
        raise InputError(f"{name}: {module_name} imports {error.name}: install it") from error
    except (ImportError, SyntaxError) as error:
        raise InputError(f"{name}: cannot be imported: {error}") from error
