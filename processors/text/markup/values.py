"""Values of the attributes of SSML, `say-as` in words by what it means."""

import math
import re
from collections.abc import Callable, Collection
from functools import partial

from processors.text.normalisation import Rule, apply
from processors.text.normalisation.dates import DATES, MONTHS, NAMES, TIMES
from processors.text.normalisation.english import say_signs
from processors.text.normalisation.numbers import DIGITS, digit_by_digit, number, ordinal, year
from processors.text.normalisation.quantities import PRICES
from processors.text.passages import LONGEST_BREAK_S, ProsodyFactors, seconds
from utils.errors import InputError

# The recommendation leaves the meaning of the names to the voice.
_RATES = {"x-slow": 0.5, "slow": 0.75, "medium": 1, "default": 1, "fast": 1.25, "x-fast": 1.5}
_PITCHES = {"x-low": 0.75, "low": 0.87, "medium": 1.0, "default": 1.0, "high": 1.15, "x-high": 1.33}
_VOLUMES_DB = {
    "silent": -math.inf, "x-soft": -12, "soft": -6, "medium": 0, "default": 0, "loud": 3,
    "x-loud": 6,
}  # fmt: skip
_NAMED = {  # by attribute
    "rate": {name: ProsodyFactors(duration=1 / rate) for name, rate in _RATES.items()},
    "pitch": {name: ProsodyFactors(pitch=pitch) for name, pitch in _PITCHES.items()},
    "volume": {name: ProsodyFactors(gain=10 ** (db / 20)) for name, db in _VOLUMES_DB.items()},
    "level": {
        "strong": ProsodyFactors(1.25, 1.15, 1.19),  # 1.5 dB
        "moderate": ProsodyFactors(1.12, 1.08, 1.0),
        "none": ProsodyFactors(),
        "reduced": ProsodyFactors(0.9, 0.95, 1.0),
    },
}
_OTHERS = {
    "rate": "a percentage, such as 80% or +20%", "pitch": "a change, such as +10% or -2st",
    "volume": "-60dB to +20dB", "time": f"a time up to {LONGEST_BREAK_S:g}s, such as 1.5s or 300ms",
}  # fmt: skip
_BREAKS_S = {
    "none": 0.0, "x-weak": 0.1, "weak": 0.25, "medium": 0.5, "strong": 0.75, "x-strong": 1.0,
}  # fmt: skip
PARAGRAPH_S = _BREAKS_S["strong"]
_NUMBER = r"([+-]?)(\d{1,5}(?:\.\d{0,6})?|\.\d{1,6})"
_MEANINGS_ELSEWHERE = {
    "spell-out": "characters", "spell": "characters", "spellout": "characters",
    "verbatim": "characters", "letters": "characters", "character": "characters",
    "number_digit": "digits", "digit": "digits", "phone": "telephone", "phone-number": "telephone",
    "tel": "telephone", "number": "cardinal", "integer": "cardinal", "money": "currency",
}  # fmt: skip
_MARKS = {".": "dot", ",": "comma", "-": "dash", "_": "underscore", ":": "colon", ";": "semicolon",
          "!": "exclamation mark", "?": "question mark", "'": "apostrophe", '"': "quote",
          "(": "open bracket", ")": "close bracket", "*": "star", "|": "bar"}  # fmt: skip
_FORMS = {
    "digits": r"[\d\s.,/-]*\d[\d\s.,/-]*",
    "telephone": r"\+?[\d\s().,/-]*\d[\d\s().,/-]*",
    "cardinal": r"-?\d[\d,]*(?:\.\d+)?",
    "ordinal": r"\d[\d,]*(?:st|nd|rd|th)?",
}


def prosody(attribute: str, text: str) -> ProsodyFactors:
    """Reads the prosody of a value of `rate`, `pitch`, `volume`, or of the `level` of emphasis.

    A name, "80%" of the usual rate, a change of rate or pitch, "+20%", of pitch in semitones,
    "-2st", or of volume, "-6dB".
    """
    if text in _NAMED[attribute]:
        return _NAMED[attribute][text]
    sign, number, unit = _quantity(text)
    factor = number / 100 + bool(sign)
    if (attribute, unit) == ("rate", "%") and factor > 0:
        return ProsodyFactors(duration=1 / factor)
    if (attribute, unit) == ("pitch", "%") and sign and factor > 0:
        return ProsodyFactors(pitch=factor)
    if (attribute, unit) == ("pitch", "st") and sign:
        return ProsodyFactors(pitch=2 ** (min(number, 100) / 12))
    if (attribute, unit) == ("volume", "dB") and -60 <= number <= 20:
        return ProsodyFactors(gain=10 ** (number / 20))
    raise InputError(_expected(attribute, text, _NAMED[attribute]))


def break_s(attribute: str, text: str) -> float:
    """Reads the seconds of a break, from its `strength`, or its `time`, "1.5s" or "300ms"."""
    if attribute == "strength" and text in _BREAKS_S:
        return _BREAKS_S[text]
    _, number, unit = _quantity(text)
    time_s = number / (1000 if unit == "ms" else 1)
    if attribute == "time" and unit in ("s", "ms") and 0 <= time_s <= LONGEST_BREAK_S:
        return time_s
    raise InputError(_expected(attribute, text, _BREAKS_S if attribute == "strength" else ()))


def _quantity(text: str) -> tuple[str, float, str]:
    """Returns the sign, the signed number and the unit of a value; no unit if it is none."""
    match = re.fullmatch(rf"{_NUMBER}(%|st|dB|m?s)", text)
    return (match[1], float(match[1] + match[2]), match[3]) if match else ("", 0.0, "")


def mended(attribute: str, text: str) -> str:
    """Returns a value that another program would take, as it is to be written here, or ""."""
    text = text.strip().lower().replace("\u2212", "-")
    if text in _NAMED.get(attribute, _BREAKS_S if attribute == "strength" else ()):
        return text
    if attribute == "interpret-as":
        return _MEANINGS_ELSEWHERE.get(text, "")
    if attribute == "alphabet":
        return "arpabet" if "arpabet" in text else ""
    if attribute == "xml:lang":
        return text.replace("_", "-")
    quantity = re.fullmatch(rf"{_NUMBER}\s*([a-z%]*)", text)
    sign, number, unit = quantity.groups() if quantity else ("", "nan", "")
    value = float(number)
    if attribute == "time" and not sign and (not unit or re.match(r"m?s|mil", unit)):
        return f"{min(seconds(number, unit), LONGEST_BREAK_S):g}s"
    if attribute == "rate" and not sign and unit in ("", "x"):
        return f"{value * 100 if value <= 10 else value:g}%"
    if attribute == "pitch" and not sign and unit == "%" and value >= 50:
        return f"{value - 100:+g}%"
    if attribute == "pitch" and unit.startswith("st"):
        return f"{sign or '+'}{number}st"
    return f"{sign}{number}{unit.replace('db', 'dB')}"


def _expected(attribute: str, text: str, names: Collection[str]) -> str:
    others = [_OTHERS[attribute]] if attribute in _OTHERS else []
    return f"{attribute}: {text[:40]!r}; expected {', '.join([*names, *others])}"


def say_as(meaning: str, text: str, format: str, *, in_english: bool) -> str:
    """Reads a text of one of MEANINGS; the format of a date is the order of its parts ("dmy").

    Other languages than English have characters, digits, telephone and cardinal, whose figures the
    front end reads.
    """
    if meaning not in MEANINGS:
        raise InputError(_expected("interpret-as", meaning, MEANINGS))
    if format and meaning != "date":
        raise InputError(f"say-as: {meaning} has no format")
    if not (say := (_ENGLISH if in_english else _ANY_LANGUAGE).get(meaning)):
        raise InputError(f"say-as: {meaning} is for English only; write it in words")
    text = text.strip()
    fits = re.fullmatch(_FORMS.get(meaning, ".+"), text, re.ASCII | re.DOTALL)
    spoken = fits and (_date_in_figures(text, format) if format else say(text))
    if not spoken:
        raise InputError(f"say-as: {text[:40]!r} is no {meaning}{f' {format}' if format else ''}")
    return spoken[0].upper() + spoken[1:]  # a sentence may begin here


def _spaced(text: str) -> str:
    return " ".join(char for char in text.upper() if not char.isspace())


def _characters(text: str) -> str:
    named = (f" {_MARKS[char]} " if char in _MARKS else char for char in _spaced(text))
    words = say_signs("".join(named)).split()
    return " ".join(["Ay", *words[1:]] if words[:1] == ["A"] else words)  # not the article


def _telephone(text: str) -> str:
    """Reads digits in groups, with a pause between them."""
    groups = [" ".join(group) for group in re.findall(r"\d+", text)]
    return ("+ " if "+" in text else "") + ", ".join(groups)


def _figures(text: str) -> str:
    return re.sub(r"^(-?)0+(?=\d)|,", r"\1", text)  # no leading zeros, no commas


def _in_words(figures: Callable[[str], str]) -> Callable[[str], str]:
    """Builds a reader of single digits as English words, with the signs and pauses between them."""
    words = dict(zip(map(ord, "0123456789+"), (*DIGITS, "plus"), strict=True))
    return lambda text: figures(text).translate(words)


def _by_rules(rules: Collection[Rule], text: str) -> str:
    """Reads a text that these rules of the normaliser put into words, without rest."""
    spoken = apply(rules, text)
    return "" if re.search(r"\d|[$£€¥]", spoken) or spoken == text else spoken


def _date_in_figures(text: str, format: str) -> str:
    figures = re.findall(r"[0-9]{1,4}", text)
    wrong = sorted(format) not in [sorted(parts) for parts in ("dmy", "dm", "my", "d", "m", "y")]
    if wrong or len(figures) != len(format) or re.search(r"[^0-9\s./-]", text):
        return ""
    parts = dict(zip(format, figures, strict=True))
    day, month = int(parts.get("d", 1)), int(parts.get("m", 1))
    if not (1 <= day <= 31 and 1 <= month <= 12):
        return ""
    spoken = [MONTHS[month - 1]] if "m" in parts else []
    spoken += [ordinal(str(day))] if "d" in parts else []
    years = [year(parts["y"])] if "y" in parts else []
    return ", ".join([*filter(None, [" ".join(spoken)]), *years])


_ENGLISH: dict[str, Callable[[str], str]] = {
    "characters": _in_words(_characters),
    "digits": digit_by_digit,
    "telephone": _in_words(_telephone),
    "cardinal": lambda text: number(_figures(text)),
    "ordinal": lambda text: ordinal(text.rstrip("stndrh")),
    "date": partial(_by_rules, (*DATES, *NAMES)),
    "time": partial(_by_rules, TIMES),
    "currency": partial(_by_rules, PRICES),
}
_ANY_LANGUAGE = {
    "characters": _spaced,
    "digits": lambda text: " ".join(filter(str.isdigit, text)),
    "telephone": _telephone,
    "cardinal": _figures,
}
MEANINGS = tuple(_ENGLISH)
