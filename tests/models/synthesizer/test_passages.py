from itertools import pairwise

import pytest

from config.text import TextConfig
from models.synthesizer.passages import Passage, TextReader
from processors.records import SpokenText
from processors.text.clauses import ClauseSplitter
from processors.text.voice_phones import VoicePhones
from utils.errors import InputError

LONG = "I came, I saw, and I went away again without a word of thanks, which was unkind. Bye."
NAMES = ("<sil>", "A", "<,>", "<sil>", "B", "C", "<.>")
SENTENCES: list[list[tuple[str, ...]]] = [
    [NAMES[:3], NAMES[3:5]],
    [NAMES[5:]],
]  # a sentence of two clauses, and one of one


def split(text: str, language: str) -> list[list[SpokenText]]:
    assert (text, language) == ("Any.", "en")
    return [[SpokenText(text, text, phones, ()) for phones in clauses] for clauses in SENTENCES]


READER = TextReader(split, VoicePhones(NAMES, "refuse"))


def read(pitch=None, *, pauses: bool) -> list[list[Passage]]:
    return READER.passages("Any.", "en", pitch, pauses=pauses)


def test_passages_share_out_the_text():
    (first, second), (third,) = read(pauses=True)
    assert first.spoken.phones + second.spoken.phones + third.spoken.phones == NAMES
    ends = [first.start, first.end, second.start, second.end, third.start, third.end]
    assert ends == pytest.approx([0, 3 / 7, 3 / 7, 5 / 7, 5 / 7, 1])
    assert {first.pitch, second.pitch, third.pitch} == {None}


def test_phones_are_listed_with_the_pauses_between_sentences():
    names = READER.phone_names("Any.", "en", pauses=True)
    assert names == (*NAMES[:5], "<sil>", *NAMES[5:])
    assert READER.phone_names("Any.", "en", pauses=False) == NAMES


@pytest.mark.parametrize(
    ("pauses", "rows"),
    [(True, [(0, 1, 2), (3, 4), (6, 7)]), (False, [(0, 1, 2), (3, 4), (5, 6)])],
)
def test_given_pitch_is_shared_out_as_phones_are_listed(pauses, rows):
    pitch = range(len(READER.phone_names("Any.", "en", pauses=pauses)))
    (first, second), (third,) = read(pitch, pauses=pauses)
    assert [first.pitch, second.pitch, third.pitch] == rows


def test_pitch_for_another_number_of_phones_is_refused():
    with pytest.raises(InputError, match="the pitch has 7 values, and the text 8 phones and pause"):
        read([100.0] * 7, pauses=True)


@pytest.mark.parametrize(
    ("pauses", "inner", "final"), [("classes", "<,>", "<.>"), ("sp", "<sp>", "D")]
)
def test_clauses_of_a_long_sentence_end_as_if_it_went_on(pauses, inner, final):
    clauses, _ = ClauseSplitter(TextConfig(pauses=pauses), max_phones=30)(LONG, "en-us")
    assert [clause.words[-1].text for clause in clauses] == ["went", "without", "unkind"]
    assert [clause.phones[-1] for clause in clauses] == [inner, inner, final]


@pytest.mark.parametrize("pauses", ["classes", "sp"])
def test_no_word_is_lost_and_every_phone_is_in_a_word_or_a_pause(pauses):
    sentences = ClauseSplitter(TextConfig(pauses=pauses), max_phones=20)(LONG, "en-us")
    words = " ".join(word.text for clauses in sentences for c in clauses for word in c.words)
    assert words == LONG.replace(",", "").replace(".", "")
    for clause in (clause for clauses in sentences for clause in clauses):
        gaps = [(a.end, b.start) for a, b in pairwise(clause.words)]
        assert all(stop - start in (0, 1) for start, stop in gaps)
        assert all(clause.phones[start].startswith("<") for start, stop in gaps if start < stop)


def test_clauses_of_letters_end_in_a_comma_and_in_symbols_of_nvidia_too():
    for extractor in ("letters", "nvidia_english"):
        split = ClauseSplitter(TextConfig(phone_extractor=extractor), max_phones=30)
        clauses, _ = split(LONG, "en-us")
        assert len(clauses) > 1
        assert [clause.phones[-1] for clause in clauses[:-1]] == ["<,>"] * (len(clauses) - 1)
        assert clauses[-1].phones[-1] == "<.>"


def test_a_word_of_thousands_of_letters_is_several_passages():
    ((*inner, last),) = ClauseSplitter(TextConfig(), max_phones=300)("a" * 5000, "en-us")
    assert len(inner) == 31
    assert "".join(clause.text for clause in [*inner, last]) == "a" * 5000
    assert max(len(clause.phones) for clause in inner) < 300


@pytest.mark.parametrize(("p_arpabet", "cat"), [(0.0, "c a t"), (1.0, "K AE1 T")])
def test_words_that_can_be_mixed_are_in_letters_or_phones(p_arpabet, cat):
    split = ClauseSplitter(TextConfig(phone_extractor="mixed"), 60, p_arpabet)
    ((clause,),) = split("The cat.", "en-us")
    assert " ".join(clause.phones) == f"<sil> t h e <space> {cat} <.>"
