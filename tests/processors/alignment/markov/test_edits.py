"""The best exchange of words, against all of them one by one, and on recordings from a model."""

from itertools import product

import numpy as np
import pytest

from processors.alignment.markov.acoustics import FRAME_S
from processors.alignment.markov.chain import N_STATES, segments_of
from processors.alignment.markov.edits import _COST, background_of, best_edit
from tests.processors.alignment.markov.synthetic import segments_in
from tests.processors.alignment.markov.test_passes import all_ways, moves_from, small_chain

WORDS = ((1,), (2,))


def edit_of(model, example):
    segments = segments_in(model, example)
    found = model.align(model.normalized(example.frames, "ann"), segments)
    return best_edit(found.emissions, found.background, model.chain(segments), segments)


def test_the_background_is_the_mixture_of_all_distributions():
    known = np.random.default_rng(0).normal(0, 3, (5, 4))
    counts = np.array([1.0, 3.0, 4.0, 0.0])
    expected = np.log(np.exp(known) @ (counts / 8))
    assert background_of(known, counts) == pytest.approx(expected, abs=1e-4)


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
    best = max(
        before(chain, emissions, first, start)
        + sound[start:end].sum()
        + after(chain, emissions, past, end)
        for first, past in product(range(3), range(3))
        for start, end in product(range(T + 1), range(T + 1))
        if first <= past and start <= end
    )
    whole = max(
        np.log(p) + score(chain, emissions, states) for states, p in all_ways(chain, T) if p > 0
    )
    assert edit.gain == pytest.approx(best - whole)
    assert edit.gain == pytest.approx(
        before(chain, emissions, edit.first, edit.start)
        + sound[edit.start : edit.end].sum()
        + after(chain, emissions, edit.past, edit.end)
        - whole
    )


def small_chain_of(words):
    return small_chain(words), segments_of(words, [False] * len(words), silence=0)


def score(chain, emissions, states, first=0):
    rows = np.arange(first, first + len(states))
    return emissions[rows, chain.pdfs[list(states)]].sum()


def place_of(number):
    return 2 * number * N_STATES  # silence, word, silence ...


def before(chain, emissions, place, n_frames):
    """Best way through all that stands before a place in so many frames, and away from there."""
    ends = [place_of(place) + N_STATES - 1] + ([place_of(place) - 1] if place else [])
    if n_frames == 0:
        return 0.0 if place == 0 else -np.inf
    ways = ways_from(chain, [(s, chain.start[s]) for s in range(len(chain.pdfs))], n_frames)
    return max(
        (
            np.log(p * (1 - chain.stay[states[-1]])) + score(chain, emissions, states)
            for states, p in ways
            if p > 0 and states[-1] in ends
        ),
        default=-np.inf,
    )


def after(chain, emissions, place, start):
    """Best way through all that stands after a place, from a frame to the last one."""
    n_frames = len(emissions) - start
    last = place_of(place) == len(chain.pdfs) - N_STATES
    if n_frames == 0:
        return 0.0 if last else -np.inf
    starts = [place_of(place)] + ([] if last else [place_of(place) + N_STATES])
    ways = ways_from(chain, [(s, 1.0) for s in starts], n_frames)
    return max(
        (
            np.log(p * chain.final[states[-1]]) + score(chain, emissions, states, start)
            for states, p in ways
            if p * chain.final[states[-1]] > 0
        ),
        default=-np.inf,
    )


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
        added = one.example._replace(
            words=(words[0], ("a", "f", "c"), *words[1:]), punctuated=(marks[0], False, *marks[1:])
        )
        edit = edit_of(model, added)
        places.append(edit.gain > 10 and edit.first <= 1 <= edit.past)
    assert np.mean(places) >= 0.9


def test_a_word_that_is_missing_in_the_text_is_found_at_its_place(drawn, model):
    hits = []
    for one in drawn:
        example = one.example
        if len(example.words) > 2 and len(example.words[1]) > 1:
            less = example._replace(
                words=(example.words[0], *example.words[2:]),
                punctuated=(example.punctuated[0], *example.punctuated[2:]),
            )
            edit = edit_of(model, less)
            said = one.starts_s[len(example.words[0])] / FRAME_S
            hits.append(edit.gain > 10 and abs(edit.start - said) < 10 and edit.first <= 1)
    assert len(hits) > 10
    assert np.mean(hits) >= 0.9
