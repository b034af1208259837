from itertools import pairwise

import numpy as np
import pytest

from processors.alignment.markov.chain import N_STATES, chain_of, segments_of
from processors.alignment.markov.contexts import states_of
from processors.alignment.markov.mixtures import Mixtures
from processors.alignment.markov.passes import (
    Sums,
    accumulate,
    forward_backward,
    log_likelihoods,
)

SHARES = {"edge": 0.6, "punctuation": 0.5, "word": 0.2}


def small_chain(words=((1,),)):
    """A place for silence, words, and a place for silence; units 0 to 2."""
    stay = np.random.default_rng(0).uniform(0.2, 0.8, 3 * N_STATES)
    segments = segments_of(words, [False] * len(words), silence=0)
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


def test_a_recording_shorter_than_its_states_has_no_way_through():
    chain = small_chain()
    found = forward_backward(np.zeros((N_STATES - 1, 12)), np.arange(12), chain)
    assert found.log_likelihood == -np.inf


def test_frames_that_speak_strongly_for_one_way_overflow_nowhere():
    chain = small_chain()
    truth = np.repeat(np.arange(N_STATES, 2 * N_STATES), 50)  # no silence
    emissions = np.full((len(truth), 12), -2000.0)
    emissions[np.arange(len(truth)), truth] = 0
    found = forward_backward(emissions, np.arange(12), chain)
    assert np.isfinite(found.log_likelihood)
    assert (found.occupancy.argmax(axis=1) == truth).all()


def two_mixtures():
    rng = np.random.default_rng(2)
    counts = np.array([[3.0, 1.0], [2.0, 0.0]])  # the second has one Gaussian only
    means = rng.normal(size=(2, 2, 3)).astype(np.float32)
    return Mixtures(counts, means, rng.uniform(0.5, 2, (2, 2, 3)).astype(np.float32))


def density(frame, mixtures, p):
    """By the book."""
    shares = mixtures.counts[p] / mixtures.counts[p].sum()
    variances = mixtures.variances[p].astype(float)
    exponent = ((frame - mixtures.means[p]) ** 2 / variances).sum(axis=1)
    norm = np.sqrt((2 * np.pi * variances).prod(axis=1))
    return (shares * np.exp(-0.5 * exponent) / norm).sum()


def test_likelihoods_are_those_of_the_formula():
    frames = np.random.default_rng(3).normal(size=(5, 3)).astype(np.float32)
    mixtures = two_mixtures()
    found = log_likelihoods(frames, mixtures.gaussians, np.array([1, 0]))
    expected = [[np.log(density(frame, mixtures, p)) for p in (1, 0)] for frame in frames]
    assert np.allclose(found, expected, atol=1e-4)


def test_sums_hold_each_frame_as_often_as_it_belongs_to_a_state():
    frames = np.random.default_rng(4).normal(size=(6, 3)).astype(np.float32)
    occupancy = np.random.default_rng(5).uniform(0.1, 1, (6, 2))
    mixtures = two_mixtures()
    sums = mixtures.no_sums()
    accumulate(frames, occupancy, np.array([0, 1]), mixtures.gaussians, sums)
    assert np.allclose(sums.counts.sum(axis=1), occupancy.sum(axis=0))
    assert np.allclose(sums.values.sum(axis=1), occupancy.T @ frames, atol=1e-5)
    assert np.allclose(sums.squares.sum(axis=1), occupancy.T @ frames**2, atol=1e-5)
    assert isinstance(sums, Sums)
