"""`say-as` of SSML: a text in words by what it means."""

import re
from collections.abc import Callable

from processors.text.normalisation.dates import DATES, MONTHS, NAMES, TIMES
from processors.text.normalisation.numbers import DIGITS, number, ordinal, year
from processors.text.normalisation.quantities import PRICES
from processors.text.normalisation.rules import apply
from processors.text.normalisation.signs import say_signs

_MARKS = {".": "dot", ",": "comma", "-": "dash", "_": "underscore", ":": "colon", ";": "semicolon",
          "!": "exclamation mark", "?": "question mark", "'": "apostrophe", '"': "quote",
          "(": "open bracket", ")": "close bracket", "*": "star", "|": "bar"}  # fmt: skip


def say_as(kind: str, text: str, format: str, *, in_english: bool) -> str:
    """The words of a text of one of KINDS; the format of a date is the order of its parts ("dmy").

    Other languages than English have characters, digits, telephone and cardinal, whose figures the
    front end reads.
    """
    if kind not in KINDS:
        raise ValueError(f"{kind[:40]!r}; expected {', '.join(KINDS)}")
    if format and kind != "date":
        raise ValueError(f"{kind} has no format")
    if kind == "date":
        spoken = _date(text, format) if in_english else None
    elif in_english:
        spoken = _ENGLISH[kind](text)
    elif kind in _ANY_LANGUAGE:
        spoken = _ANY_LANGUAGE[kind](text)
    else:
        raise ValueError(f"{kind} is for English only; write it in words")
    if not spoken:
        raise ValueError(f"{text[:40]!r} is no {kind}{f' {format}' if format else ''}")
    return spoken[0].upper() + spoken[1:]  # a sentence may begin here


def _spaced(text: str) -> str:
    return " ".join(char for char in text.upper() if not char.isspace())


def _characters(text: str) -> str:
    said = (f" {_MARKS[char]} " if char in _MARKS else char for char in _spaced(text))
    words = say_signs("".join(said)).split()
    return " ".join(["Ay", *words[1:]] if words[:1] == ["A"] else words)  # not the article


def _digits(text: str) -> str:
    is_digits = re.fullmatch(r"[\d\s.,/-]*\d[\d\s.,/-]*", text, re.ASCII)
    return " ".join(char for char in text if char.isdigit()) if is_digits else ""


def _telephone(text: str) -> str:
    """Digits in groups, with a pause between them."""
    if not re.fullmatch(r"\s*\+?[\d\s().,/-]*\d[\d\s().,/-]*", text, re.ASCII):
        return ""
    groups = [" ".join(group) for group in re.findall(r"\d+", text)]
    return ("+ " if "+" in text else "") + ", ".join(groups)


def _figures(text: str) -> str:
    """A number without the commas between thousands."""
    match = re.fullmatch(r"\s*(-?)0*(\d[\d,]*(?:\.\d+)?)\s*", text, re.ASCII)
    return match[1] + match[2].replace(",", "") if match else ""


def _in_words(figures: Callable[[str], str]) -> Callable[[str], str]:
    """English words for single digits with signs and pauses between them."""
    return lambda text: re.sub(r"\d", lambda m: DIGITS[int(m[0])], figures(text)).replace(
        "+", "plus"
    )


def _ordinal(text: str) -> str:
    match = re.fullmatch(r"\s*(\d[\d,]*)(?:st|nd|rd|th)?\s*", text, re.ASCII)
    return ordinal(match[1]) if match else ""


def _by_rules(rules: tuple) -> Callable[[str], str]:
    """Text that these rules of the normaliser put into words, without anything left."""

    def say(text: str) -> str:
        spoken: str = apply(rules, text.strip())
        return "" if re.search(r"\d|[$£€¥]", spoken) or spoken == text.strip() else spoken

    return say


def _date(text: str, format: str) -> str:
    if not format:
        return _by_rules((*DATES, *NAMES))(text)
    figures = re.findall(r"[0-9]{1,4}", text)
    wrong = sorted(format) not in [sorted(known) for known in ("dmy", "dm", "my", "d", "m", "y")]
    if wrong or len(figures) != len(format) or re.search(r"[^0-9\s./-]", text):
        return ""
    parts = dict(zip(format, figures, strict=True))
    day, month = int(parts.get("d", 1)), int(parts.get("m", 1))
    if not (1 <= day <= 31 and 1 <= month <= 12 and len(parts.get("y", "1")) <= 4):
        return ""
    spoken = [MONTHS[month - 1]] if "m" in parts else []
    spoken += [ordinal(str(day))] if "d" in parts else []
    head = " ".join(spoken)
    return ", ".join(filter(None, [head, year(parts["y"]) if "y" in parts else ""]))


_ENGLISH = {
    "characters": _in_words(_characters),
    "digits": _in_words(_digits),
    "telephone": _in_words(_telephone),
    "cardinal": lambda text: number(figures) if (figures := _figures(text)) else "",
    "ordinal": _ordinal,
    "time": _by_rules(TIMES),
    "currency": _by_rules(PRICES),
}
_ANY_LANGUAGE = {
    "characters": _spaced,
    "digits": _digits,
    "telephone": _telephone,
    "cardinal": _figures,
}
KINDS = (*_ENGLISH, "date")
