"""Imports of packages that import more than is used of them."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from types import ModuleType


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
