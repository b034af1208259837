"""Transcripts with artificial errors."""

import random
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

KINDS = ("removed", "added", "swapped", "more removed", "more added", "more swapped", "other text")
_WORDS = re.compile(r"\S*\w\S*(?:\s+[^\w\s]+(?=\s|$))*")  # with the punctuation around them
_CORE = re.compile(r"\w(?:\S*\w)?")  # a word without it
_TRIES = 20  # for a damage that changes the pronunciation


class Damaged(NamedTuple):
    """A text with an error.

    Attributes:
        kind: One of `KINDS`; "more" are two or three words in a row.
        text: The damaged text.
        words: Those that were added or removed.
        near: These and the words on both sides.
    """

    kind: str
    text: str
    words: tuple[str, ...]
    near: tuple[str, ...]


def damage(
    text: str,
    kind: str,
    rng: random.Random,
    texts: Sequence[str],
    phones_of: Callable[[str], Sequence[str]],
) -> Damaged | None:
    """Damages a text so that its pronunciation changes.

    Args:
        text: The right text.
        kind: One of `KINDS`.
        rng: Chooses place and words.
        texts: Of the corpus; words and other texts are taken from these.
        phones_of: Pronounces a text.

    Returns:
        None if the text is too short.
    """
    words = _WORDS.findall(text)
    if len(words) < 5:
        return None
    for _ in range(_TRIES):
        other = rng.choice(texts)
        if kind == "other text":
            made = Damaged(kind, other, (other,), (other,))
        else:
            made = _edited(words, kind, rng, _WORDS.findall(other))
        if phones_of(made.text) != phones_of(text):
            return made
    return None


def _edited(words: list[str], kind: str, rng: random.Random, source: list[str]) -> Damaged:
    n_words = rng.choice((2, 3)) if kind.startswith("more") else 1
    fresh = [_core(rng.choice(source)) for _ in range(n_words)]
    place = rng.randrange(len(words) - n_words + 1)
    old = words[place : place + n_words]
    if kind.endswith("removed"):
        now, wrong, n_now = [], old, 0
    elif kind.endswith("added"):
        now, wrong, n_now = [*fresh, *old], fresh, n_words
    else:
        now = [_with_core(*pair) for pair in zip(old, fresh, strict=True)]
        wrong, n_now = now, n_words
    edited = [*words[:place], *now, *words[place + n_words :]]
    near = edited[max(place - 1, 0) : place + n_now + 1]
    return Damaged(kind, " ".join(edited), tuple(wrong), (*near, *wrong))


def _with_core(word: str, core: str) -> str:
    return _CORE.sub(lambda _: core, word, count=1)


def _core(word: str) -> str:
    found = _CORE.search(word)
    return found.group() if found else word
