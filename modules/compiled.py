"""Compilation of loops by numba, without the interpreter's lock: threads run in parallel."""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar, cast

import numba

Compiled = TypeVar("Compiled", bound=Callable[..., Any])


def compiled(function: Compiled) -> Compiled:
    """Compiles a function; caches the code next to its source or for the user, if it can."""
    # sums in any order, but infinity keeps its meaning
    compiler = partial(numba.njit, nogil=True, fastmath={"contract", "reassoc", "nsz", "arcp"})
    try:
        return cast(Compiled, compiler(cache=True)(function))
    except RuntimeError:  # no folder for the cache
        return cast(Compiled, compiler()(function))
