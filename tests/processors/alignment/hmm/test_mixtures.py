import numpy as np
import pytest

from processors.alignment.hmm.mixtures import (
    Mixtures,
    Sums,
    accumulate,
    log_likelihoods,
    log_mixture,
)


def one_gaussian_each(counts):
    shape = (len(counts), 1, 2)
    ones = np.ones(shape, np.float32)
    return Mixtures(np.array(counts, float)[:, None], 0 * ones, ones)


def sums_of(mixtures, frames_of):
    """Sums of frames (n, D) given for each mixture."""
    sums = mixtures.zero_sums()
    for p, frames in frames_of.items():
        sums.counts[p, 0] = len(frames)
        sums.values[p, 0] = frames.sum(axis=0)
        sums.squares[p, 0] = (frames**2).sum(axis=0)
    return sums


def test_mixtures_learn_mean_and_variance_and_a_few_frames_change_little():
    frames = np.random.default_rng(0).normal([2, -1], [0.5, 2], (20000, 2))
    mixtures = one_gaussian_each([1, 1, 1])
    found = mixtures.reestimated(sums_of(mixtures, {1: frames}), speech=slice(1, 2))
    assert np.allclose(found.means[1, 0], [2, -1], atol=0.05)
    assert np.allclose(found.variances[1, 0], [0.25, 4], rtol=0.05)
    found = mixtures.reestimated(sums_of(mixtures, {1: np.full((1, 2), 6.0)}), speech=slice(1, 2))
    assert np.allclose(found.means[1, 0], 1.0)  # one frame against five
    assert (found.means[0] == 0).all()


def test_unknown_phones_are_like_all_speech():
    rng = np.random.default_rng(1)
    frames = {p: rng.normal(p, 1, (500, 2)) for p in (0, 1, 2)}
    mixtures = one_gaussian_each([1, 1, 1, 1])
    found = mixtures.reestimated(sums_of(mixtures, frames), speech=slice(1, 3))
    both = np.concatenate([frames[1], frames[2]])  # silence, the first, is no speech
    assert np.allclose(found.means[3, 0], both.mean(axis=0), atol=1e-5)
    assert np.allclose(found.variances[3, 0], both.var(axis=0), atol=1e-4)


def test_gaussians_are_split_where_there_are_frames_enough_up_to_the_largest_size_of_each():
    larger = one_gaussian_each([1000, 59, 60]).split(most=np.array([2, 2, 2]))
    assert (larger.counts > 0).sum(axis=1).tolist() == [2, 1, 2]
    assert np.allclose(larger.counts.sum(axis=1), [1000, 59, 60])
    assert larger.means[0, 0, 0] == -larger.means[0, 1, 0] != 0
    mixtures = one_gaussian_each([1000, 1000, 100]).split(most=np.array([8, 6, 8]))
    assert (mixtures.counts > 0).sum(axis=1).tolist() == [8, 6, 3]
    assert len(np.unique(mixtures.means[0, :, 0])) == 8  # no two are the same
    assert mixtures.split(most=np.array([8, 6, 8])) is None


def test_the_background_is_the_mixture_of_all_distributions():
    known = np.random.default_rng(0).normal(0, 3, (5, 4))
    counts = np.array([1.0, 3.0, 4.0, 0.0])
    expected = np.log(np.exp(known) @ (counts / 8))
    log_shares = np.log(np.maximum(counts, 1e-9) / counts.sum())
    assert log_mixture(known, log_shares) == pytest.approx(expected, abs=1e-4)


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
    sums = mixtures.zero_sums()
    accumulate(frames, occupancy, np.array([0, 1]), mixtures.gaussians, sums)
    assert np.allclose(sums.counts.sum(axis=1), occupancy.sum(axis=0))
    assert np.allclose(sums.values.sum(axis=1), occupancy.T @ frames, atol=1e-5)
    assert np.allclose(sums.squares.sum(axis=1), occupancy.T @ frames**2, atol=1e-5)
    assert isinstance(sums, Sums)
