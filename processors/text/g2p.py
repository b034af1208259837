"""English words to ARPAbet: user lexicon, CMUdict, suffix rules, letter-to-sound, spelling.

The first source that has the word is used; words without a vowel are spelt. All but lexicon words
are reported as outside the vocabulary. The words around a homograph choose its pronunciation.

`data/cmudict.txt` is CMUdict (Carnegie Mellon University, BSD 2-clause, licence in the same folder)
without its comments, one `word PH1 PH2` line per pronunciation, sorted by bytes. A space sorts
before every character of a word, so binary search in the mapped file takes about 18 steps.
Nothing is parsed at start-up (parsing takes 0.7 s), and processes share the pages.
"""

import mmap
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from processors.text.letter_network import LetterNetwork, phones_of
from processors.text.symbols import ARPABET, with_primary_stress
from utils.errors import InputError

CMUDICT_PATH = Path(__file__).with_name("data") / "cmudict.txt"
LETTERS = "'abcdefghijklmnopqrstuvwxyz"
_VOWELS = frozenset("aeiouy")
_ARPABET = frozenset(ARPABET)
_VOICELESS = ("P", "T", "K", "F", "TH")
Phones = tuple[str, ...]

# Homographs by the numbers of CMUdict's pronunciations: of the noun or adjective, of the verb, and
# where the words around decide nothing. Forms in "s" follow.
_HOMOGRAPHS = {
    word: tuple(map(int, numbers))
    for numbers, words in {
        "121": "abuse address advocate alternate animate approximate associate attribute close"
        " compound conduct conflict contract contrast convict coordinate deliberate desert"
        " duplicate elaborate estimate excuse extract graduate moderate object present progress"
        " project protest rebel use",
        "122": "combine live",
        "211": "decrease digest discount escort impact import increase insert insult lives permit"
        " survey suspect tear transfer transport update",
        "212": "delegate perfect record subject tears wind wound",
        "221": "read",
        "222": "bass lead sow",
        "313": "separate",
    }.items()
    for word in words.split()
}
_BEFORE_NOUN = re.compile(
    "an?|the|my|your|his|her|its|our|their|no|any|some|each|every|another|of|in|with"
)
_BEFORE_VERB = re.compile(
    "to|will|would|can|could|shall|should|may|might|must|cannot|do|does|did|not|please|let's|"
    "never|always|(?:ca|could|wo|would|should|must|do|does|did)n't|(?:i|you|s?he|it|we|they)'(?:ll|d)"
)
_SUBJECT = re.compile("i|you|we|they|who")
_SUBJECT_OF_S = re.compile("s?he|it|who|which|never|always")
_AFTER_IMPERATIVE = re.compile(
    "an?|the|this|that|these|those|my|your|his|her|its|our|all|me|us|it|them|him"
)
_AFTER_LIVE = re.compile(
    "music|shows?|concerts?|broadcasts?|coverage|performances?|audience|stream(?:s|ing)?|video|"
    "television|events?|recordings?"
)


class Pronunciation(NamedTuple):
    """The pronunciation of a word."""

    phones: Phones  # or letters
    in_lexicon: bool  # False: from a rule
    instead: Phones = ()  # phones that can be said instead of the letters
    is_joined: bool = False  # with the word before, as one


_LETTER_A = Pronunciation(("EY1",), in_lexicon=True)  # CMUdict has the article first


@cache
def _mapped_cmudict() -> mmap.mmap:
    with CMUDICT_PATH.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


@lru_cache(maxsize=65536)
def lookup(word: str) -> tuple[str, ...] | None:
    """Looks up CMUdict's first pronunciation of a word, ARPAbet with stress; None: unknown.

    Case is ignored; apostrophes, hyphens and full stops count ("o'clock", "a.m.").
    """
    key = f"{word.lower()} ".encode()
    lines = _mapped_cmudict()
    low, high = 0, len(lines)  # line starts; the answer's start lies in [low, high]
    while low < high:
        start = lines.rfind(b"\n", low, (low + high) // 2) + 1 or low
        end = lines.find(b"\n", start)
        if lines[start:end] < key:
            low = end + 1
        else:
            high = start
    if lines[low : low + len(key)] != key:
        return None
    return tuple(lines[low + len(key) : lines.find(b"\n", low)].decode().split())


def has_variants(word: str) -> bool:
    """Returns whether CMUdict has several pronunciations of a word, as of "read"."""
    return lookup(f"{word}(2)") is not None


def letter_name(letter: str) -> tuple[str, ...] | None:
    """Returns the name of a letter a to z in ARPAbet; None for any other character."""
    if letter in "aA":
        return _LETTER_A.phones
    return lookup(letter) if letter.isalpha() else None


# A word of a lexicon that runs into its phones (`foo,F UW1`) or ends in a mark (`foo: F UW1`)
WITHOUT_SPACE = re.compile(r"""[^\W\d]"?[,;:>](?! )|"$""")


def read_lexicon(path: Path, is_phone: Callable[[str], bool]) -> dict[str, tuple[str, ...]]:
    """Reads a user lexicon, `WORD  PH1 PH2` lines: phones by lower-case word.

    `#` and `;;;` start comment lines. Of several lines for one word (`WORD` or `WORD(2)`) the first
    is used.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot read the lexicon ({error}); check lexicon_path") from None
    pronunciations: dict[str, tuple[str, ...]] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith(("#", ";;;")):
            continue
        word, *phones = line.split()
        wrong = ["a mark where a space follows"] if WITHOUT_SPACE.search(word) else []
        wrong += [f"the unknown phone '{phone}'" for phone in phones if not is_phone(phone)]
        if wrong or not phones:
            fault = wrong[0] if wrong else "no phones"
            usage = "`WORD  PH1 PH2`, ARPAbet such as AH0 for the backend lexicon, IPA for espeak"
            raise InputError(f"{path}:{number}: '{word}' has {fault}; expected {usage}")
        pronunciations.setdefault(word.lower().partition("(")[0] or word.lower(), tuple(phones))
    return pronunciations


def pronounce(word: str, network: LetterNetwork | None = None) -> tuple[str, ...] | None:
    """Predicts ARPAbet of a word, by default by the bundled network; accents and case are ignored.

    None without a vowel, or with characters other than letters and "'".
    """
    decomposed = unicodedata.normalize("NFD", word.lower())
    letters = "".join(sign for sign in decomposed if not unicodedata.combining(sign))
    if not set(letters) <= set(LETTERS) or not _VOWELS & set(letters):
        return None
    return tuple(phones_of([LETTERS.index(letter) for letter in letters], network)) or None


def is_arpabet(symbol: str) -> bool:
    """Returns whether a symbol is an ARPAbet phone, vowels with or without a stress digit."""
    return symbol in _ARPABET


class LexiconPhonemizer:
    """ARPAbet pronunciations of English words."""

    def __init__(self, user_lexicon: Mapping[str, Phones] | None = None) -> None:
        self._user_lexicon = dict(user_lexicon or {})
        self._spoken: dict[str, Pronunciation] = {}

    def __call__(self, words: Sequence[str]) -> list[Pronunciation]:
        """Looks up the pronunciation of each word of a clause."""
        said = []
        for i, word in enumerate(words):  # A is the letter, but not before a word at the start
            is_letter = i > 0 or all(len(other) == 1 and other.isupper() for other in words[1:2])
            if word == "A" and is_letter:
                said.append(_LETTER_A)
            elif word.lower() not in self._user_lexicon and (phones := _homograph(words, i)):
                said.append(Pronunciation(phones, in_lexicon=True))
            else:
                said.append(self._pronounce(word))
        return said

    def _pronounce(self, word: str) -> Pronunciation:
        if word not in self._spoken:
            unquoted = (word, word.rstrip("'"), word.lstrip("'"), word.strip("'"))
            phones = next(filter(None, map(self._held, unquoted)), None)
            said = Pronunciation(phones, in_lexicon=True) if phones else self._parts(word)
            self._spoken[word] = said
        return self._spoken[word]

    def _held(self, word: str) -> Phones | None:
        return self._user_lexicon.get(word.lower()) or lookup(word)

    def _parts(self, word: str) -> Pronunciation:
        """Pronounces the parts of a compound ("well-known", "F-16") one after the other."""
        parts = [part for part in word.replace("-", " ").split() if part.strip("'")]
        if len(parts) > 1:
            said = [_LETTER_A if part == "A" else self._pronounce(part) for part in parts]
            phones = tuple(chain(*(part.phones for part in said)))
            return Pronunciation(phones, in_lexicon=all(part.in_lexicon for part in said))
        word = word.strip("'-")
        if not (phones := self._inflected(word) or with_primary_stress(pronounce(word) or ())):
            names = [letter_name(letter) or () for letter in word if letter != "'"]
            if not names or () in names:
                hint = "write it in words, or add it to lexicon_path"
                raise InputError(f"'{word}' has no English pronunciation; {hint}")
            phones = tuple(chain(*names))
        return Pronunciation(phones, in_lexicon=False)

    def _inflected(self, word: str) -> Phones | None:
        """Pronounces a known word with one of the endings 's, s, ed, ing."""
        lower = word.lower()
        for ending, (stems, attach) in _ENDINGS.items():
            for stem in stems(lower.removesuffix(ending)) if lower.endswith(ending) else ():
                if len(stem) > 1 and (phones := self._held(stem)):
                    return attach(phones)
        return None


def _homograph(words: Sequence[str], i: int) -> Phones | None:
    """Returns the pronunciation of a homograph among the words of a clause; None: it is none."""
    stem, ending, subject = words[i].lower(), "", _SUBJECT
    if stem not in _HOMOGRAPHS:
        stem, ending, subject = stem[:-1], stem[-1:], _SUBJECT_OF_S
        if stem not in _HOMOGRAPHS or ending != "s" or not has_variants(words[i]):
            return None
    noun, verb, other = _HOMOGRAPHS[stem]
    before = words[i - 1].lower() if i else ""
    after = words[i + 1].lower() if i + 1 < len(words) else ""
    is_imperative = not before and not ending and _AFTER_IMPERATIVE.fullmatch(after)
    follows_subject = subject.fullmatch(before) and stem != "read"  # "I read" is mostly past
    number = other
    if _BEFORE_NOUN.fullmatch(before) or (stem == "live" and _AFTER_LIVE.fullmatch(after)):
        number = noun
    elif is_imperative or follows_subject or (not ending and _BEFORE_VERB.fullmatch(before)):
        number = verb
    phones = lookup(stem if number == 1 else f"{stem}({number})")
    return with_s(phones) if phones and ending else phones


def _plural_stems(stem: str) -> list[str]:
    """Lists the stems of a word without its "s": "boxe" gives box, "partie" gives party."""
    if stem.endswith("ie"):
        return [stem, stem[:-2] + "y"]
    return [stem, stem[:-1]] if stem.endswith(("se", "ze", "xe", "che", "she", "oe")) else [stem]


def _verb_stems(stem: str) -> list[str]:
    """Lists the stems of a word without "ed", "ing": "hop" gives hope, "stopp" stop, "tri" try."""
    stems = [stem, stem + "e"]
    if len(stem) > 2 and stem[-2] in "aeiou":  # one vowel, one consonant: "hoping" is from hope
        stems.reverse()
    if len(stem) > 2 and stem[-1] == stem[-2]:
        stems.append(stem[:-1])
    if stem.endswith("i"):
        stems.append(stem[:-1] + "y")
    return stems


def with_s(phones: Phones) -> Phones:
    """Adds the ending s to ARPAbet."""
    if phones[-1] in ("S", "Z", "SH", "ZH", "CH", "JH"):  # sibilants
        return (*phones, "IH0", "Z")
    return (*phones, "S" if phones[-1] in _VOICELESS else "Z")


def _with_ed(phones: Phones) -> Phones:
    if phones[-1] in ("T", "D"):
        return (*phones, "IH0", "D")
    return (*phones, "T" if phones[-1] in (*_VOICELESS, "S", "SH", "CH") else "D")


_ENDINGS: dict[str, tuple[Callable[[str], list[str]], Callable[[Phones], Phones]]] = {
    "'s": (lambda stem: [stem], with_s),
    "s": (_plural_stems, with_s),
    "ed": (_verb_stems, _with_ed),
    "ing": (_verb_stems, lambda phones: (*phones, "IH0", "NG")),
}
