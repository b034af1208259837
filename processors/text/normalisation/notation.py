"""Figures as people note them: codes, seconds, scores, recipes, prices, maps, formulas.

These rules come before all others of numbers, and leave figures to them. Each needs evidence in the
words around, since the same signs mean something else in other texts ("90s music", "Seat 14B").
"""

import re

from processors.text.normalisation import numbers, rule

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
    "A[KLRZ]|C[AOT]|D[CE]|FL|GA|HI|I[ADLN]|K[SY]|LA|M[ADEINOST]|N[CDEHJMVY]|O[HKR]|PA|RI|S[CD]|"
    "T[NX]|UT|V[AT]|W[AIVY]"
)
_CODE = r"(?P<code>(?=[\dA-Z-]{3})(?:[A-Z]{1,3}-?)?\d[\dA-Z]*(?:[- ]\d+){0,5})(?![\w%]|[.,:/]\d)"

_HEX = "[0-9A-Fa-f]"
_TIMED = "timeout|delay|limit|intervals?|breaks?|rest|pauses?|window|cooldown|video|clip|exposure"
_BEFORE_TIMES = (
    r"(?:timeout|delay|intervals?|duration|waits?|waited|waiting|took|takes|within|sleeps?|ttl)"
    r"(?:\sof|\sis|\sfor)?\s?[:=~]?\s?"
)
_END = r"(?=\s*(?:$|[.,;!?)]))"
_COUNTED = (
    "users|people|jobs|dollars|views|followers|likes|miles|copies|subscribers|fans|downloads|stars|"
    "visitors|members|words|tokens|samples|lines|customers|employees|residents|votes|points"
)
_FOODS = (
    "milk|flour|sugar|water|butter|oil|cream|rice|broth|stock|cheese|juice|nuts|oats|yogurt|honey|"
    "chopped|diced|sliced|grated|brown|white|warm|cold|hot|whole|heavy|olive|vegetable|chicken"
)
_THOUSANDS = {"k": "thousand", "K": "thousand", "M": "million"}
_NO_AMOUNT = re.compile(r"(?:version|build|release|oid|doi|ip|\bv)\s$", re.I)


def _status(match: re.Match[str]) -> str:
    """Says the digits at the end of "HTTP 404" as "four oh four", of "HTTP 500" "five hundred"."""
    before, first, rest = match[0][:-3], match[0][-3], match[0][-2:]
    end = "hundred" if rest == "00" else numbers.two_digits(rest)
    return f"{before}{numbers.digit_by_digit(first)} {end}"


def _code(match: re.Match[str]) -> str:
    """Reads the digits of a code one by one, with a short pause between its groups."""
    said = ", ".join(map(numbers.characters, re.split("[-: ]", match["code"])))
    return match[0].replace(match["code"], f" {said} ", 1).replace("#", " number ")


def _seconds(match: re.Match[str]) -> str:
    """Says "5s" as "5 seconds", and "a 5s delay" as "a 5 second delay"."""
    amount = match["amount"]
    is_one = amount == "1" or numbers.is_attribute(match.string, match.start("amount"))
    return f"{match['before']}{amount} second{'s' * (not is_one)}"


def _grouped(match: re.Match[str]) -> str:
    """Joins the groups of "1.000.000"; four groups may be an IP address, others a version."""
    groups = match[0].split(".")
    is_address = len(groups) == 4 and max(map(int, groups)) < 256 and "000" not in groups
    before = match.string[max(0, match.start() - 10) : match.start()]
    return match[0] if is_address or _NO_AMOUNT.search(before) else "".join(groups)


def _coordinate(match: re.Match[str]) -> str:
    """Says 40°26'46"N as "40 degrees, 26 minutes, 46 seconds north"."""
    amounts = zip(match.groups()[:3], ("degree", "minute", "second"), strict=True)
    parts = [f"{amount} {unit}{'s' * (amount != '1')}" for amount, unit in amounts if amount]
    names = {"N": "north", "S": "south", "E": "east", "W": "west"}
    return f"{', '.join(parts)} {names[match[4]]}"


NOTATION = (
    # codes, read digit by digit
    rule(rf"\b(?=[\d:]*[A-Fa-f])(?P<code>{_HEX}{{2}}(?::{_HEX}{{2}}){{5}})\b", _code),  # MAC
    rule(r"(?<![\d-])(?P<code>[3-6]\d{3}([ -])\d{4}\2\d{4}\2\d{4})(?![\w-])", _code),  # card
    rule(rf"\b(?P<code>{_HEX}{{8}}(?:-{_HEX}{{4}}){{3}}-{_HEX}{{12}})(?!\w)", _code),  # UUID
    rule(
        rf"\b(?i:{_CODES}|code(?=\s?(?:is|:)))(?:\s(?:is|was|are)(?:\snow)?)?\s?[:#=]?"
        rf"(?:\s|(?<=#)){_CODE}",
        _code,
    ),
    rule(
        rf"(?<![\w.,:/$£€-]){_CODE}(?=\s(?:is|as)\s(?:(?:your|the|my|our|a|an)\s)?"
        rf"(?:[\w-]+\s){{0,2}}?(?i:{_CODES}|code)\b)",
        _code,
    ),
    rule(rf"(?i:\bending\s(?:in|with))\s(?!1\d{{3}}\b|20\d\d\b){_CODE}", _code),
    rule(
        rf"\b(?P<state>{_STATES})\s(?P<code>\d{{5}}(?:-\d{{4}})?)(?![\w,.-]*\d)",
        lambda m: " ".join(m["state"]) + _code(m).removeprefix(m["state"]),
    ),
    rule(r"\b(?=[A-Z\d]{10,}\b)(?=\w*\d[A-Z])(?=\w*[A-Z]\d)(?P<code>\w+)", _code),
    rule(
        r"\b(?:HTTP\S*\s(?:(?:status|error|code)\s)*|[Ee]rror\s)[1-5]\d\d\b"
        r"(?!\s?(?:%|[ckm]?[gms]\b))|\b[45]\d\d(?=\s(?i:errors?|not\sfound|pages?)\b)",
        _status,
    ),
    rule(
        r"\b(\d{1,3}(?:\.\d{1,3}){3}|localhost):(\d{2,5})\b",
        lambda m: f"{m[1]} port {numbers.digit_by_digit(m[2])}",
    ),
    # seconds
    rule(rf"(?P<before>(?<![\w.,'$/-]))(?P<amount>\d+)s\b(?=\s(?:{_TIMED})\b)", _seconds),
    rule(rf"(?i)(?P<before>\b{_BEFORE_TIMES})(?P<amount>\d+)s\b", _seconds),
    rule(rf"(?i)(?P<before>\b(?:for|after|every|in|then)\s)(?P<amount>\d+)s{_END}", _seconds),
    rule(r"\b(1/\d+)s\b", r"\1 second"),  # of an exposure
    # amounts
    rule(rf"(?<=\d)([kKM])(?=\s(?:{_COUNTED})\b)", lambda m: f" {_THOUSANDS[m[1]]}"),
    rule(r"(?<![\w.,])\d{1,3}(?:\.\d{3}){2,3}(?![\w,]|\.\d)", _grouped),  # of Europe
    rule(r"(?<=\d)'(?=\d{3}\b)", ""),  # of Switzerland
    rule(rf"(?<![\d.,])([1-9]\d{{0,2}}) (\d{{3}})(?=\s?[€£]|\s(?:{_COUNTED})\b)", r"\1\2"),
    rule(r"(?<!Mr\. )(?<!\d )\bRs\.?\s?(?=\d)", "₹"),
    rule(r"(?<![\w$])([$£€])-(?=\d)", r"-\1"),
    rule(
        r"\b(\d{1,3})°\s?(\d{1,2})['′]\s?(?:(\d{1,2}(?:\.\d+)?)[\"″]\s?)?([NSEW])\b",
        _coordinate,
    ),
    rule(r"\b1:(?=\d{1,3}(?:,\d{3})+\b|\d{3,}\b)", "1 to "),  # of a map
    rule(r"\bFY\s?(?=(?:20)?\d\d\b)", "fiscal year "),
    rule(r"(?<=\bQ[1-4])'(?=\d\d\b)", " "),
    rule(r"(?<=\b7\d7)-(?=[1-9]00\b)", " "),  # of Boeing
    rule(r"(?<=\b[Mm]y )#(?=\s)|(?<=\byour )#(?=\s)|(?<=\bphone )#(?=\s)", "number"),
    rule(r"\b([Tt])emp\.\s?(?=[−-]?\s?\d)", r"\1emperature "),
    # recipes, doses, temperatures, voltages
    rule(
        rf"(?<![\w./])({numbers.QUANTITIES})\sc\.(?=\s(?:of\s)?(?:{_FOODS})\b)",
        lambda m: f"{m[1]} cup{'s' * (m[1] not in ('1', '1/2', '1/3', '1/4', '3/4'))}",
    ),
    rule(r"(?<![\d/-])(\d{1,2})-([1-9]/(?:[2348]|16))\b(?!/)", r"\1 \2"),  # 1-1/2 cups
    rule(r"(?<=\d)x\s(?=\d+\s?(?:mg|mcg|ml|g|kg)\b)", " times "),
    rule(r"(?<=\d[CF])/(?=\d+[CF]\b|gas\b)|(?<=\d[VAW])/(?=\d+\s?(?:Hz|[VAW])\b)", ", "),
    rule(
        r"\b((?i:BP|blood\spressure)(?:\s(?:of|is|was|at))*:?\s[12]?\d\d)/(?=\d\d\d?\b)",
        r"\1 over ",
    ),
    # scores
    rule(r"\b(\d+)/(\d+)(?=\s\(\d+(?:\.\d+)?\s?%\))", r"\1 of \2"),
    rule(
        r"((?i:\b(?:rat(?:ed|ings?)|scored?|ranked|graded?)):?"
        r"(?:\s(?:it|an?|of|is|was|him|her|them))*\s)(\d+(?:\.\d+)?)/(5|10|20|100)\b"
        r"(?!\s(?:of|(?!stars\b)[a-z]+s)\b)",
        r"\1\2 out of \3",
    ),
    # formulas: powers over something, differences of numbers and letters, factorials
    rule(r"(?<=\^\d)/(?=\w)|(?<=\b1)/(?=[a-z]\b)", " over "),
    rule(r"(?<![A-Za-z]{2})(?<=[\w)])\s-\s(?=(?:\d|[b-z]\b|\()[\w^(+*/ ]{0,30}=)", " minus "),
    rule(
        r"(=\s?[\w^.()+*/]{1,12}(?:\s[+*/]\s[\w^.()]{1,12}){0,4})\s-\s(?=\d|[b-z]\b|\()",
        r"\1 minus ",
    ),
    rule(r"(?<=\w)!(?=\s?=\s)", " factorial"),
    rule(r"(?<=\d)\s?[x×]\s?(?=10\^)", " times "),
)
