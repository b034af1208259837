from itertools import pairwise

import numpy as np
import pytest

from processors.alignment.hmm.chain import N_STATES, chain_of, forward_backward, segments_of
from processors.alignment.hmm.tying import states_of

SHARES = {"edge": 0.6, "punctuation": 0.5, "word": 0.2}


def test_words_have_places_for_silence_around_them_that_know_the_punctuation():
    segments = segments_of([[3, 4], [5]], [True, True])
    assert [segment.unit for segment in segments] == [0, 3, 4, 0, 5, 0]
    assert [segment.place for segment in segments] == ["edge", "", "", "punctuation", "", "edge"]


def test_what_leaves_a_state_adds_up_to_one():
    stay = np.random.default_rng(0).uniform(0.2, 0.8, 3 * N_STATES)
    segments = segments_of([[1, 2], [2], [1]], [False, True, False])
    chain = chain_of(segments, states_of(segments), stay, SHARES)
    S = len(chain.pdfs)
    skipping = np.zeros(S)
    skipping[: -N_STATES - 1] = chain.skip[N_STATES + 1 :]
    leaving = chain.stay + chain.step + skipping
    leaving += np.where(np.arange(S) < S - 1, chain.final, 0)  # of the last one, final is its step
    assert np.allclose(leaving, 1)
    assert chain.start.sum() == 1


def test_silence_is_entered_as_often_as_it_was_found_at_such_a_place():
    stay = np.full(2 * N_STATES, 0.5)
    segments = segments_of([[1], [1], [1]], [True, False, False])
    chain = chain_of(segments, states_of(segments), stay, SHARES)
    last = [(number + 1) * N_STATES - 1 for number in (1, 3, 5)]  # of each word
    assert chain.step[last].tolist() == [0.5 * 0.5, 0.5 * 0.2, 0.5 * 0.6]
    assert chain.final[last[-1]] == 0.5 * 0.4


def small_chain(words=((1,),)):
    """A place for silence, words, and a place for silence; units 0 to 2."""
    stay = np.random.default_rng(0).uniform(0.2, 0.8, 3 * N_STATES)
    segments = segments_of(words, [False] * len(words))
    return chain_of(segments, states_of(segments), stay, SHARES)


def all_ways(chain, n_frames):
    """Every way of so many frames through a chain, as its states and its probability."""
    S = len(chain.pdfs)
    ways = [((s,), chain.start[s]) for s in range(S) if chain.start[s] > 0]
    for _ in range(n_frames - 1):
        ways = [
            ((*states, after), probability * move)
            for states, probability in ways
            for after, move in moves_from(chain, states[-1])
        ]
    return [(states, p * chain.final[states[-1]]) for states, p in ways if chain.final[states[-1]]]


def moves_from(chain, s):
    yield s, chain.stay[s]
    if s + 1 < len(chain.pdfs):
        yield s + 1, chain.step[s]
    after = s + N_STATES + 1
    if after < len(chain.pdfs) and chain.skip[after] > 0:
        yield after, chain.skip[after]


@pytest.mark.parametrize(("words", "n_frames"), [(((1,),), 9), (((1,), (2,)), 11)])
def test_all_ways_through_a_chain_are_weighed_as_if_one_by_one(words, n_frames):
    chain = small_chain(words)
    T, S = n_frames, len(chain.pdfs)
    emissions = np.random.default_rng(1).normal(0, 2, (T, S))
    occupancy, skipped, total = np.zeros((T, S)), np.zeros(S), 0.0
    for states, probability in all_ways(chain, T):
        weight = probability * np.exp(emissions[np.arange(T), list(states)].sum())
        total += weight
        occupancy[np.arange(T), list(states)] += weight
        for before, after in pairwise(states):
            skipped[after] += weight * (after - before > 1)
    found = forward_backward(emissions, np.arange(S), chain)
    assert found.log_likelihood == pytest.approx(np.log(total))
    assert np.allclose(found.occupancy, occupancy / total, atol=1e-9)
    assert np.allclose(found.skipped, skipped / total, atol=1e-9)


def test_too_few_frames_have_no_way_through_and_those_that_speak_strongly_overflow_nowhere():
    chain = small_chain()
    found = forward_backward(np.zeros((N_STATES - 1, 12)), np.arange(12), chain)
    assert found.log_likelihood == -np.inf
    truth = np.repeat(np.arange(N_STATES, 2 * N_STATES), 50)  # no silence
    emissions = np.full((len(truth), 12), -2000.0)
    emissions[np.arange(len(truth)), truth] = 0
    found = forward_backward(emissions, np.arange(12), chain)
    assert np.isfinite(found.log_likelihood)
    assert (found.occupancy.argmax(axis=1) == truth).all()
