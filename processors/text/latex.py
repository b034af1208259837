"""Formulas of LaTeX in words, as they are read in one line."""

import re
import string

from processors.text.normalisation import apply
from processors.text.tokens import MINUS

_IN_MATHS = r"[^$]{0,300}?(?:[\\^_=+*/<>]|\b[A-Za-z0-9]\b)"
# a single dollar as in Pandoc: no space within it, and no digit after it
_FORMULA = re.compile(
    r"\$\$(?P<display>(?=[^$]{0,600}[\\^_=+*/<>])[^$]{1,600})\$\$|"
    rf"\\\[(?P<bracketed>(?={_IN_MATHS}).{{1,600}}?)\\\]|"
    rf"\\\((?P<inline>(?={_IN_MATHS}).{{1,300}}?)\\\)|"
    r"\$(?P<dollars>(?!\s)[^$\n]{0,300}(?:\\[A-Za-z]|[\^_]\{)[^$\n]{0,300})(?<![\s\\])\$(?!\d)",
    re.S,
)
_ENTITIES = str.maketrans({sign: f"&#{ord(sign)};" for sign in string.punctuation})
_WORDS = {
    "cdot": "times", "div": "divided by", "pm": "plus or minus",
    "infty": "infinity", "int": "the integral of", "sum": "the sum of", "prod": "the product of",
    "lim": "the limit of", "leq": "less than or equal to", "le": "less than or equal to",
    "geq": "greater than or equal to", "ge": "greater than or equal to", "neq": "not equal to",
    "ne": "not equal to", "lt": "less than", "gt": "greater than", "approx": "approximately",
    "equiv": "is identical to", "sim": "similar to", "propto": "proportional to",
    "rightarrow": "to", "Rightarrow": "implies", "iff": "if and only if",
    "notin": "not in", "subset": "a subset of", "cup": "union", "cap": "intersection",
    "forall": "for all", "exists": "there exists", "circ": "composed with", "ldots": "and so on,",
    "cdots": "and so on,", "dots": "and so on,", "mid": "given",
}  # fmt: skip
_SILENT = (
    r"\\(?:left|right|big|Big|bigg|Bigg|displaystyle|limits|quad|qquad|nonumber|boxed|"
    r"begin\{[a-z*]{1,20}\}|end\{[a-z*]{1,20}\}|[,;:! ])"
)
_WITH_LIMITS = re.compile(
    r"\\(int|sum|prod)\s?_(\w|\{[^{}]{1,80}\})\s?\^(\w|\\\w{1,20}|\{[^{}]{1,80}\})"
)
_GROUPS = (
    (re.compile(r"\\[dt]?frac\s?\{([^{}]*)\}\s?\{([^{}]*)\}"), r" \1 \\over \2 "),
    (re.compile(r"\\sqrt\s?(?:\[[^\]]{0,9}\])?\{([^{}]*)\}"), r" \\root \1 "),
    (re.compile(r"\\binom\s?\{([^{}]*)\}\s?\{([^{}]*)\}"), r" \1 \\choose \2 "),
    (re.compile(r"\\lim\s?_\{([^{}]*)\}"), r" the limit as \1 of "),
    (re.compile(r"\^\{\s?(-?\w+)\s?\}"), r"^\1"),
    (re.compile(r"\^\{([^{}]*)\}"), r" to the power of \1, "),
)
_DEEPEST = 10
_TEXT = re.compile(r"\\(?:text|textbf|mathrm|mathbf|operatorname)\{([^{}]*)\}")
_SHORT = re.compile(r"\b([A-Za-z]{1,3})\b")
_VARIABLES = re.compile(
    r"(?<![A-Za-z\\])(?!(?:cos|exp|lim|ln|log|max|min|sin|tan)\b)[A-Za-z]{1,3}(?![A-Za-z])"
)


def say_formulas(text: str) -> str:
    r"""Reads formulas between `$$`, `\[` and `\]`, `\(` and `\)`, or `$` with a command or braces.

    Fractions, roots, powers, limits and names of signs become words, variables capital letters.
    Other commands are said by their names, those with an argument by the argument alone.
    """
    return _FORMULA.sub(lambda match: f" {_in_words(match[match.lastgroup or 0])} ", text)


def shield_formulas(text: str) -> str:
    """Writes the signs of formulas in a Markdown text as entities; their commands stay commands."""
    parts = re.split(r"(`+[^`]*`+)", text)
    parts[::2] = [_FORMULA.sub(lambda m: m[0].translate(_ENTITIES), part) for part in parts[::2]]
    return "".join(parts)


def _in_words(formula: str) -> str:
    # short words are no variables: as commands they are said by their names
    text = _TEXT.sub(lambda match: _SHORT.sub(r"\\\1", f" {match[1]} "), formula)
    text = re.sub(_SILENT, " ", re.sub(r"\^\{?\\circ\}?", r"\\degrees", text))
    text = re.sub(r"\\[dt]?frac\s?(\d)\s?(\d)", r" \1 \\over \2 ", text)
    text = _VARIABLES.sub(lambda variables: " ".join(variables[0].upper()), text)
    text = _WITH_LIMITS.sub(
        lambda m: f" {_WORDS[m[1]].removesuffix(' of')} from {m[2]} to {m[3]} of ", text
    )
    for _ in range(_DEEPEST):  # from the innermost groups on
        before = text
        text = apply(_GROUPS, text)
        if text == before:
            text = re.sub(r"(?:\\[a-zA-Z]+\*?)?_?\{([^{}]*)\}", r" \1 ", text)
    text = re.sub(r"_(\w)", r" \1 ", text)
    text = re.sub(r"\\([A-Za-z]+)", lambda match: f" {_WORDS.get(match[1], match[1])} ", text)
    return re.sub(r"[{}\\&]", " ", re.sub(r"(?<!\^)-", f" {MINUS} ", text)).strip()
