from itertools import pairwise

import pytest

from config.preprocess import TextConfig
from models.synthesizer.text.clauses import ClauseSplitter

LONG = "I came, I saw, and I went away again without a word of thanks, which was unkind. Bye."


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


@pytest.mark.parametrize(("p_arpabet", "cat"), [(0.0, "c a t"), (1.0, "K AE1 T")])
def test_words_that_can_be_mixed_are_in_letters_or_phones(p_arpabet, cat):
    split = ClauseSplitter(TextConfig(phone_extractor="mixed"), 60, p_arpabet)
    ((clause,),) = split("The cat.", "en-us")
    assert " ".join(clause.phones) == f"<sil> t h e <space> {cat} <.>"
