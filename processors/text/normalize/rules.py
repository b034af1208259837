"""What a rule of the normaliser is."""

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple


class Rule(NamedTuple):
    """A pattern and what to say in its place."""

    pattern: re.Pattern[str]
    say: Callable[[re.Match[str]], str] | str


def rule(pattern: str, say: Callable[[re.Match[str]], str] | str, flags: int = 0) -> Rule:
    """A rule whose digits and word characters are ASCII.

    Args:
        pattern: Regular expression.
        say: The replacement, or a function of the match.
        flags: Further flags of `re`.
    """
    return Rule(re.compile(pattern, flags | re.ASCII), say)


def apply(rules: Iterable[Rule], text: str) -> str:
    """Applies rules in order."""
    for pattern, say in rules:
        text = pattern.sub(say, text)
    return text
