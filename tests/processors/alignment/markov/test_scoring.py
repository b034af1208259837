import numpy as np
import pytest

from processors.alignment.markov.chain import chain_of, segments_of
from processors.alignment.markov.contexts import states_of
from processors.alignment.markov.model import Found
from processors.alignment.markov.scoring import score_of
from processors.records import SpokenText, Word

SEGMENTS = segments_of([(1,), (2, 1)], [False, False], silence=0)
SPOKEN = SpokenText(
    "in the",
    "in the",
    ("<sil>", "I", "D", "I", "<.>"),
    (Word("in", 1, 2), Word("the", 2, 4)),
)
STATES = np.repeat([0, 1, 2, 3, 4, 5, 6, 7, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23], 5)


def found_of(badly=()):
    """A hundred frames of which each state gets five; some are heard as anything but the text."""
    pdfs = states_of(SEGMENTS)
    chain = chain_of(SEGMENTS, pdfs, np.full(12, 0.8), {"edge": 1.0, "punctuation": 0, "word": 0})
    occupancy = np.eye(len(pdfs))[STATES]
    emissions = np.full((100, 12), -3.0)
    emissions[np.arange(100), pdfs[STATES]] = 2.0
    emissions[list(badly)] = -4.0
    background = np.zeros(100)
    ends = np.cumsum(occupancy.sum(axis=0).reshape(-1, 4).sum(axis=1)) * 0.01
    return Found(ends, occupancy, emissions, background), chain


def test_what_fits_its_text_has_no_misfit():
    found, chain = found_of()
    score = score_of(found, chain, SEGMENTS, SPOKEN)
    assert score.misfit == pytest.approx(0, abs=1)
    assert score.fit == pytest.approx(2.0)
    assert (score.longest_phone, score.longest_s) == ("I", 0.2)


def test_the_words_are_named_that_are_not_said_and_the_phone_that_fits_worst():
    found, chain = found_of(badly=range(42, 80))
    score = score_of(found, chain, SEGMENTS, SPOKEN)
    assert score.misfit > 50
    assert score.words == "the"
    assert score.start_s == pytest.approx(0.42, abs=0.03)
    assert score.end_s == pytest.approx(0.8, abs=0.03)
    assert (score.worst_phone, score.worst_phone_s) == ("I", 0.8)
    assert score.fit < 1


def test_sound_between_two_words_is_named_by_both_of_them():
    found, chain = found_of()
    noise = Found(
        found.ends_s + np.array([0, 0, 0.3, 0.3, 0.3, 0.3]),
        np.insert(found.occupancy, [40] * 30, np.eye(24)[8], axis=0),
        np.insert(found.emissions, [40] * 30, -4.0, axis=0),
        np.zeros(130),
    )
    score = score_of(noise, chain, SEGMENTS, SPOKEN)
    assert score.misfit > 50
    assert score.words == "in ... the"
    assert (score.start_s, score.end_s) == pytest.approx((0.4, 0.7), abs=0.02)
