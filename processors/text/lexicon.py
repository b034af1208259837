"""Pronunciation lexicons: the CMU Pronouncing Dictionary and user files.

`data/cmudict.txt` is CMUdict (Carnegie Mellon University, BSD 2-clause, licence in the same folder)
without its comments, one `word PH1 PH2` line per pronunciation, sorted by bytes. A space sorts
before every character of a word, so binary search in the mapped file takes about 18 steps.
Nothing is parsed at start-up (parsing takes 0.7 s), and processes share the pages.
"""

import mmap
from collections.abc import Callable
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

from utils.errors import InputError

CMUDICT_PATH = Path(__file__).with_name("data") / "cmudict.txt"
LETTER_A = ("EY1",)  # CMUdict has the article first


class Pronunciation(NamedTuple):
    """The pronunciation of a word."""

    phones: tuple[str, ...]  # or letters
    in_lexicon: bool  # False: from a rule
    instead: tuple[str, ...] = ()  # phones that can be said instead of the letters


@cache
def _mapped_cmudict() -> mmap.mmap:
    with CMUDICT_PATH.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


@lru_cache(maxsize=65536)
def lookup(word: str) -> tuple[str, ...] | None:
    """CMUdict's first pronunciation of a word, ARPAbet with stress; None if it lacks the word.

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
    """Whether CMUdict has several pronunciations of a word, as of "read"."""
    return lookup(f"{word}(2)") is not None


def letter_name(letter: str) -> tuple[str, ...] | None:
    """The name of a letter a to z in ARPAbet; None for any other character."""
    if letter in "aA":
        return LETTER_A
    return lookup(letter) if letter.isalpha() else None


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
        if not phones:
            raise InputError(f"{path}:{number}: '{word}' has no phones, expected `WORD  PH1 PH2`")
        if bad := [phone for phone in phones if not is_phone(phone)]:
            raise InputError(
                f"{path}:{number}: '{word}' has the unknown phone '{bad[0]}'; "
                "expected ARPAbet such as AH0 for the backend lexicon, IPA for espeak"
            )
        pronunciations.setdefault(word.lower().partition("(")[0] or word.lower(), tuple(phones))
    return pronunciations
