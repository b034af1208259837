"""Compilation by numba; compiled functions hold no lock, so that threads help."""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar, cast

import numba

Compiled = TypeVar("Compiled", bound=Callable[..., Any])


def compiled(function: Compiled) -> Compiled:
    """A function as machine code.

    It is kept beside its source, or in the user's cache where that cannot be written, or not at
    all where neither can.
    """
    # sums in any order, but infinity keeps its meaning
    compiler = partial(numba.njit, nogil=True, fastmath={"contract", "reassoc", "nsz", "arcp"})
    try:
        return cast(Compiled, compiler(cache=True)(function))
    except RuntimeError:  # there is no folder that compiled code can be kept in
        return cast(Compiled, compiler()(function))
