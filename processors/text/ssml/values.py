"""Values of the attributes of SSML, `say-as` in words by what it means, `phoneme` as phones."""

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Sequence

from processors.text.clauses import Prosody
from processors.text.g2p import is_arpabet
from processors.text.nearest_phones import PhoneSet, is_vowel
from processors.text.normalisation.dates import DATES, MONTHS, NAMES, TIMES
from processors.text.normalisation.english import apply, say_signs
from processors.text.normalisation.numbers import DIGITS, number, ordinal, year
from processors.text.normalisation.quantities import PRICES
from processors.text.symbols import ARPABET_OF_IPA, to_arpabet

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
_MARKS = {".": "dot", ",": "comma", "-": "dash", "_": "underscore", ":": "colon", ";": "semicolon",
          "!": "exclamation mark", "?": "question mark", "'": "apostrophe", '"': "quote",
          "(": "open bracket", ")": "close bracket", "*": "star", "|": "bar"}  # fmt: skip
ALPHABETS = ("ipa", "arpabet")
_STRESSES = "ˈˌ"
_IGNORED = " .‿|"  # boundaries of syllables
_TIE = "\u0361"


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


def say_as(kind: str, text: str, format: str, *, in_english: bool) -> str:
    """The words of a text of one of KINDS; the format of a date is the order of its parts ("dmy").

    Other languages than English have characters, digits, telephone and cardinal, whose figures the
    front end reads.
    """
    if kind not in KINDS:
        raise ValueError(f"{kind[:40]!r}; expected {', '.join(KINDS)}")
    if format and kind != "date":
        raise ValueError(f"{kind} has no format")
    if kind == "date":
        spoken = _date(text, format) if in_english else None
    elif in_english:
        spoken = _ENGLISH[kind](text)
    elif kind in _ANY_LANGUAGE:
        spoken = _ANY_LANGUAGE[kind](text)
    else:
        raise ValueError(f"{kind} is for English only; write it in words")
    if not spoken:
        raise ValueError(f"{text[:40]!r} is no {kind}{f' {format}' if format else ''}")
    return spoken[0].upper() + spoken[1:]  # a sentence may begin here


def _spaced(text: str) -> str:
    return " ".join(char for char in text.upper() if not char.isspace())


def _characters(text: str) -> str:
    said = (f" {_MARKS[char]} " if char in _MARKS else char for char in _spaced(text))
    words = say_signs("".join(said)).split()
    return " ".join(["Ay", *words[1:]] if words[:1] == ["A"] else words)  # not the article


def _digits(text: str) -> str:
    is_digits = re.fullmatch(r"[\d\s.,/-]*\d[\d\s.,/-]*", text, re.ASCII)
    return " ".join(char for char in text if char.isdigit()) if is_digits else ""


def _telephone(text: str) -> str:
    """Digits in groups, with a pause between them."""
    if not re.fullmatch(r"\s*\+?[\d\s().,/-]*\d[\d\s().,/-]*", text, re.ASCII):
        return ""
    groups = [" ".join(group) for group in re.findall(r"\d+", text)]
    return ("+ " if "+" in text else "") + ", ".join(groups)


def _figures(text: str) -> str:
    """A number without the commas between thousands."""
    match = re.fullmatch(r"\s*(-?)0*(\d[\d,]*(?:\.\d+)?)\s*", text, re.ASCII)
    return match[1] + match[2].replace(",", "") if match else ""


def _in_words(figures: Callable[[str], str]) -> Callable[[str], str]:
    """English words for single digits with signs and pauses between them."""
    return lambda text: re.sub(r"\d", lambda m: DIGITS[int(m[0])], figures(text)).replace(
        "+", "plus"
    )


def _ordinal(text: str) -> str:
    match = re.fullmatch(r"\s*(\d[\d,]*)(?:st|nd|rd|th)?\s*", text, re.ASCII)
    return ordinal(match[1]) if match else ""


def _by_rules(rules: tuple) -> Callable[[str], str]:
    """Text that these rules of the normaliser put into words, without anything left."""

    def say(text: str) -> str:
        spoken: str = apply(rules, text.strip())
        return "" if re.search(r"\d|[$£€¥]", spoken) or spoken == text.strip() else spoken

    return say


def _date(text: str, format: str) -> str:
    if not format:
        return _by_rules((*DATES, *NAMES))(text)
    figures = re.findall(r"[0-9]{1,4}", text)
    wrong = sorted(format) not in [sorted(known) for known in ("dmy", "dm", "my", "d", "m", "y")]
    if wrong or len(figures) != len(format) or re.search(r"[^0-9\s./-]", text):
        return ""
    parts = dict(zip(format, figures, strict=True))
    day, month = int(parts.get("d", 1)), int(parts.get("m", 1))
    if not (1 <= day <= 31 and 1 <= month <= 12 and len(parts.get("y", "1")) <= 4):
        return ""
    spoken = [MONTHS[month - 1]] if "m" in parts else []
    spoken += [ordinal(str(day))] if "d" in parts else []
    head = " ".join(spoken)
    return ", ".join(filter(None, [head, year(parts["y"]) if "y" in parts else ""]))


_ENGLISH = {
    "characters": _in_words(_characters),
    "digits": _in_words(_digits),
    "telephone": _in_words(_telephone),
    "cardinal": lambda text: number(figures) if (figures := _figures(text)) else "",
    "ordinal": _ordinal,
    "time": _by_rules(TIMES),
    "currency": _by_rules(PRICES),
}
_ANY_LANGUAGE = {
    "characters": _spaced,
    "digits": _digits,
    "telephone": _telephone,
    "cardinal": _figures,
}
KINDS = (*_ENGLISH, "date")


def phones_of(
    pronunciation: str, alphabet: str, *, in_ipa: bool, known: Collection[str]
) -> tuple[str, ...]:
    """Phones of a voice, IPA or ARPAbet (with spaces), from a pronunciation in an alphabet."""
    if alphabet.removeprefix("x-") not in ALPHABETS:
        raise ValueError(f"alphabet {alphabet[:40]!r}; expected {' or '.join(ALPHABETS)}")
    if alphabet != "ipa":
        return _from_arpabet(pronunciation.split(), in_ipa=in_ipa, known=known)
    plain = unicodedata.normalize("NFC", pronunciation.replace(_TIE, ""))
    symbols = {phone.lstrip(_STRESSES) for phone in (known if in_ipa else ARPABET_OF_IPA)}
    phones = _stressed(_segments(plain, symbols))
    if in_ipa:
        return phones
    spoken = to_arpabet(phones)
    if spoken is None:
        wrong = [phone for phone in phones if phone not in ARPABET_OF_IPA]
        raise ValueError(f"no sound of English: {' '.join(wrong) or 'no phone'}")
    return spoken


def _from_arpabet(
    phones: Sequence[str], *, in_ipa: bool, known: Collection[str]
) -> tuple[str, ...]:
    wrong = [phone[:10] for phone in phones if not is_arpabet(phone)]
    if wrong or not phones:
        raise ValueError(f"no phone of ARPAbet: {' '.join(wrong) or 'nothing is there'}")
    if not in_ipa:
        return tuple(phones)
    voice = PhoneSet(known)
    ipa = ("ə" if phone == "AH0" else phone for phone in phones)
    return tuple(near for phone in ipa for near in voice.nearest(phone))


def _segments(text: str, symbols: Collection[str]) -> list[str]:
    """Splits a transcription into the longest symbols; other letters take their marks with them."""
    longest = max(map(len, symbols), default=1)
    segments: list[str] = []
    place = 0
    while place < len(text):
        char = text[place]
        length = next((n for n in range(longest, 0, -1) if text[place : place + n] in symbols), 1)
        is_mark = length == 1 and unicodedata.category(char) in ("Mn", "Lm", "Sk")
        if char in _IGNORED:
            pass
        elif is_mark and char not in _STRESSES and segments and char not in symbols:
            segments[-1] += char
        else:
            segments.append(text[place : place + length])
        place += length
    return segments


def _stressed(segments: Sequence[str]) -> tuple[str, ...]:
    """Moves stress from the start of a syllable to its vowel."""
    phones: list[str] = []
    stress = ""
    for segment in segments:
        if segment in _STRESSES:
            stress = segment
        elif stress and is_vowel(segment):
            phones.append(stress + segment)
            stress = ""
        else:
            phones.append(segment)
    return tuple(phones)
