"""Pronunciations as people write them, IPA, ARPAbet and respellings, and dictionaries of them."""

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Literal, NamedTuple

from processors.text.espeak import is_ipa
from processors.text.g2p import WITHOUT_SPACE, Phones, is_arpabet, lookup, pronounce, with_s
from processors.text.letters import is_letter
from processors.text.normalisation import alternatives
from processors.text.symbols import ARPABET_OF_IPA, to_arpabet
from processors.text.voice_phones import PhoneSet, is_vowel
from utils.errors import InputError, control_characters
from utils.files import read_text

ALPHABETS = ("ipa", "arpabet")
Alphabet = Literal["ipa", "arpabet", "letters"]  # of a voice
_STRESSES = "ˈˌ"
_TIE = "\u0361"
_phone_set = lru_cache(8)(PhoneSet)

_VARIANT = re.compile(r"(?<=\S)\(\d+\)$")  # as in CMUdict
_UNIT = re.compile(r"\{[^{}]*\}|[^\W_]+|\S")  # phones, the letters and digits of a word, a sign
_POSSESSIVE = re.compile(r"['’][sS](?!\w)")
_BEFORE = re.compile(r"(?<!\w)(?<!\w['’])")
_AFTER = re.compile(r"(?=['’][sS](?!\w))|(?!['’]?\w)")
_RESPELLED = re.compile(r"\{[^{}]*\}|(?<![\w-])[^\W\d_]+(?:-[^\W\d_]+)+(?![\w-])")

_VOWELS = {  # sounds of the letters of a syllable of a respelling
    "a": "AE", "ah": "AA", "air": "EH R", "ar": "AA R", "aw": "AO", "awr": "AO R", "ay": "EY",
    "e": "EH", "ee": "IY", "eer": "IH R", "eh": "EH", "er": "ER", "eye": "AY", "i": "IH",
    "igh": "AY", "ih": "IH", "ir": "ER", "o": "AA", "oh": "OW", "ohr": "AO R", "oo": "UW",
    "oor": "UH R", "or": "AO R", "ow": "AW", "oy": "OY", "u": "AH", "uh": "AH", "ur": "ER",
    "uu": "UH", "y": "AY", "ye": "AY",
}  # fmt: skip
_LONG = {"a": "AA", "e": "IY", "i": "IY", "o": "OW", "u": "UW"}  # at the end of a syllable
_CONSONANTS = {
    "b": "B", "c": "K", "ch": "CH", "ck": "K", "d": "D", "dh": "DH", "f": "F", "g": "G", "gh": "G",
    "h": "HH", "j": "JH", "k": "K", "kh": "K", "l": "L", "m": "M", "n": "N", "ng": "NG", "p": "P",
    "ph": "F", "r": "R", "s": "S", "sh": "SH", "ss": "S", "t": "T", "th": "TH", "v": "V", "w": "W",
    "wh": "W", "x": "K S", "y": "Y", "z": "Z", "zh": "ZH",
}  # fmt: skip
_LONGEST_SYLLABLE = 12  # letters; of "shsh..." the pattern tries all divisions
_CONSONANT = re.compile(rf"(?!ye\b)(?:{alternatives(_CONSONANTS)})")
_SYLLABLE = re.compile(
    rf"((?:{_CONSONANT.pattern})*)({alternatives(_VOWELS)})((?:{_CONSONANT.pattern})*)"
)


class Entry(NamedTuple):
    """How a word, or several, are said."""

    word: str
    said: str  # text, in which braces hold phones
    place: str  # in the user's file, for messages
    keeps_case: bool  # capitals stand for capitals only


class Dictionary:
    """Entries of a user, found in texts: the longest first, and one in the case of the text.

    An entry matches any case, except one in capitals that keeps its case, or that the dictionary
    has in another case too. Of two entries for one word the first counts.
    """

    def __init__(self, entries: Iterable[Entry]) -> None:
        self.entries: dict[str, Entry] = {}
        for entry in entries:
            self.entries.setdefault(entry.word, entry)
        forms = Counter(word.lower() for word in self.entries)
        self._in_any_case: dict[str, Entry] = {}
        self._n_units: dict[str, set[int]] = {}  # of entries, by the first
        for word, entry in self.entries.items():
            if not (word.isupper() and (entry.keeps_case or forms[word.lower()] > 1)):
                self._in_any_case.setdefault(word.lower(), entry)
            units = _UNIT.findall(word.lower())
            self._n_units.setdefault(units[0], set()).add(len(units))

    @property
    def facts(self) -> list[tuple[str, str, bool]]:
        """What speech depends on."""
        return sorted((e.word, e.said, e.keeps_case) for e in self.entries.values())

    def check(self, voice: "Transcriber") -> None:
        """Makes sure that a voice can read all entries."""
        for entry in self.entries.values():
            voice.written(entry, entry.word)

    def merged(self, other: "Dictionary | None") -> "Dictionary":
        """Returns the entries of both; those of this one come first."""
        rest = () if other is None else other.entries.values()
        return Dictionary([*self.entries.values(), *rest]) if rest else self

    def spoken(self, text: str, voice: "Transcriber") -> str:
        """Writes a text with what is said for its words, phones in braces."""
        pieces = [""]
        for entry, part, ending in self.parts(text):
            piece = voice.written(entry, " ".join(part.split()), ending) if entry else part
            between = pieces[-1][-1:].isalnum() and piece[:1].isalnum()  # of an entry of a sign
            pieces += (" " * between, piece)
        return "".join(pieces)

    def parts(self, text: str) -> Iterator[tuple[Entry | None, str, str]]:
        """Yields what has an entry, with the entry and an ending 's, and the text between."""
        text = unicodedata.normalize("NFC", text)
        units = [*_UNIT.finditer(text)]
        end = 0
        for i, unit in enumerate(units):
            if (start := unit.start()) < end:
                continue
            for n in sorted(self._n_units.get(unit[0].lower(), ()), reverse=True):
                stop = units[min(i + n, len(units)) - 1].end()
                word = " ".join(text[start:stop].split()).replace("’", "'")
                entry = self.entries.get(word) or self._in_any_case.get(word.lower())
                begins = not text[start].isalnum() or _BEFORE.match(text, start)  # as words do
                if entry and begins and (not text[stop - 1].isalnum() or _AFTER.match(text, stop)):
                    ending = _POSSESSIVE.match(text, stop)
                    yield None, text[end:start], ""
                    yield entry, text[start:stop], ending[0] if ending else ""
                    end = ending.end() if ending else stop
                    break
        yield None, text[end:], ""


Lexicon = Dictionary | Mapping[str, str] | str | Path | None


def read_dictionary(path: Path) -> Dictionary:
    """Reads lines of `WORD  PH1 PH2` or `WORD = as it is said`.

    Several words have two spaces, a tab or "=" behind them. `#` and `;;;` start comment lines; `#`
    also follows phones.
    """
    entries = []
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        word, equals, said = line.strip().partition("=")
        if not line.strip() or word.startswith(("#", ";;;")):
            continue
        if not equals:
            parts = re.split(r"\t|  +", word, maxsplit=1)
            word, phones = (*(parts if len(parts) > 1 else word.split(" ", 1)), "")[:2]
            phones = phones.partition("#")[0].strip()
            said = "" if WITHOUT_SPACE.search(word.strip()) else phones and f"{{{phones}}}"
        place, word = f"{path}:{number}", _VARIANT.sub("", word.strip())
        entries.append(_entry(word, said.strip(), place, keeps_case=bool(equals)))
    return Dictionary(entries)


def dictionary_of(given: Lexicon) -> Dictionary | None:
    """Reads a dictionary of words and how they are said, or its file."""
    if given is None or isinstance(given, Dictionary):
        return given
    if isinstance(given, str | Path):
        return read_dictionary(Path(given))
    if isinstance(given, Mapping):
        return Dictionary(_entry(*row, "lexicon", keeps_case=True) for row in given.items())
    raise InputError(f"lexicon is {given!r}; expected a file, or words and how they are said")


def _entry(word: str, said: str, place: str, *, keeps_case: bool) -> Entry:
    are_texts = isinstance(word, str) and isinstance(said, str) and word.strip()
    if (
        not are_texts
        or not any(map(str.isalnum, said))
        or re.search("[{}|]", word)
        or control_characters(word + said)
    ):
        expected = "`WORD  PH1 PH2`, or `WORD = nuh-VAD-uh`, other words, or {PH1 PH2}"
        fault = f"{str(word)[:40]!r} has no pronunciation, or is no word"
        raise InputError(f"{place}: {fault}; expected {expected}")
    if all(map(is_arpabet, said.split())) and re.search(r"\d", said):
        said = f"{{{said}}}"
    if re.search(r"[{}]", re.sub(r"\{[^{}]+\}", "", said)):
        raise InputError(f"{place}: {word!r}: braces hold phones, as in {{HH AH0 L OW1}}")
    word = " ".join(unicodedata.normalize("NFC", word).replace("’", "'").split())
    return Entry(word, said, place, keeps_case)


@dataclass(frozen=True)
class Transcriber:
    """Writes pronunciations as a voice reads them."""

    alphabet: Alphabet
    is_english: bool
    known_phones: frozenset[str]

    def written(self, entry: Entry, shown: str, ending: str = "") -> str:
        """Returns what is said, with phones in braces; there, `|shown` names the word.

        Args:
            ending: 's, or nothing.
        """
        try:
            if _RESPELLED.fullmatch(entry.said) and (phones := self._phones(entry.said)):
                return f"{{{' '.join(self._with_s(phones) if ending else phones)}|{shown}{ending}}}"
            return _RESPELLED.sub(self._part, entry.said) + ending
        except InputError as error:
            line = f"{entry.word!r} = {entry.said[:40]!r}"
            raise InputError(f"{entry.place}: {line}: {error}") from error

    def _part(self, part: re.Match[str]) -> str:
        if phones := self._phones(part[0]):
            return f"{{{' '.join(phones)}}}"
        return part[0].replace("-", "").lower() if _is_respelled(part[0]) else part[0]

    def _phones(self, part: str) -> Phones:
        """Returns the phones of braces or of a respelling; none for other words."""
        if part.startswith("{"):
            return self._transcribed(part[1:-1])
        if not _is_respelled(part):
            return ()
        if self.alphabet == "letters":
            return tuple(part.replace("-", "").lower())
        syllables = part.split("-") if self.is_english else ()
        arpabet = [phone for syllable in syllables for phone in _sounds(syllable)]
        return self._transcribed(" ".join(arpabet)) if arpabet else ()

    def _transcribed(self, written: str) -> Phones:
        """Converts IPA or ARPAbet."""
        phones: Phones = tuple(written.split())
        in_ipa = self.alphabet == "ipa"
        if self.alphabet == "letters":
            if wrong := [phone for phone in phones if not is_letter(phone)]:
                raise InputError(f"{wrong[0]!r} is no letter, and this voice reads letters")
        elif not (in_ipa and self.known_phones.issuperset(phones)):
            alphabet = "arpabet" if written.isupper() else "ipa"
            phones = phones_of(written, alphabet, in_ipa=in_ipa, known=self.known_phones)
            if wrong := [phone for phone in phones if in_ipa and not is_ipa(phone)]:
                raise InputError(f"{wrong[0]!r} is no phone of IPA")
        return phones

    def _with_s(self, phones: Phones) -> Phones:
        """Adds the ending 's."""
        if self.alphabet == "letters":
            return (*phones, "'", "s")
        *_, last = ARPABET_OF_IPA.get(phones[-1], phones[-1:])
        return (*phones, *self._transcribed(" ".join(with_s((last,))[1:])))


def _is_respelled(part: str) -> bool:
    """Returns whether a word has hyphens, and syllables in capitals and in small letters."""
    return {syllable.isupper() for syllable in part.split("-")} == {True, False}


def _sounds(syllable: str) -> list[str]:
    """Returns the ARPAbet of a syllable of a respelling, with stress if it is in capitals."""
    lower = syllable.lower()
    if match := len(syllable) <= _LONGEST_SYLLABLE and _SYLLABLE.fullmatch(lower):
        onset, vowel, coda = match.groups()
        sound = _VOWELS[vowel] if coda else _LONG.get(vowel, _VOWELS[vowel])
        if vowel == "a" and not coda and lower == syllable:
            sound = "AH"
        before, after = ([_CONSONANTS[c] for c in _CONSONANT.findall(s)] for s in (onset, coda))
        phones = " ".join([*before, sound, *after]).split()
    elif not (phones := [*(lookup(lower) or pronounce(lower) or ())]):
        raise InputError(f"{syllable[:20]!r} has no sound of English; write phones in braces")
    stress = "1" if syllable.isupper() else "0"
    return [f"{p.rstrip('012')}{stress}" if is_vowel(p) else p for p in phones]


def phones_of(pronunciation: str, alphabet: str, *, in_ipa: bool, known: Collection[str]) -> Phones:
    """Reads phones of a voice, IPA or ARPAbet (with spaces), of an alphabet."""
    if alphabet.removeprefix("x-") not in ALPHABETS:
        raise InputError(f"alphabet: {alphabet[:40]!r}; expected {', '.join(ALPHABETS)}")
    if alphabet != "ipa":
        phones = tuple(pronunciation.split())
        wrong = [phone[:10] for phone in phones if not is_arpabet(phone)]
        if wrong or not phones:
            raise InputError(f"no phone of ARPAbet: {' '.join(wrong) or 'nothing is there'}")
        if not in_ipa:
            return phones
        nearest = _phone_set(frozenset(known)).nearest
        return tuple(chain(*(nearest("ə" if phone == "AH0" else phone) for phone in phones)))
    symbols = {phone.lstrip(_STRESSES) for phone in (known if in_ipa else ARPABET_OF_IPA)}
    ipa_phones = _split(unicodedata.normalize("NFC", pronunciation.replace(_TIE, "")), symbols)
    if (spoken := ipa_phones if in_ipa else to_arpabet(ipa_phones)) is None:
        wrong = [phone for phone in ipa_phones if phone not in ARPABET_OF_IPA]
        raise InputError(f"no sound of English: {' '.join(wrong) or 'no phone'}")
    return spoken


def _split(text: str, symbols: Collection[str]) -> Phones:
    """Splits a transcription into the longest symbols; other letters take their marks with them.

    Stress moves from the start of a syllable to its vowel.
    """
    longest = max(map(len, symbols), default=1)
    phones: list[str] = []
    stress = ""
    place = 0
    while place < len(text):
        n = next((n for n in range(longest, 0, -1) if text[place : place + n] in symbols), 1)
        symbol, place = text[place : place + n], place + n
        is_mark = n == 1 and unicodedata.category(symbol) in ("Mn", "Lm", "Sk")
        if symbol in _STRESSES:
            stress = symbol
        elif is_mark and symbol not in symbols and phones:
            phones[-1] += symbol
        elif stress and is_vowel(symbol):
            phones.append(stress + symbol)
            stress = ""
        elif symbol not in " .‿|":  # boundaries of syllables
            phones.append(symbol)
    return tuple(phones)
