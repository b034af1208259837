"""Prices ("$3.5 million", "£5-10", "50¢", "EUR 20") and numbers with units ("90 km/h", "-5 °C")."""

import re
from typing import NamedTuple

from processors.text.normalisation import rule
from processors.text.normalisation.numbers import (
    NUMBER,
    QUANTITIES,
    cardinal,
    is_attribute,
    number,
    quantity,
)

_NAMES = {
    "km": "kilometer", "m": "meter", "cm": "centimeter", "mm": "millimeter", "nm": "nanometer",
    "μm": "micrometer", "um": "micrometer", "mi": "mile", "yd": "yard", "yds": "yard",
    "ft": "foot", "ft.": "foot", "in.": "inch", "kg": "kilogram", "kgs": "kilogram", "g": "gram",
    "mg": "milligram", "μg": "microgram", "mcg": "microgram", "lb": "pound", "lbs": "pound",
    "lb.": "pound", "lbs.": "pound", "oz": "ounce", "oz.": "ounce", "l": "liter", "L": "liter",
    "ml": "milliliter", "mL": "milliliter", "cl": "centiliter", "dl": "deciliter",
    "gal": "gallon", "gal.": "gallon", "ha": "hectare", "km^2": "square kilometer",
    "km2": "square kilometer", "m^2": "square meter", "m2": "square meter",
    "cm^2": "square centimeter", "cm2": "square centimeter", "m^3": "cubic meter",
    "m3": "cubic meter", "cm^3": "cubic centimeter", "cm3": "cubic centimeter",
    "cc": "cubic centimeter", "sq ft": "square foot", "sq. ft.": "square foot",
    "sq m": "square meter", "sq mi": "square mile", "sq. mi.": "square mile",
    "s": "second", "sec": "second", "sec.": "second", "secs": "second", "min": "minute",
    "min.": "minute", "mins": "minute", "h": "hour", "hr": "hour", "hrs": "hour", "hr.": "hour",
    "hrs.": "hour", "ms": "millisecond", "μs": "microsecond", "ns": "nanosecond",
    "yr": "year", "yrs": "year", "W": "watt", "kW": "kilowatt", "MW": "megawatt",
    "GW": "gigawatt", "kWh": "kilowatt hour", "V": "volt", "kV": "kilovolt", "mV": "millivolt",
    "mA": "milliampere", "mAh": "milliampere hour", "Ω": "ohm", "kJ": "kilojoule",
    "cal": "calorie", "kcal": "kilocalorie", "Pa": "pascal", "kPa": "kilopascal",
    "hPa": "hectopascal", "dB": "decibel", "kB": "kilobyte", "KB": "kilobyte",
    "MB": "megabyte", "GB": "gigabyte", "TB": "terabyte", "Mb": "megabit", "Gb": "gigabit",
    "px": "pixel", "°": "degree", "deg": "degree", "mol": "mole", "hp": "horsepower",
    "%": "percent", "‰": "per mille", "Hz": "hertz", "kHz": "kilohertz", "MHz": "megahertz",
    "GHz": "gigahertz", "psi": "P S I", "rpm": "R P M", "bpm": "B P M", "fps": "F P S",
    "dpi": "D P I",
    "°C": "degree Celsius", "° C": "degree Celsius", "°F": "degree Fahrenheit",
    "° F": "degree Fahrenheit", "°K": "kelvin",
    "km/h": "kilometer per hour", "kmh": "kilometer per hour", "kph": "kilometer per hour",
    "mph": "mile per hour", "m/s": "meter per second", "m/s^2": "meter per second squared",
    "km/s": "kilometer per second", "ft/s": "foot per second", "mpg": "mile per gallon",
    "mg/L": "milligram per liter", "g/l": "gram per liter", "kg/m^3": "kilogram per cubic meter",
    "kbps": "kilobit per second", "Mbps": "megabit per second", "Gbps": "gigabit per second",
    "Mb/s": "megabit per second", "MB/s": "megabyte per second", "GB/s": "gigabyte per second",
    "g/km": "gram per kilometer", "l/100 km": "liter per hundred kilometers",
}  # fmt: skip
_UNCHANGED = frozenset(
    ["percent", "per mille", "hertz", "kilohertz", "megahertz", "gigahertz", "horsepower",
     "kelvin", "P S I", "R P M", "B P M", "F P S", "D P I"]
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
    whole = whole or "0"
    if decimals and len(decimals) != 2:
        return f"{number(amount)} {currency.plural}"
    units = f"{cardinal(whole)} {currency.singular if whole == '1' else currency.plural}"
    if not decimals.strip("0"):
        return units
    parts = int(decimals)
    change = f"{cardinal(str(parts))} {currency.part if parts == 1 else currency.parts}"
    return change if whole.strip("0,") == "" else f"{units} and {change}"


PRICES = (
    rule(r"(?<=\d[kmbn])\s?[-–]\s?(?=[$£€¥])", " to ", re.I),
    rule(rf"(?P<sign>(?<!\w)-)?(?<![A-Z]){_SYMBOL}\s?{_AMOUNT}{_NOTE}", _price, re.I),
    rule(rf"(?P<sign>(?<![\w.])-)?(?<![\w.,]){_AMOUNT}\s?{_CODE}{_NOTE}", _price),
    rule(rf"\b({NUMBER})\s?¢", lambda m: f"{number(m[1])} cent{'s' * (m[1] != '1')}"),
    rule(r"(?<![\w.,])(\d{1,2})p\b(?!\.m)", lambda m: _exact(f"0.{m[1]:0>2}", _CURRENCIES["£"])),
)


def _alternatives(symbols: list[str]) -> str:
    return "|".join(re.escape(symbol) for symbol in sorted(symbols, key=len, reverse=True))


_UNIT = _alternatives([symbol for symbol in _NAMES if symbol != "s"])
_LONG = _alternatives([name for name in _NAMES if name.isalpha() and len(name) > 1])


def _plural(name: str) -> str:
    """The plural of a unit: its first noun changes, as in "kilometers per hour"."""
    if name in _UNCHANGED:
        return name
    head, per, tail = name.partition(" per ")
    if head.startswith("degree"):
        return "degrees" + head[6:]
    *front, noun = head.split(" ")
    return " ".join([*front, _ODD_PLURALS.get(noun, noun + "s")]) + per + tail


def _measured(match: re.Match[str]) -> str:
    amount, name = match[1], _NAMES[match[2]]
    # A unit's own full stop may also end the sentence.
    final = "." if match[2][-1] == "." and not match.string[match.end() :].strip("\"') ") else ""
    is_one = amount.lstrip("-") in ("1", "1/2", "1/3", "1/4", "3/4")
    single = is_one or is_attribute(match.string, match.start())
    return f"{quantity(amount)} {name if single else _plural(name)}{final}"


def _feet(match: re.Match[str]) -> str:
    feet, inches = match[1], match[2]
    spoken = f"{quantity(feet)} {'foot' if feet == '1' else 'feet'}"
    if inches:
        spoken += f" {quantity(inches)} inch{'es' * (inches != '1')}"
    return spoken


def _inches(match: re.Match[str]) -> str:
    """A number before a double quote is in inches, unless the quote closes a quotation."""
    if match.string.count('"', 0, match.start()) % 2:
        return match[0]
    single = match[1] == "1" or is_attribute(match.string, match.start())
    return f"{quantity(match[1])} inch{'' if single else 'es'}"


UNITS = (
    rule(r"(?<![\w'.])(\d{1,2})\s?ft\.?\s(\d{1,2})\s?in\b(?!\.)", _feet),
    rule(rf"(?<![\w.,/])({QUANTITIES})\s?({_UNIT})(?![\w^/]|'\w)", _measured),
    rule(rf"(?<![\w.,/])({QUANTITIES})\s(s)(?![\w^/'.])", _measured),  # "10s" is a decade
    rule(r"(?<![\w.,/])(\d+\.\d+)(s)\b(?![\^/'])", _measured),
    rule(rf"\b(\d+)-({_LONG})\b", lambda m: f"{quantity(m[1])} {_NAMES[m[2]]}"),
    rule(r"(?<![\w'.])(\d{1,2})'\s?(\d{1,2}(?:\.5)?)(?:\"|'')?(?!\w)", _feet),
    rule(r"(?<![\w'.])(\d{1,3})'()(?=\s(?:tall|long|wide|high|deep|by|x)\b)", _feet),
    rule(r'(?<![\w.])(\d+(?:\.\d+)?|\d+/\d+|\d+ \d+/\d+)"(?!\w)', _inches),
    rule(
        r"(?<=[a-z])\s?/\s?(hour|hr|day|week|month|mo|year|yr|night|person|kg|lb|km|mile)\b",
        lambda m: f" per {_PER.get(m[1], m[1])}",
    ),
)
