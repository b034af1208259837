"""Substitution rules of the normaliser."""

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple


class Rule(NamedTuple):
    """A pattern and its replacement."""

    pattern: re.Pattern[str]
    say: Callable[[re.Match[str]], str] | str


def rule(pattern: str, say: Callable[[re.Match[str]], str] | str, flags: int = 0) -> Rule:
    """Builds a rule, with ASCII semantics of digits and word characters."""
    return Rule(re.compile(pattern, flags | re.ASCII), say)


def apply(rules: Iterable[Rule], text: str) -> str:
    """Applies rules in order."""
    for pattern, say in rules:
        text = pattern.sub(say, text)
    return text
