"""Files that end with a record, such as `MODEL = Model(...)`, by which the toolkit uses them."""

import inspect
from importlib import import_module
from pathlib import Path
from traceback import walk_tb
from typing import TypeVar

from utils.errors import InputError

R = TypeVar("R")
_REPOSITORY = Path(__file__).parents[1]


def load_definition(module: str, name: str, kind: type[R]) -> R:
    """Imports a module and returns the record that it ends with.

    Args:
        module: Dotted name of the module.
        name: That of the record in the module.
        kind: A dataclass; mypy checks its fields, and their names are checked here.

    Raises:
        InputError: If there is no such record, or the module itself, not a function that it calls,
            raises a TypeError, as of a missing or unknown field; names the file and the line.
    """
    path = Path(module.replace(".", "/"))
    file = path / "__init__.py" if (_REPOSITORY / path).is_dir() else path.with_suffix(".py")
    try:
        record = vars(import_module(module)).get(name)
    except TypeError as error:
        *_, (frame, line) = walk_tb(error.__traceback__)
        if frame.f_globals["__name__"] != module or frame.f_code.co_name != "<module>":
            raise
        raise InputError(f"{file}, line {line}: {error}") from error
    if not isinstance(record, kind):
        source = Path(inspect.getfile(kind)).relative_to(_REPOSITORY).as_posix()
        raise InputError(f"{file} does not end with {name} = {kind.__name__}(...) of {source}")
    return record
