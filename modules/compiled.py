"""Compilation of loops by numba, without the interpreter's lock: threads run in parallel."""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar, cast

import numba

Compiled = TypeVar("Compiled", bound=Callable[..., Any])


def compiled(function: Compiled) -> Compiled:
    """Compiles a function to machine code.

    The code is cached next to its source, in the user's cache where that is read-only, or not at
    all where neither can be written.
    """
    # sums in any order, but infinity keeps its meaning
    compiler = partial(numba.njit, nogil=True, fastmath={"contract", "reassoc", "nsz", "arcp"})
    try:
        return cast(Compiled, compiler(cache=True)(function))
    except RuntimeError:  # no folder for the cache
        return cast(Compiled, compiler()(function))
