"""Words in capitals: spelt ("F B I"), read as words ("NASA"), or emphasised ("STOP")."""

import re
from collections.abc import Collection, Iterable

from processors.text.lexicon import letter_name, lookup
from processors.text.normalisation.rules import apply, rule

_SPOKEN = frozenset(
    (
        "NASA", "NATO", "UNESCO", "UNICEF", "OPEC", "AIDS", "LASER", "RADAR", "SCUBA", "NAFTA",
        "ASAP", "GIF", "JPEG", "PIN", "SIM", "RAM", "ROM", "SWAT", "YOLO", "COVID", "NASDAQ",
        "INTERPOL", "FIFA", "UEFA", "OSHA", "FEMA", "DARPA", "NOAA", "ASCII", "BASIC", "COBOL",
        "LAN", "WAN", "SARS", "SONAR", "ZIP", "TED", "LIGO", "CERN", "BAFTA", "GIS",
    )
)  # fmt: skip
# Spelt although they look like words.
_SPELT = frozenset(
    (
        "US", "USA", "IT", "AI", "AM", "PM", "UN", "EU", "UK", "UAE", "OK", "ID", "IP", "IQ",
        "IRS", "IRA", "PA", "PR", "HR", "ER", "TA", "AD", "OS", "ATM", "CIA", "IBM", "SAT",
        "MIT", "UCLA", "OECD", "AAA", "EPA", "FAA", "FDA", "IOU", "ISO", "LA", "ADHD", "AKA",
        "API", "APR", "EST",
    )
)  # fmt: skip
_MIXED = {"PhD": "P H D", "PhDs": "P H D's", "MSc": "M S C", "BSc": "B S C"}
_SHOUTED_SHARE = 0.6
_CAPITALS = re.compile(r"[A-Z]{2}|[A-Z]&[A-Z]|hD|Sc")


def _spell(token: str) -> bool:
    """Whether a word in capitals is read letter by letter."""
    if token in _SPOKEN:
        return False
    if token in _SPELT or not re.search(r"[AEIOUY]", token):
        return True
    phones = lookup(token)
    if phones is None:
        return len(token) <= 4
    return _bare(phones) == _bare(phone for letter in token for phone in letter_name(letter) or ())


def _bare(phones: Iterable[str]) -> str:
    return " ".join(phone.rstrip("012") for phone in phones)


def _acronym(match: re.Match[str], own_words: Collection[str]) -> str:
    token, plural = match[1], match[2] or ""
    if match[0].lower() in own_words or token.lower() in own_words or not _spell(token):
        return match[0]
    # "DVDs": the letter names take the plural.
    return " ".join(token) + ("'s" if plural else "")


def say_acronyms(text: str, own_words: Collection[str] = ()) -> str:
    """Spells the acronyms of a text; a text mostly in capitals is treated as emphasised.

    Words of a user lexicon, in lower case, are never spelt.
    """
    if not _CAPITALS.search(text) or _is_shouted(text):
        return text
    text = apply(_JOINED, text)
    return _ACRONYM.sub(lambda match: _acronym(match, own_words), text)


def _is_shouted(text: str) -> bool:
    words = re.findall(r"[A-Za-z]{2,}", text)
    loud = [word for word in words if word.isupper()]
    return len(loud) > _SHOUTED_SHARE * len(words) and sum(not _spell(word) for word in loud) > 1


_ACRONYM = re.compile(r"(?<![\w'])([A-Z]{2,})('s|s)?(?!\w)")
_JOINED = (
    rule(r"\b(" + "|".join(_MIXED) + r")\b", lambda m: _MIXED[m[1]]),
    rule(r"\b([A-Z]+)&([A-Z]+)\b", lambda m: f"{' '.join(m[1])} and {' '.join(m[2])}"),
)
