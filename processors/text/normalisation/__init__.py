"""Written text to words, by rules: of English all, of other languages a few signs."""

import re
from collections.abc import Callable, Iterable

Rule = tuple[re.Pattern[str], Callable[[re.Match[str]], str] | str]  # and its replacement


def rule(pattern: str, say: Callable[[re.Match[str]], str] | str) -> Rule:
    """Builds a rule, with ASCII semantics of digits and word characters."""
    return re.compile(pattern, re.ASCII), say


def alternatives(words: Iterable[str]) -> str:
    """Returns a pattern for any of these words, the longest first."""
    return "|".join(map(re.escape, sorted(words, key=len, reverse=True)))


def apply(rules: Iterable[Rule], text: str) -> str:
    """Applies rules in order."""
    for pattern, say in rules:
        text = pattern.sub(say, text)
    return text
