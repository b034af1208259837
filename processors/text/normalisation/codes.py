"""Codes, read digit by digit: PINs, orders, cards, ZIP codes, addresses of machines, HTTP."""

import re

from processors.text.normalisation import rule
from processors.text.normalisation.numbers import DIGITS, characters, digit_by_digit, two_digits

CODED = (  # before a code
    "confirmation|account|order|tracking|reference|routing|card|serial|member|membership|customer|"
    "policy|case|ticket|booking|reservation|license|invoice|passport"
)
_CODES = (
    r"(?:OTP|PIN|CVV|CVC|SSN|IBAN|MFA|2FA)(?:\scode|\snumber)?|passcode|password|passphrase|"
    r"(?:(?:verification|security|access|confirmation|authentication|authorization|activation|"
    r"login|log-?in|sign-?in|one-time|entry|door|gate|zip|postal|area|promo|pairing|unlock|"
    r"secret|recovery|backup|error|booking|reservation)\s)+code|"
    rf"(?:{CODED})\s(?:number|no\.?|#)|"
    r"(?:card|account|number|phone|visa|mastercard|iban)\send(?:ing|s)\s(?:in|with)|ZIP|"
    r"last\s(?:three|four|3|4)(?:\sdigits)?|(?:meeting|webinar|user|session)\sID"
)
_STATES = (
    "A[KLRZ]|C[AOT]|D[CE]|FL|GA|HI|I[ADLN]|K[SY]|LA|M[ADEINOST]|N[CDEHJMVY]|O[HKR]|PA|RI|S[CD]|T[NX]|"
    "UT|V[AT]|W[AIVY]"
)
_CODE = r"(?P<code>(?=[\dA-Z-]{3})(?:[A-Z]{1,3}-?)?\d[\dA-Z]*(?:[- ]\d+){0,5})(?![\w%]|[.,:/]\d)"

_HEX = "[0-9A-Fa-f]"


def _status(match: re.Match[str]) -> str:
    """Says the digits at the end of "HTTP 404" as "four oh four", of "HTTP 500" "five hundred"."""
    before, first, rest = match[0][:-3], match[0][-3], match[0][-2:]
    return f"{before}{DIGITS[int(first)]} {'hundred' if rest == '00' else two_digits(rest)}"


def _code(match: re.Match[str]) -> str:
    """Reads the digits of a code one by one, with a short pause between its groups."""
    groups = re.split("[-: ]", match["code"])
    said = ", ".join(" ".join(characters(char) for char in group) for group in groups)
    return match[0].replace(match["code"], f" {said} ", 1).replace("#", " number ")


CODES = (
    rule(rf"\b(?=[\d:]*[A-Fa-f])(?P<code>{_HEX}{{2}}(?::{_HEX}{{2}}){{5}})\b", _code),  # MAC
    rule(r"(?<![\d-])(?P<code>[3-6]\d{3}([ -])\d{4}\2\d{4}\2\d{4})(?![\w-])", _code),  # card
    rule(rf"\b(?P<code>{_HEX}{{8}}(?:-{_HEX}{{4}}){{3}}-{_HEX}{{12}})(?!\w)", _code),  # UUID
    rule(
        rf"\b(?i:{_CODES}|code(?=\s?(?:is|:)))(?:\s(?:is|was|are)(?:\snow)?)?\s?[:#=]?(?:\s|(?<=#))"
        rf"{_CODE}",
        _code,
    ),
    rule(
        rf"(?<![\w.,:/$£€-]){_CODE}(?=\s(?:is|as)\s(?:(?:your|the|my|our|a|an)\s)?(?:[\w-]+\s){{0,2}}?"
        rf"(?i:{_CODES}|code)\b)",
        _code,
    ),
    rule(rf"(?i:\bending\s(?:in|with))\s(?!1\d{{3}}\b|20\d\d\b){_CODE}", _code),
    rule(
        rf"\b(?P<state>{_STATES})\s(?P<code>\d{{5}}(?:-\d{{4}})?)(?![\w,.-]*\d)",
        lambda m: " ".join(m["state"]) + _code(m).removeprefix(m["state"]),
    ),
    rule(r"\b(?=[A-Z\d]{10,}\b)(?=\w*\d[A-Z])(?=\w*[A-Z]\d)(?P<code>\w+)", _code),
    rule(
        r"\b(?:HTTP\S*\s(?:(?:status|error|code)\s)*|[Ee]rror\s)[1-5]\d\d\b(?!\s?(?:%|[ckm]?[gms]\b))|"
        r"\b[45]\d\d(?=\s(?i:errors?|not\sfound|pages?)\b)",
        _status,
    ),
    rule(
        r"\b(\d{1,3}(?:\.\d{1,3}){3}|localhost):(\d{2,5})\b",
        lambda m: f"{m[1]} port {digit_by_digit(m[2])}",
    ),
)
