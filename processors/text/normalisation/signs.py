"""Signs that are read aloud, and the remaining punctuation."""

import re

from processors.text.normalisation.rules import rule

_SAID = {
    "&": "and", "@": "at", "+": "plus", "=": "equals", "±": "plus or minus", "÷": "divided by",
    "×": "times", "<": "less than", ">": "greater than", "≤": "less than or equal to",
    "≥": "greater than or equal to", "≠": "is not equal to", "≈": "approximately", "√": "root",
    "∞": "infinity", "%": "percent", "°": "degrees", "§": "section", "©": "copyright",
    "€": "euros", "£": "pounds", "$": "dollars", "¥": "yen", "¢": "cents", "#": "hash",
    "^": "to the power of", "/": "slash", "\\": "backslash", "μ": "mu", "Ω": "ohm",
    "‰": "per mille",
    "₹": "rupees", "₽": "rubles", "₩": "won", "∙": "times", "−": "minus",
}  # fmt: skip
_MARKUP = "~`*|_"  # read as words by some rules, otherwise without meaning
_SIGN = re.compile("[" + re.escape("".join(_SAID)) + "]")
_CLUSTER = re.compile(r"\s*[,.;:?!](?:[\s,.;:?!]*[,.;:?!])?")
_STRENGTH = ",:;.!?"
_ELIDED = "em|tis|twas|cause|til|bout|round|n|kay|course|cuse|gain|frisco"

SHARPS = (rule(r"(?<!\w)([A-G])#(?![A-Za-z])", r"\1 sharp ", re.I),)  # C#, a note or a language
BEFORE_NUMBERS = (
    rule(r"#\s?(?=\d)", " number "),
    rule(r"\bNo\s(?=\d)", "number "),
    rule(r"~\s?(?=[\d$£€])", "about "),
    rule(r"±\s?(?=[\d])", "plus or minus "),
    rule(r"§§?\s?(?=\d)", "section "),
    rule(r"(?<=\d)\s?\+(?=\s|$|[,.;!?])", " plus"),
    rule(r"(?<=\d)\s-\s(?=\d+\s*=)", " minus "),
    rule(r"(?<=\d)\s?\*\s?(?=\d)", " times "),
    rule(r"(?<=\d)\s×\s(?=\d+\s*=)", " times "),
    rule(
        r"(?<=\d)(?<!\b0)\s?[x×]\s?(?=\d)|(?<=\b0)(?:\s[x×]\s?|×)(?=\d)|(?<=[\da-z])\s[x×]\s(?=\d)",
        " by ",
    ),
    rule(r"(?<![\d.,])\d{1,3}(?: \d{3}){2,}(?![\d.,]\d)", lambda m: m[0].replace(" ", "")),
    rule(r"(?<![\d.,])(\d{1,3}) 000(?!\d| \d)", r"\g<1>000"),
)
_PUNCTUATION = (
    rule(r"[\"*_`~|•·<>{}\\]+(?=\s|$)|(?:(?<=\s)|^)[\"*_`~|•·]+", " "),
    rule(r"[\"*_`~•·]", " "),
    rule(r"[()\[\]]", ", "),
    rule(r"(?<=[a-z]):(?=[a-z])", " "),
    rule(r"\s*(?:[–—―‒]|--+)\s*|\s-+\s|(?<=\w)-+\s(?=\w)", ", "),
    rule(r"(?<!\w)-+|-+(?!\w)", " "),
    rule(rf"(?<!\w)'+(?!(?:{_ELIDED})\b)", " ", re.I),
    rule(r"(?<![sSnN])'+(?!\w)|'{2,}", " "),
    rule(r"\.{2,}(?=[\s\"')\]]*\S)", ", "),
)


def say_signs(text: str) -> str:
    """Replaces signs by their names; those without one (`has_name`) are removed later."""
    if not _PLAIN.fullmatch(text):
        text = _SIGN.sub(lambda match: f" {_SAID[match[0]]} ", text)
    return text


def has_name(sign: str) -> bool:
    """Whether a sign is read as a word, or is markup; emoji and arrows are neither."""
    return sign in _SAID or sign in _MARKUP


_PLAIN = re.compile(r"[A-Za-z0-9\s,.;:?!'-]*")


def tidy_punctuation(text: str) -> str:
    """Keeps only words, apostrophes, hyphens and single marks `, . ; : ? !`.

    Quotes are removed; brackets, dashes and dots inside a sentence become commas; of several marks
    in a row the strongest is kept.
    """
    for pattern, say in _PUNCTUATION:
        text = pattern.sub(say, text)
    text = "".join(char if _PLAIN.fullmatch(char) else " " for char in text)
    text = _CLUSTER.sub(lambda match: max(match[0], key=_STRENGTH.find) + " ", text)
    return " ".join(text.lstrip(" ,.;:?!").split())
