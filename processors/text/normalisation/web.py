"""Addresses: URLs, e-mail, @names, #tags, telephone numbers."""

import re

from processors.text.lexicon import lookup
from processors.text.normalisation.numbers import digit_by_digit
from processors.text.normalisation.rules import rule

_SIGNS = {
    ".": "dot", "/": "slash", "-": "dash", "_": "underscore", "@": "at", ":": "colon",
    "?": "question mark", "=": "equals", "&": "and", "#": "hash", "%": "percent", "+": "plus",
    "~": "tilde",
}  # fmt: skip
_DOMAINS = (
    "com|org|net|edu|gov|mil|int|io|ai|co|uk|us|ca|au|de|fr|nl|eu|ch|info|biz|app|dev|tv|me|ly"
)
_HOST = rf"(?:[A-Za-z0-9-]+\.)+(?:{_DOMAINS})\b"


def _address(text: str) -> str:
    """An address part by part: "bbc.com/a1" is "B B C dot com slash A one"."""
    parts = re.findall(r"[A-Za-z]+|\d+|[^A-Za-z\d\s]", text, re.ASCII)
    return " ".join(_part(part) for part in parts if part.isalnum() or part in _SIGNS)


def _part(part: str) -> str:
    if part in _SIGNS:
        return _SIGNS[part]
    if part.isdigit():
        return digit_by_digit(part)
    word = " ".join(re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", part))  # "MyName": "My Name"
    short = len(part) <= 2 and part.lower() not in ("my", "go", "we", "no", "do", "to", "is", "me")
    if short or (len(part) <= 5 and not re.search("[aeiouy]", part.lower())):
        return " ".join(part.upper())
    return word if lookup(part) is None else part


def _url(match: re.Match[str]) -> str:
    address = match["address"].rstrip(".,;:!?)\"'")
    tail = match["address"][len(address) :]
    return f" {_address(address.rstrip('/'))}{tail} "


def _telephone(match: re.Match[str]) -> str:
    """Digits one by one, with a short pause between the groups."""
    groups = re.findall(r"\d+", match[0])
    spoken = ["eight hundred" if group == "800" else digit_by_digit(group) for group in groups]
    return ("plus " if match[0].startswith("+") else "") + ", ".join(spoken)


ADDRESSES = (
    rule(r"(?:mailto:)?(?P<address>[\w.+-]+@[\w-]+(?:\.[\w-]+)+)", _url),
    rule(r"\b(?:https?|ftp)://(?P<address>[^\s<>\"]+)", _url),
    rule(r"\b(?P<address>www\.[^\s<>\"]+)", _url),
    rule(rf"(?<![@\w.])(?P<address>{_HOST}(?:/[^\s<>\"]*)?)", _url),
    rule(r"(?<!\w)@(?P<address>\w*[A-Za-z]\w*)", lambda m: f"at {_address(m['address'])}"),
    rule(r"(?<!\w)#(?P<address>\w*[A-Za-z]\w*)", lambda m: f"hashtag {_address(m['address'])}"),
    rule(r"(?<!\w)\+\d{1,3}(?:[ .-]?\(?\d{1,4}\)?){2,6}\b", _telephone),
    rule(r"(?<![\w-])(?:1[-. ])?(?:\(\d{3}\)\s?|\d{3}[-. ])\d{3}[-. ]\d{4}(?![\w-])", _telephone),
    rule(r"(?<![\w.,$£€-])[2-9]\d{2}-\d{4}(?![\w-])", _telephone),
)
