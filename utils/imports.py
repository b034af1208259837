"""Imports of packages that import more than is used of them."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType


@contextmanager
def without_modules(*names: str) -> Iterator[None]:
    """Puts empty modules in place of those named, for packages that are imported in the block.

    Some import what only their command line needs, and fail where that is missing or does not load.
    Modules that are loaded already stay as they are.
    """
    empty = {name: ModuleType(name) for name in names if name not in sys.modules}
    sys.modules.update(empty)
    try:
        yield
    finally:
        for name in empty:
            del sys.modules[name]
