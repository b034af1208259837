from math import nan

import numpy as np
import pytest

from processors.records import Alignment, Word
from tools.benchmarks.boundaries.clips import WordOnsets
from tools.benchmarks.boundaries.comparison import Onset, compare, summarize


def alignment(*words):
    """Words of (text, onsets), one after another, the last phone ending at 9 s."""
    starts = [start for _, onsets in words for start in onsets]
    spans, place = [], 0
    for text, onsets in words:
        spans.append(Word(text, place, place + len(onsets)))
        place += len(onsets)
    return Alignment(("AA",) * len(starts), np.array([*starts, 9.0]), tuple(spans))


def test_phones_are_compared_where_both_have_as_many():
    found = alignment(("the", (0.0, 0.1)), ("cat", (0.2, 0.3, 0.4)))
    known = (WordOnsets("The", (0.01, 0.12)), WordOnsets("cat", (0.25, 0.31)))
    assert list(compare(found, known)) == [
        Onset(0.0, 0.01, True),
        Onset(0.1, 0.12, False),
        Onset(0.2, 0.25, True),  # two phones against three: only where the word begins
    ]


def test_words_that_only_one_side_has_and_onsets_that_are_not_known_are_left_out():
    found = alignment(("a", (0.0,)), ("mister", (0.1,)), ("cat", (0.2,)))
    known = (WordOnsets("a", (0.0,)), WordOnsets("<unk>", (0.1,)), WordOnsets("cat", (0.3,)))
    assert [onset.known_s for onset in compare(found, known)] == [0.0, 0.3]
    found = alignment(("cat", (0.2, 0.3)))
    assert list(compare(found, (WordOnsets("cat", (nan, 0.3)),))) == [Onset(0.3, 0.3, False)]


def test_differences_are_summed_up():
    onsets = [Onset(known + shift, known, False) for known, shift in
              [(0.1, -0.005), (0.2, 0.015), (0.3, 0.02), (0.4, 0.06)]]  # fmt: skip
    summary = summarize(onsets)
    assert summary.n == 4
    assert summary.median_ms == pytest.approx(17.5)
    assert summary.within == (0.25, 0.75, 0.75, 0.75)
    assert summary.lead_ms == pytest.approx(17.5)
    rounded = summarize([Onset(0.114, 0.11, False)], step_s=0.01)  # as the reference is
    assert rounded.median_ms == pytest.approx(0)
