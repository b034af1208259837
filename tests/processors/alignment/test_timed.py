"""Phones and words with times, whatever file they were in."""

import math
from contextlib import nullcontext

import pytest

from processors.alignment.aligner import AlignmentError
from processors.alignment.timed import align_grid, check_times, find_words, make_grid
from processors.records import TimedPhone, TimedWord, Word
from tests.processors.utterances import spoken_text

SPOKEN = spoken_text("Hi, you!", "<sil> Hi=HH-AY1 <,> you=Y-UW1 <!>")


def grid_of(names, duration_s=None, step_s=0.1):
    phones = [TimedPhone(name, step_s * n, step_s * (n + 1)) for n, name in enumerate(names)]
    return make_grid(duration_s, [], phones)


def test_silences_are_dropped_unless_the_sequence_is_whole():
    assert [one.name for one in grid_of(["#", "HH", "SIL", "AY1", "<sp>"]).phones] == ["HH", "AY1"]
    whole = grid_of([*SPOKEN.phones[:3], "<sp>", *SPOKEN.phones[4:]])
    assert whole.is_complete
    assert len(whole.phones) == 7
    assert not grid_of(SPOKEN.phones[:-1]).is_complete
    assert not grid_of(SPOKEN.phones[1:]).is_complete


def test_a_whole_sequence_keeps_its_edges_and_its_pauses():
    alignment = align_grid(grid_of(SPOKEN.phones), SPOKEN, 0.7, edge_silence_s=0.02)
    assert alignment.phones == SPOKEN.phones
    assert alignment.boundaries_s.tolist() == pytest.approx([0.1 * n for n in range(8)])
    assert alignment.words == SPOKEN.words


def test_a_source_without_the_length_of_the_recording_may_end_early_but_not_late():
    phones = ["HH", "AY1", "Y", "UW1"]
    assert align_grid(grid_of(phones), SPOKEN, 9.0, 0.1).phones[-1] == "<!>"
    with pytest.raises(AlignmentError, match=r"it lasts 9.00 s, the recording 0.40 s"):
        align_grid(grid_of(phones, duration_s=9.0), SPOKEN, 0.4, 0.1)
    with pytest.raises(AlignmentError, match=r"it lasts 4.00 s, the recording 3.00 s"):
        align_grid(grid_of(phones, step_s=1.0), SPOKEN, 3.0, 0.1)


def test_pauses_do_not_count_as_phones_of_the_text_and_silence_alone_is_refused():
    names = ["<sil>", "HH", "<sp>", "<sp>", "<sp>", "<sp>", "<sp>", "<sp>", "UW1", "<!>"]
    assert align_grid(grid_of(names), SPOKEN, 1.0, 0.1).phones == tuple(names)
    with pytest.raises(AlignmentError, match="it has no phones, only silence"):
        align_grid(grid_of(["sil", "", "sp"], duration_s=0.3), SPOKEN, 0.3, 0.1)


@pytest.mark.parametrize(
    ("end_s", "message"),
    [
        (0.21, None),  # what rounding to 10 ms explains
        (0.23, "times overlap"),
        (math.nan, r"HH lasts from 0.100 to nan s, .*; align"),
        (math.inf, r"HH lasts from 0.100 to inf s, .*; align"),
    ],
)
def test_times_that_overlap_or_are_no_numbers_are_refused(end_s, message):
    grid = make_grid(None, [], [("HH", 0.1, end_s), ("AY1", 0.2, 0.3)])
    with pytest.raises(AlignmentError, match=message) if message else nullcontext():
        check_times(grid)


def test_words_are_found_among_phones_that_the_text_does_not_have():
    names = ("<sil>", "hh", "ay", "<sp>", "y", "<sp>", "ə", "u", "<.>")
    assert find_words(names, SPOKEN) == (Word("Hi", 1, 3), Word("you", 4, 8))


def words_of(*labels):
    return [TimedWord(label, 0.2 * n, 0.2 * (n + 1)) for n, label in enumerate(labels)]


def test_a_word_of_the_text_that_the_source_lacks_is_named_with_its_place():
    spoken = spoken_text("Hi, you two!", "<sil> Hi=HH-AY1 <,> you=Y-UW1 two=T-UW1 <!>")
    grid = grid_of(["HH", "AY1", "Y", "UW1"])
    match = r"the word 'two' of .* between 0.40 and 0.90 s; align"
    for source in (grid, grid._replace(words=words_of("hi", "you"))):
        with pytest.raises(AlignmentError, match=match):
            align_grid(source, spoken, 0.9, 0.1)
    silent = grid._replace(words=[*words_of("hi", "you", "two")])
    with pytest.raises(AlignmentError, match=r"its word 'two' from 0.40 to 0.60 s has no phones"):
        align_grid(silent, spoken, 0.9, 0.1)


def test_labels_between_words_need_no_phones():
    grid = grid_of(["HH", "AY1", "Y", "UW1"])
    words = [*words_of("hi", "you"), TimedWord("[breath]", 0.4, 0.8)]
    assert align_grid(grid._replace(words=words), SPOKEN, 0.9, 0.1).phones == SPOKEN.phones


def test_unknown_phones_are_half_of_the_speech_at_most():
    assert align_grid(grid_of(["spn", "Y", "UW1"]), SPOKEN, 0.5, 0.1).phones[1] == "<spn>"
    for names in (["spn"] * 4, ["spn", "spn", "spn", "UW1"]):
        match = r"0.[34]0 of its 0.40 s are .* unknown words \(spn"
        with pytest.raises(AlignmentError, match=match):
            align_grid(grid_of(names), SPOKEN, 0.5, 0.1)
