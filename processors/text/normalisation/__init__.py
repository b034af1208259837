"""Written text to words, by rules: of English all, of other languages a few signs."""

import re
from collections.abc import Callable
from typing import NamedTuple


class Rule(NamedTuple):
    """A pattern and its replacement."""

    pattern: re.Pattern[str]
    say: Callable[[re.Match[str]], str] | str


def rule(pattern: str, say: Callable[[re.Match[str]], str] | str, flags: int = 0) -> Rule:
    """Builds a rule, with ASCII semantics of digits and word characters."""
    return Rule(re.compile(pattern, flags | re.ASCII), say)
