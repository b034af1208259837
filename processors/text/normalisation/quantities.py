"""Prices ("$3.5 million", "£5-10", "50¢", "EUR 20") and numbers with units ("90 km/h", "-5 °C")."""

import re
from typing import NamedTuple

from processors.text.normalisation import alternatives, rule
from processors.text.normalisation.numbers import (
    NUMBER,
    QUANTITIES,
    cardinal,
    is_attribute,
    number,
    quantity,
)

_SYMBOLS_OF = {
    "kilometer": "km", "meter": "m", "centimeter": "cm", "millimeter": "mm", "nanometer": "nm",
    "micrometer": "μm, um", "mile": "mi", "yard": "yd, yds", "foot": "ft, ft.", "inch": "in.",
    "kilogram": "kg, kgs", "gram": "g", "milligram": "mg", "microgram": "μg, mcg",
    "pound": "lb, lbs, lb., lbs.", "ounce": "oz, oz.", "liter": "l, L", "milliliter": "ml, mL",
    "teaspoon": "tsp, tsp.", "tablespoon": "tbsp, tbsp., Tbsp, Tbsp.", "quart": "qt, qt., qts",
    "package": "pkg, pkg.", "centiliter": "cl", "deciliter": "dl, dL", "gallon": "gal, gal.",
    "hectare": "ha", "square kilometer": "km^2, km2", "square meter": "m^2, m2, sq m",
    "square centimeter": "cm^2, cm2", "cubic meter": "m^3, m3", "cubic centimeter": "cm^3, cm3, cc",
    "square foot": "sq ft, sq. ft.", "square mile": "sq mi, sq. mi.",
    "second": "s, sec, sec., secs", "minute": "min, min., mins", "hour": "h, hr, hrs, hr., hrs.",
    "millisecond": "ms", "microsecond": "μs", "nanosecond": "ns", "year": "yr, yrs", "watt": "W",
    "kilowatt": "kW", "megawatt": "MW", "gigawatt": "GW", "kilowatt hour": "kWh", "volt": "V",
    "kilovolt": "kV", "millivolt": "mV", "milliampere": "mA", "milliampere hour": "mAh", "ohm": "Ω",
    "kilojoule": "kJ", "calorie": "cal", "kilocalorie": "kcal", "pascal": "Pa", "kilopascal": "kPa",
    "hectopascal": "hPa", "decibel": "dB", "kilobyte": "kB, KB", "megabyte": "MB", "gigabyte": "GB",
    "terabyte": "TB", "megabit": "Mb", "gigabit": "Gb", "pixel": "px", "degree": "°, deg",
    "mole": "mol", "horsepower": "hp", "percent": "%", "per mille": "‰", "hertz": "Hz",
    "kilohertz": "kHz", "megahertz": "MHz", "gigahertz": "GHz", "P S I": "psi", "R P M": "rpm",
    "B P M": "bpm", "B P S": "bps", "F P S": "fps", "D P I": "dpi", "degree Celsius": "°C, ° C",
    "degree Fahrenheit": "°F, ° F", "kelvin": "°K", "kilometer per hour": "kmh, kph",
    "mile per hour": "mph", "meter per second squared": "m/s^2, m/s2", "mile per gallon": "mpg",
    "kilobit per second": "kbps", "megabit per second": "Mbps", "gigabit per second": "Gbps",
    "liter per hundred kilometers": "l/100 km, l/100km", "millimeter of mercury": "mmHg",
}  # fmt: skip
_NAMES = {symbol: name for name, symbols in _SYMBOLS_OF.items() for symbol in symbols.split(", ")}
_UNCHANGED = frozenset(
    ["percent", "per mille", "hertz", "kilohertz", "megahertz", "gigahertz", "horsepower",
     "kelvin", "B P S", "P S I", "R P M", "B P M", "F P S", "D P I"]
)  # fmt: skip
_ODD_PLURALS = {"foot": "feet", "inch": "inches"}

_PER = {
    "hr": "hour", "mo": "month", "yr": "year", "kg": "kilogram", "lb": "pound", "km": "kilometer",
}  # fmt: skip


class _Currency(NamedTuple):
    singular: str
    plural: str
    part: str = "cent"
    parts: str = "cents"


_CURRENCIES_OF = {  # by their signs and codes
    "$": _Currency("dollar", "dollars"),
    "£ GBP": _Currency("pound", "pounds", "penny", "pence"),
    "€ EUR": _Currency("euro", "euros"),
    "¥ JPY": _Currency("yen", "yen", "sen", "sen"),
    "₹ INR": _Currency("rupee", "rupees", "paisa", "paise"),
    "₩": _Currency("won", "won"),
    "₽": _Currency("ruble", "rubles", "kopeck", "kopecks"),
    "CNY": _Currency("yuan", "yuan"),
    "CHF": _Currency("Swiss franc", "Swiss francs", "centime", "centimes"),
    "US$ USD": _Currency("US dollar", "US dollars"),
    "C$ CA$ CAD": _Currency("Canadian dollar", "Canadian dollars"),
    "A$ AU$ AUD": _Currency("Australian dollar", "Australian dollars"),
    "NZ$": _Currency("New Zealand dollar", "New Zealand dollars"),
    "HK$": _Currency("Hong Kong dollar", "Hong Kong dollars"),
}
_CURRENCIES = {sign: name for signs, name in _CURRENCIES_OF.items() for sign in signs.split()}
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
    if decimals and len(decimals) != 2:
        return f"{number(amount)} {currency.plural}"
    units = f"{cardinal(whole or '0')} {currency.singular if whole == '1' else currency.plural}"
    if not decimals.strip("0"):
        return units
    parts = decimals.removeprefix("0")
    change = f"{cardinal(parts)} {currency.part if parts == '1' else currency.parts}"
    return f"{units} and {change}" if whole.strip("0,") else change


PRICES = (
    rule(r"(?i)(?<=\d[kmbn])\s?[-–]\s?(?=[$£€¥])", " to "),
    rule(rf"(?i)(?P<sign>(?<!\w)-)?(?<![A-Z]){_SYMBOL}\s?{_AMOUNT}{_NOTE}", _price),
    rule(rf"(?P<sign>(?<![\w.])-)?(?<![\w.,]){_AMOUNT}\s?{_CODE}{_NOTE}", _price),
    rule(rf"\b({NUMBER})\s?¢", lambda m: f"{number(m[1])} cent{'s' * (m[1] != '1')}"),
    rule(r"(?<![\w.,])(\d{1,2})p\b(?!\.m)", lambda m: _exact(f"0.{m[1]:0>2}", _CURRENCIES["£"])),
)

_UNIT = alternatives(symbol for symbol in _NAMES if symbol != "s")
_PER_UNIT = rf"(?:/(?P<per>{alternatives(_NAMES)}))?"
_LONG = alternatives(name for name in _NAMES if name.isalpha() and len(name) > 1)


def _plural(name: str) -> str:
    """Writes the plural of a unit: its first noun changes, as in "kilometers per hour"."""
    if name in _UNCHANGED:
        return name
    head, per, tail = name.partition(" of " if " of " in name else " per ")
    if head.startswith("degree"):
        return "degrees" + head[6:]
    *front, noun = head.split(" ")
    return " ".join([*front, _ODD_PLURALS.get(noun, noun + "s")]) + per + tail


def _at_most_one(amount: str) -> bool:
    """Returns whether an amount is 1, or a fraction below it: "3/4 inch"."""
    whole, _, divisor = amount.lstrip("-").partition("/")
    is_below = whole.isdigit() and len(whole) <= len(divisor) < 4 and int(whole) < int(divisor)
    return whole == "1" or is_below


def _measured(match: re.Match[str]) -> str:
    amount, name = match[1], _NAMES[match[2]]
    name += f" per {_NAMES[match['per']]}" if match["per"] else ""
    # A unit's own full stop may also end the sentence.
    final = "." if match[2][-1] == "." and not match.string[match.end() :].strip("\"') ") else ""
    single = _at_most_one(amount) or is_attribute(match.string, match.start())
    return f"{quantity(amount)} {name if single else _plural(name)}{final}"


def _feet(match: re.Match[str]) -> str:
    feet, inches = match[1], match[2]
    rest = f" {quantity(inches)} inch{'es' * (inches != '1')}" if inches else ""
    return f"{quantity(feet)} {'foot' if feet == '1' else 'feet'}{rest}"


def _inches(match: re.Match[str]) -> str:
    """Reads a number before a double quote as inches, unless the quote closes a quotation."""
    if match.string.count('"', 0, match.start()) % 2:
        return match[0]
    single = _at_most_one(match[1]) or is_attribute(match.string, match.start())
    return f"{quantity(match[1])} inch{'' if single else 'es'}"


UNITS = (
    rule(
        r"(?<![\w.,])(0(?=,)|\d+(?=,\d\d?(?!\d))),"  # 1,5 kg in Europe
        rf"(?=\d+(?:\s?[-–]\s?\d+(?:,\d\d?)?)?\s?(?:{_UNIT})(?![\w^]|'\w))",
        r"\1.",
    ),
    rule(r"(?<![\w'.])(\d{1,2})\s?ft\.?\s(\d{1,2})\s?in\b(?!\.)", _feet),
    rule(rf"(?<![\w.,/])({QUANTITIES})\s?({_UNIT}){_PER_UNIT}(?![\w^/]|'\w)", _measured),
    # "10s" is a decade
    rule(rf"(?<![\w.,/])({QUANTITIES})\s(s){_PER_UNIT}(?![\w^/'.])", _measured),
    rule(r"(?<![\w.,/])(\d+\.\d+)(s)(?P<per>)\b(?![\^/'])", _measured),
    rule(rf"\b(\d+)-({_LONG})\b", lambda m: f"{quantity(m[1])} {_NAMES[m[2]]}"),
    rule(r"(?<![\w'.])(\d{1,2})'\s?(\d{1,2}(?:\.5)?)(?:\"|'')?(?!\w)", _feet),
    rule(r"(?<![\w'.])(\d{1,3})'()(?=\s(?:tall|long|wide|high|deep|by|x)\b)", _feet),
    rule(r'(?<![\w.])(\d+(?:\.\d+)?|\d+/\d+|\d+ \d+/\d+)"(?!\w)', _inches),
    rule(
        r"(?<=[a-z])\s?/\s?(hour|hr|day|week|month|mo|year|yr|night|person|kg|lb|km|mile)\b",
        lambda m: f" per {_PER.get(m[1], m[1])}",
    ),
)
