"""Values of the attributes of SSML."""

import re
from collections.abc import Iterable

from processors.text.runs import Prosody

# The recommendation leaves the meaning of the names to the voice.
_RATES = {"x-slow": 0.5, "slow": 0.75, "medium": 1.0, "default": 1.0, "fast": 1.25, "x-fast": 1.5}
_PITCHES = {"x-low": 0.75, "low": 0.87, "medium": 1.0, "default": 1.0, "high": 1.15, "x-high": 1.33}
_VOLUMES_DB = {
    "x-soft": -12.0,
    "soft": -6.0,
    "medium": 0.0,
    "default": 0.0,
    "loud": 3.0,
    "x-loud": 6.0,
}
_BREAKS_S = {
    "none": 0.0,
    "x-weak": 0.1,
    "weak": 0.25,
    "medium": 0.5,
    "strong": 0.75,
    "x-strong": 1.0,
}
_EMPHASES = {
    "strong": Prosody(1.25, 1.15, 1.19),  # 1.5 dB
    "moderate": Prosody(1.12, 1.08, 1.0),
    "none": Prosody(),
    "reduced": Prosody(0.9, 0.95, 1.0),
}
PARAGRAPH_S = _BREAKS_S["strong"]
LONGEST_BREAK_S = 10.0
_NUMBER = r"(\d{1,6}(?:\.\d{0,6})?|\.\d{1,6})"


def rate(text: str) -> Prosody:
    """How fast: a name, "80%" of the usual rate, or a change, "+20%"; else a ValueError."""
    factor = _RATES.get(text) or _percentage(text, signed=False)
    if not factor:
        raise ValueError(_expected(text, _RATES, "a percentage, such as 80% or +20%"))
    return Prosody(duration=1 / factor)


def pitch(text: str) -> Prosody:
    """How high: a name, or a change, "+10%" or "-2st" (semitones)."""
    factor = _PITCHES.get(text) or _percentage(text, signed=True)
    if match := re.fullmatch(rf"([+-]){_NUMBER}st", text):
        factor = 2 ** (min(float(match[2]), 100) / 12 * (-1 if match[1] == "-" else 1))
    if not factor:
        raise ValueError(_expected(text, _PITCHES, "a change, such as +10% or -2st"))
    return Prosody(pitch=factor)


def volume(text: str) -> Prosody:
    """How loud: a name, "silent", or a change in dB, "-6dB"."""
    if text == "silent":
        return Prosody(gain=0.0)
    db = _VOLUMES_DB.get(text)
    if match := re.fullmatch(rf"([+-]?){_NUMBER}dB", text):
        db = float(match[2]) * (-1 if match[1] == "-" else 1)
    if db is None or not -60 <= db <= 20:
        raise ValueError(_expected(text, ["silent", *_VOLUMES_DB], "-60dB to +20dB"))
    return Prosody(gain=10 ** (db / 20))


def emphasis(text: str) -> Prosody:
    """The prosody of a level."""
    if text not in _EMPHASES:
        raise ValueError(_expected(text, _EMPHASES))
    return _EMPHASES[text]


def strength(text: str) -> float:
    """Seconds of a break."""
    if text not in _BREAKS_S:
        raise ValueError(_expected(text, _BREAKS_S))
    return _BREAKS_S[text]


def seconds(text: str) -> float:
    """A time, "1.5s" or "300ms"."""
    match = re.fullmatch(rf"\+?{_NUMBER}(m?)s", text)
    time_s = float(match[1]) / (1000 if match[2] else 1) if match else -1.0
    if not 0 <= time_s <= LONGEST_BREAK_S:
        limit = f"up to {LONGEST_BREAK_S:g}s"
        raise ValueError(f"{text[:40]!r}; expected a time {limit}, such as 1.5s or 300ms")
    return time_s


def _percentage(text: str, *, signed: bool) -> float:
    """A factor; 0 if it is none, or not positive."""
    match = re.fullmatch(rf"([+-]?){_NUMBER}%", text)
    if match is None or (signed and not match[1]):
        return 0.0
    share = float(match[2]) / 100
    return max(0.0, {"+": 1 + share, "-": 1 - share}.get(match[1], share))


def _expected(text: str, names: Iterable[str], other: str = "") -> str:
    return f"{text[:40]!r}; expected {', '.join([*names, *[other] * bool(other)])}"
