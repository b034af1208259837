"""The user's own models as Python functions: a speech recogniser, a speaker encoder."""

import functools
import pkgutil
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from utils.errors import InputError, described

TextRecogniser = Callable[[np.ndarray, int, str], str]  # wav (S,) float32, Hz, language: the text
# wav (S,) float32, Hz: speaker embedding (D,)
SpeakerEncoder = Callable[[np.ndarray, int], np.ndarray]


class UserFunctionError(InputError):
    """A function of the user's raises, or returns something of the wrong type.

    It would do so for other utterances as well, so callers should stop.
    """


@dataclass(frozen=True)
class UserModels:
    """Functions and transcripts of the user, for scoring. May be sent to other processes."""

    recogniser: TextRecogniser | None = None  # None for pocketsphinx, which has English only
    # folder of hypotheses of any recogniser, `<id>.txt`; it takes precedence over a recogniser
    transcripts: Path | None = None
    # its embeddings are compared by their cosine; None for the built-in encoder
    encoder: SpeakerEncoder | None = None


@dataclass(frozen=True)
class UserFunction:
    """A function by its name; every process imports it on its first call."""

    name: str  # "package.module:function"
    folder: Path  # folder that is searched for its module, after all others

    def __str__(self) -> str:
        return self.name

    def __call__(self, *arguments: Any) -> Any:  # noqa: ANN401  # those of the user's function
        """Calls the function; an error names the line in the user's file."""
        function = _imported(self.name, self.folder)
        try:
            return function(*arguments)
        except (Exception, SystemExit) as error:
            # none if the function was not called at all
            user_frames = traceback.extract_tb(error.__traceback__)[1:2]
            location = "".join(f" ({frame.filename}, line {frame.lineno})" for frame in user_frames)
            raise UserFunctionError(f"{self.name} fails: {described(error)}{location}") from error


def recognise_text(
    recogniser: TextRecogniser, wav: np.ndarray, sample_rate: int, language: str, name: str
) -> str:
    """Calls a recogniser of the user's; refuses what is no text. Errors give `name` to the wav."""
    text = recogniser(wav, sample_rate, language)
    if not isinstance(text, str):
        fault = f"{recogniser}: returned {type(text).__name__} for {name}"
        raise UserFunctionError(f"{fault}; a recogniser returns the text as str")
    return text


def load_function(name: str) -> UserFunction:
    """Finds a user's "package.module:function"; the current folder is searched as well."""
    folder = Path.cwd()
    _imported(name, folder)
    return UserFunction(name, folder)


@functools.cache
def _imported(name: str, folder: Path) -> Callable[..., Any]:
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    try:
        function: Any = pkgutil.resolve_name(name)
    except (Exception, SystemExit) as error:
        expected = "package.module:function, of a file in the current folder or in PYTHONPATH"
        fault = f"cannot be imported ({described(error)})"
        raise InputError(f"{name}: {fault}; expected {expected}") from error
    if not callable(function):
        fault = f"{name} is no function, but {type(function).__name__}"
        raise InputError(f"{fault}; expected package.module:function, as my_asr:transcribe")
    return cast("Callable[..., Any]", function)
