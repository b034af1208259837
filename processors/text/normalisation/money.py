"""Prices: "$3.5 million", "£5-10", "50¢", "EUR 20"."""

import re
from typing import NamedTuple

from processors.text.normalisation.numbers import NUMBER, cardinal, is_attribute, number
from processors.text.normalisation.rules import rule


class _Currency(NamedTuple):
    singular: str
    plural: str
    part: str = "cent"
    parts: str = "cents"


_DOLLAR = _Currency("dollar", "dollars")
_POUND = _Currency("pound", "pounds", "penny", "pence")
_EURO = _Currency("euro", "euros")
_YEN = _Currency("yen", "yen", "sen", "sen")
_RUPEE = _Currency("rupee", "rupees", "paisa", "paise")
_FRANC = _Currency("Swiss franc", "Swiss francs", "centime", "centimes")


def _dollars_of(country: str) -> _Currency:
    return _Currency(f"{country} dollar", f"{country} dollars")


_CURRENCIES = {
    "$": _DOLLAR, "£": _POUND, "€": _EURO, "¥": _YEN, "₹": _RUPEE,
    "₩": _Currency("won", "won"), "₽": _Currency("ruble", "rubles", "kopeck", "kopecks"),
    "US$": _dollars_of("US"), "C$": _dollars_of("Canadian"), "CA$": _dollars_of("Canadian"),
    "A$": _dollars_of("Australian"), "AU$": _dollars_of("Australian"),
    "NZ$": _dollars_of("New Zealand"), "HK$": _dollars_of("Hong Kong"),
    "USD": _dollars_of("US"), "EUR": _EURO, "GBP": _POUND, "JPY": _YEN, "INR": _RUPEE,
    "CHF": _FRANC, "CAD": _dollars_of("Canadian"), "AUD": _dollars_of("Australian"),
    "CNY": _Currency("yuan", "yuan"),
}  # fmt: skip
_MAGNITUDES = {
    "k": "thousand", "m": "million", "mn": "million", "mm": "million", "mio": "million",
    "b": "billion", "bn": "billion", "t": "trillion", "tn": "trillion", "trn": "trillion",
}  # fmt: skip
_ISO = r"(?:USD|EUR|GBP|JPY|INR|CHF|CAD|AUD|CNY)\b"
_SYMBOL = rf"(?P<currency>(?:US|CA?|AU?|NZ|HK)?\$|[£€¥₹₩₽]|{_ISO})"
_CODE = rf"(?P<currency>[£€¥₹₩₽$]|{_ISO})"
_MAGNITUDE = (
    r"(?:[\s-]?(?P<magnitude>hundred|thousand|million|billion|trillion|"
    r"(?:mio|trn|[mbt]n|mm|[kmbt])\b))?"
)
_AMOUNT = (
    rf"(?P<first>\.\d\d\b|\d+,\d\d(?!\d)|{NUMBER})"
    rf"(?:\s?[-–]\s?(?:US)?[$£€¥₹]?(?P<last>{NUMBER}))?{_MAGNITUDE}"
)
_NOTE = r"(?P<note>[\s-](?:bills?|notes?|coins?)\b)?"


def _price(match: re.Match[str]) -> str:
    currency = _CURRENCIES[match["currency"].upper()]
    first, last = re.sub(r"^(\d+),(\d\d)$", r"\1.\2", match["first"]), match["last"]
    sign = "minus " if match["sign"] else ""
    magnitude = (match["magnitude"] or "").lower()
    name = currency.singular if is_attribute(match.string, match.start()) else currency.plural
    if last and not magnitude and "." in first + last:
        return f"{sign}{_exact(first, currency)} to {_exact(last, currency)}"
    if magnitude or last:
        amount = number(first) + (f" to {number(last)}" if last else "")
        scale = f" {_MAGNITUDES.get(magnitude, magnitude)}" if magnitude else ""
        return f"{sign}{amount}{scale} {name}"
    if match["note"] or (name == currency.singular and first.isdigit()):
        return f"{number(first)} {currency.singular}{(match['note'] or '').replace('-', ' ')}"
    return sign + _exact(first, currency)


def _exact(amount: str, currency: _Currency) -> str:
    """Says "3.50" as "three dollars and fifty cents", "3.5" as "three point five dollars"."""
    whole, _, decimals = amount.partition(".")
    whole = whole or "0"
    if decimals and len(decimals) != 2:
        return f"{number(amount)} {currency.plural}"
    units = f"{cardinal(whole)} {currency.singular if whole == '1' else currency.plural}"
    if not decimals.strip("0"):
        return units
    parts = int(decimals)
    change = f"{cardinal(str(parts))} {currency.part if parts == 1 else currency.parts}"
    return change if whole.strip("0,") == "" else f"{units} and {change}"


def _small(singular: str, plural: str, amount: str) -> str:
    return f"{number(amount)} {singular if amount == '1' else plural}"


RULES = (
    rule(r"(?<=\d[kmbn])\s?[-–]\s?(?=[$£€¥])", " to ", re.I),
    rule(rf"(?P<sign>(?<!\w)-)?(?<![A-Z]){_SYMBOL}\s?{_AMOUNT}{_NOTE}", _price, re.I),
    rule(rf"(?P<sign>(?<![\w.])-)?(?<![\w.,]){_AMOUNT}\s?{_CODE}{_NOTE}", _price),
    rule(rf"\b({NUMBER})\s?¢", lambda m: _small("cent", "cents", m[1])),
    rule(r"(?<![\w.,])(\d{1,2})p\b(?!\.m)", lambda m: _small("penny", "pence", m[1])),
)
