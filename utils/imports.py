"""Imports: files that end with a record, and packages that import more than is used of them."""

import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.machinery import ModuleSpec
from pathlib import Path
from traceback import walk_tb
from types import ModuleType
from typing import TypeVar

from utils.errors import InputError

R = TypeVar("R")
_REPOSITORY = Path(__file__).parents[1]


def load_definition(module: str, name: str, record_type: type[R]) -> R:
    """Imports a module and returns the record that it ends with, such as `MODEL = Model(...)`.

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
    if not isinstance(record, record_type):
        source = Path(inspect.getfile(record_type)).relative_to(_REPOSITORY).as_posix()
        expected = f"{name} = {record_type.__name__}(...) of {source}"
        raise InputError(f"{file} does not end with {expected}")
    return record


@contextmanager
def without_modules(*names: str) -> Iterator[None]:
    """Puts empty modules in place of those named, for packages that are imported in the block.

    Some import what only their command line needs, and fail where that is missing or does not load.
    Modules that are loaded already stay as they are. The packages keep the empty ones for as long
    as the process lives.
    """
    empty = {name: ModuleType(name) for name in names if name not in sys.modules}
    for name, module in empty.items():
        module.__spec__ = ModuleSpec(name, None)
    sys.modules.update(empty)
    try:
        yield
    finally:
        for name in empty:
            del sys.modules[name]
