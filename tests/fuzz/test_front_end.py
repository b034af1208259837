"""Properties of the front end that hold for any text, which is a function of its number."""

import random
import sys
from functools import cache

import pytest

from config.text import TextConfig
from processors.text.frontend import TextFrontend
from processors.text.symbols import ARPABET, PAUSES
from utils.errors import InputError

FRONT_ENDS = {
    "lexicon": (TextConfig(), "en-us"),
    "short pauses": (TextConfig(pauses="sp"), "en-us"),
    "espeak, English": (TextConfig(phone_extractor="espeak"), "en-us"),
    "espeak, German": (TextConfig(phone_extractor="espeak"), "de"),
    "letters": (TextConfig(phone_extractor="letters"), "en-us"),
}
WITH_PAUSES = [name for name in FRONT_ENDS if name != "letters"]  # it keeps the marks
WORDS = [
    *("house", "garden", "winter", "morning", "bread", "butter"),
    *("little", "seven", "never", "under", "paper", "window"),
]
BETWEEN = [*(" ", "  ", "\n", "\t", ", ", "; ", ": ", ". ", "! ", "? ", " -- ", " (", ") ", "... ")]
BETWEEN += [*(' "', '" ', " \u201c", "\u201d ", "\u00a0", " \u2014 ", "\u2026 ", ".\n\n", "?! ")]
PIECES = [
    *("5", "1,234.5", "1990s", "$3.50", "3:30 p.m.", "Dr.", "U.S.A.", "C#", "x^2", "-7", "10%"),
    *("don't", "o'clock", "well-known", "MR SMITH", "e.g.", "WWII", "0x1F", "2nd", "IV", "@home"),
    *("caf\u00e9", "na\u00efve", "\u00fcber", "\u20ac5", "\u00bd", "1/2", "\u00a9", "\u2713"),
    *("\U0001f600", "\u0301", "\u200b", "\ufeff", "\u202e", "a" * 60, "<b>", "[1]"),
    *("'", "-", "_", "/", "\\", "|", "~", "`", "#", "&", "*"),
]
REFUSED = ["{", "}", "\u4f60\u597d", "\u041f\u0440\u0438\u0432\u0435\u0442"]  # by some
N_TEXTS = 40


@cache
def front_end(name: str) -> TextFrontend:
    return TextFrontend(*FRONT_ENDS[name])


def any_text(generator: random.Random) -> str:
    """Words, numbers, signs and any characters, with or without what separates them."""
    pieces = []
    for _ in range(generator.randint(1, 12)):
        kind = generator.random()
        if kind < 0.4:
            pieces.append(generator.choice(WORDS))
        elif kind < 0.8:
            pieces.append(generator.choice([*PIECES, *REFUSED]))
        else:
            code = generator.choice([0x250, 0x3000, sys.maxunicode + 1])
            pieces.append(chr(generator.randrange(0x20, code)))
        pieces.append(generator.choice([*BETWEEN, "", ""]))
    # halves of surrogate pairs are no text
    return "".join(pieces).encode("utf-8", "ignore").decode()


@pytest.mark.parametrize("name", FRONT_ENDS)
def test_any_text_is_refused_with_a_reason_or_spoken_as_words_in_a_row_with_pauses(name):
    n_spoken = 0
    for number in range(N_TEXTS):
        text = any_text(random.Random(f"{name}:{number}"))
        try:
            spoken = front_end(name)(text)
        except InputError as error:
            assert len(str(error)) > 10, text  # noqa: PT017
            continue
        n_spoken += 1
        assert spoken.text == text
        assert spoken.words, text
        assert front_end(name)(text) == spoken, text
        edges = [edge for word in spoken.words for edge in (word.start, word.end)]
        assert edges == sorted(edges), text
        assert all(word.start < word.end for word in spoken.words), text
        assert 0 <= edges[0] <= edges[-1] <= len(spoken.phones), text
        if name in WITH_PAUSES:
            covered = [i for word in spoken.words for i in range(word.start, word.end)]
            pauses = [i for i, phone in enumerate(spoken.phones) if phone in PAUSES]
            assert sorted(covered + pauses) == list(range(len(spoken.phones))), text
    assert N_TEXTS / 4 < n_spoken < N_TEXTS


@pytest.mark.parametrize("name", FRONT_ENDS)
def test_no_word_is_lost_whatever_is_between_them(name):
    for number in range(N_TEXTS):
        generator = random.Random(f"{name}, words:{number}")
        words = generator.choices(WORDS, k=generator.randint(1, 10))
        text = generator.choice(["", *BETWEEN])
        text += "".join(word + generator.choice(BETWEEN) for word in words)
        spoken = front_end(name)(text)
        assert [word.text.lower() for word in spoken.words] == words, text


@pytest.mark.parametrize("name", ["lexicon", "short pauses"])
def test_every_phone_of_english_is_one_of_arpabet_or_a_pause(name):
    for number in range(N_TEXTS):
        generator = random.Random(f"{name}, phones:{number}")
        letters = "".join(generator.choices("abcdefghijklmnopqrstuvwxyz'", k=12))
        spoken = front_end(name)(f"a {letters} {generator.choice(PIECES)}")
        assert {*ARPABET, *PAUSES}.issuperset(spoken.phones)
