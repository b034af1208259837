"""The best exchange of words, against all of them one by one, and on recordings from a model."""

from itertools import product

import numpy as np
import pytest

from processors.alignment.hmm.chain import N_STATES, chain_of, segments_of
from processors.alignment.hmm.edits import _COST, best_edit, score_of
from processors.alignment.hmm.model import FRAME_S, HmmAlignment
from processors.alignment.hmm.tying import states_of
from tests.processors.alignment.hmm.synthetic import segments_in
from tests.processors.alignment.hmm.test_chain import all_ways, moves_from, small_chain

WORDS = ((1,), (2,))


def edit_of(model, example):
    segments = segments_in(model, example)
    found = model.align(model.normalized(example.frames, "ann"), segments)
    return best_edit(found.emissions, found.background, model.chain(segments), segments)


def test_without_a_gain_the_text_stays(drawn, model):
    gains = [edit_of(model, one.example).gain for one in drawn]
    assert np.median(gains) < 3
    assert min(gains) >= 0


def test_the_gain_is_that_of_the_best_way_through_an_edited_chain():
    chain, segments = small_chain_of(WORDS)
    T = 10
    emissions = np.random.default_rng(3).normal(0, 3, (T, 3 * N_STATES))
    background = emissions.max(axis=1)
    edit = best_edit(emissions, background, chain, segments)
    sound = background - _COST * FRAME_S

    def with_sound(first, past, start, end):
        score = before(chain, emissions, first, start) + sound[start:end].sum()
        return score + after(chain, emissions, past, end)

    words = [pair for pair in product(range(3), repeat=2) if pair[0] <= pair[1]]
    spans = [pair for pair in product(range(T + 1), repeat=2) if pair[0] <= pair[1]]
    best = max(with_sound(*pair, *span) for pair, span in product(words, spans))
    ways = [(states, p) for states, p in all_ways(chain, T) if p > 0]
    whole = max(np.log(p) + score(chain, emissions, states) for states, p in ways)
    assert edit.gain == pytest.approx(best - whole)
    assert edit.gain == pytest.approx(with_sound(*edit[1:]) - whole)


def small_chain_of(words):
    return small_chain(words), segments_of(words, [False] * len(words))


def score(chain, emissions, states, first=0):
    return emissions[np.arange(first, first + len(states)), chain.pdfs[list(states)]].sum()


def place_of(number):
    return 2 * number * N_STATES  # silence, word, silence ...


def before(chain, emissions, place, n_frames):
    """Best path through all states before a place in so many frames, and out of them."""
    ends = [place_of(place) + N_STATES - 1] + ([place_of(place) - 1] if place else [])
    if n_frames == 0:
        return 0.0 if place == 0 else -np.inf
    ways = ways_from(chain, [(s, chain.start[s]) for s in range(len(chain.pdfs))], n_frames)
    leaving = ((states, p) for states, p in ways if p > 0 and states[-1] in ends)
    scores = [
        np.log(p * (1 - chain.stay[states[-1]])) + score(chain, emissions, states)
        for states, p in leaving
    ]
    return max(scores, default=-np.inf)


def after(chain, emissions, place, start):
    """Best path through all states after a place, from a frame to the last one."""
    n_frames = len(emissions) - start
    last = place_of(place) == len(chain.pdfs) - N_STATES
    if n_frames == 0:
        return 0.0 if last else -np.inf
    starts = [place_of(place)] + ([] if last else [place_of(place) + N_STATES])
    ways = ways_from(chain, [(s, 1.0) for s in starts], n_frames)
    leaving = ((states, p * chain.final[states[-1]]) for states, p in ways)
    scores = [np.log(p) + score(chain, emissions, states, start) for states, p in leaving if p > 0]
    return max(scores, default=-np.inf)


def ways_from(chain, starts, n_frames):
    ways = [((s,), p) for s, p in starts if p > 0]
    for _ in range(n_frames - 1):
        ways = [
            ((*states, later), p * move)
            for states, p in ways
            for later, move in moves_from(chain, states[-1])
            if move > 0
        ]
    return ways


def test_a_word_that_is_not_said_is_found_at_its_place(drawn, model):
    places = []
    for one in drawn[:20]:
        words, marks = one.example.words, one.example.punctuated
        words, marks = (words[0], ("a", "f", "c"), *words[1:]), (marks[0], False, *marks[1:])
        edit = edit_of(model, one.example._replace(words=words, punctuated=marks))
        places.append(edit.gain > 10 and edit.first <= 1 <= edit.past)
    assert np.mean(places) >= 0.9


def test_a_word_that_is_missing_in_the_text_is_found_at_its_place(drawn, model):
    hits = []
    for one in drawn:
        example = one.example
        if len(example.words) > 2 and len(example.words[1]) > 1:
            words, marks = list(example.words), list(example.punctuated)
            del words[1], marks[1]
            edit = edit_of(model, example._replace(words=words, punctuated=marks))
            said = one.starts_s[len(example.words[0])] / FRAME_S
            hits.append(edit.gain > 10 and abs(edit.start - said) < 10 and edit.first <= 1)
    assert len(hits) > 10
    assert np.mean(hits) >= 0.9


SEGMENTS = segments_of([(1,), (2, 1)], [False, False])
TEXT = ("in", "the")
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
    return HmmAlignment(ends, emissions, background), chain


def test_what_fits_its_text_has_no_misfit_and_words_that_are_not_said_are_named():
    found, chain = found_of()
    assert score_of(found, chain, SEGMENTS, TEXT).misfit == pytest.approx(0, abs=1)
    found, chain = found_of(badly=range(42, 80))
    score = score_of(found, chain, SEGMENTS, TEXT)
    assert score.misfit > 50
    assert score.words == "the"
    assert score.start_s == pytest.approx(0.42, abs=0.03)
    assert score.end_s == pytest.approx(0.8, abs=0.03)


def test_sound_between_two_words_is_named_by_both_of_them():
    found, chain = found_of()
    later_s = found.ends_s + np.array([0, 0, 0.3, 0.3, 0.3, 0.3])
    emissions = np.insert(found.emissions, [40] * 30, -4.0, axis=0)
    score = score_of(HmmAlignment(later_s, emissions, np.zeros(130)), chain, SEGMENTS, TEXT)
    assert score.misfit > 50
    assert score.words == "in ... the"
    assert (score.start_s, score.end_s) == pytest.approx((0.4, 0.7), abs=0.02)
