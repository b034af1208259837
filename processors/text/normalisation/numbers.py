"""Numbers in words, the American way: no "and" within a number ("one hundred five")."""

import re

DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_BELOW_20 = (
    *DIGITS, "ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen",
    "eighteen", "nineteen",
)  # fmt: skip
_TENS = ("", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_SCALES = ((10**12, "trillion"), (10**9, "billion"), (10**6, "million"), (10**3, "thousand"))
_RANKS = {
    "one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth",
    "nine": "ninth", "twelve": "twelfth",
}  # fmt: skip
_LONGEST = 15  # digits: longer ones are read digit by digit, as people do
NUMBER = r"(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?"


def cardinal(digits: str) -> str:
    """A whole number: "1,234" is "one thousand two hundred thirty-four".

    Numbers with leading zeros or more than 15 digits are read digit by digit.
    """
    digits = digits.replace(",", "")
    if len(digits) > _LONGEST or (len(digits) > 1 and digits[0] == "0"):
        return digit_by_digit(digits)
    return _spelt(int(digits))


def ordinal(digits: str) -> str:
    """A rank: "22" is "twenty-second"."""
    digits = digits.replace(",", "")
    if len(digits) > _LONGEST:
        return f"{digit_by_digit(digits)} th"
    spelt = _spelt(int(digits))
    last = re.split(r"[ -]", spelt)[-1]
    regular = f"{last[:-1]}ieth" if last.endswith("y") else f"{last}th"
    return spelt.removesuffix(last) + _RANKS.get(last, regular)


def _spelt(value: int) -> str:
    for scale, name in (*_SCALES, (100, "hundred")):
        if value >= scale:
            rest = f" {_spelt(value % scale)}" if value % scale else ""
            return f"{_spelt(value // scale)} {name}{rest}"
    if value < 20:
        return _BELOW_20[value]
    return _TENS[value // 10] + (f"-{DIGITS[value % 10]}" if value % 10 else "")


def digit_by_digit(digits: str) -> str:
    """Says "007" as "zero zero seven"; anything but digits is skipped."""
    return " ".join(DIGITS[int(digit)] for digit in digits if digit.isdigit())


def number(text: str) -> str:
    """A number with optional sign, thousands separators and decimals: "-1,000.5"."""
    sign = "minus " if text.startswith("-") else ""
    whole, _, decimals = text.lstrip("+-").partition(".")
    spelt = cardinal(whole or "0")
    return sign + (f"{spelt} point {digit_by_digit(decimals)}" if decimals else spelt)


def year(digits: str) -> str:
    """A year: "1905" is "nineteen oh five", "2000" "two thousand", "2024" "twenty twenty-four"."""
    century, rest = digits[:-2], digits[-2:]
    if len(digits) < 3 or digits[-3:-1] == "00" or int(digits) < 1010:
        return cardinal(digits)
    if rest == "00":
        return f"{cardinal(century)} hundred"
    return f"{cardinal(century)} {two_digits(rest)}"


def two_digits(digits: str) -> str:
    """Minutes or the end of a year: "05" is "oh five"."""
    return f"oh {DIGITS[int(digits)]}" if digits[0] == "0" else cardinal(digits)


def fraction(numerator: str, denominator: str) -> str:
    """A fraction: 3/4 is "three quarters"; denominators above 100 are read with "over"."""
    # by length first: int() refuses more than 4,300 digits
    if len(denominator) > 3 or not 1 < int(denominator) <= 100 or numerator[0] == "0":
        return f"{cardinal(numerator)} over {cardinal(denominator)}"
    names = {2: ("half", "halves"), 4: ("quarter", "quarters")}
    other = ordinal(denominator)
    singular, plural = names.get(int(denominator), (other, f"{other}s"))
    return f"{cardinal(numerator)} {singular if numerator == '1' else plural}"


def mixed(whole: str, numerator: str, denominator: str) -> str:
    """A mixed number: 2 1/2 is "two and a half"."""
    part = fraction(numerator, denominator)
    return f"{cardinal(whole)} and {'a' + part[3:] if numerator == '1' else part}"


def quantity(text: str) -> str:
    """A number before a unit: "1,200", "-0.5", "1/2", "2 1/2" or a range of numbers "5-10"."""
    if match := re.fullmatch(r"(.*\d)\s?[-–]\s?(\d.*)", text):
        return f"{quantity(match[1])} to {quantity(match[2])}"
    if match := re.fullmatch(r"(\d+) (\d+)/(\d+)", text):
        return mixed(*match.groups())
    if match := re.fullmatch(r"(\d+)/(\d+)", text):
        return fraction(*match.groups())
    return number(text)


_UNSIGNED = rf"(?:\d+ \d+/\d+|\d+/\d+|{NUMBER})"
QUANTITIES = rf"(?:(?<![\w.])-)?{_UNSIGNED}(?:\s?[-–]\s?{_UNSIGNED})?"


def is_year(digits: str) -> bool:
    """Whether a bare number reads as a year."""
    return len(digits) == 4 and 1010 <= int(digits) <= 2099


def year_or_number(digits: str) -> str:
    """A year where the number can be one, a cardinal otherwise."""
    return year(digits) if is_year(digits) else cardinal(digits)


def is_attribute(text: str, start: int) -> bool:
    """Whether a quantity is an attribute after an article: "a 5 km run"."""
    return re.search(r"(?:^|\s)an?\s$", text[max(0, start - 4) : start], re.I) is not None
