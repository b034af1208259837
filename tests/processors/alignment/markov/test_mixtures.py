import numpy as np

from processors.alignment.markov.mixtures import Mixtures, grown, learnt


def one_gaussian_each(counts):
    shape = (len(counts), 1, 2)
    ones = np.ones(shape, np.float32)
    return Mixtures(np.array(counts, float)[:, None], 0 * ones, ones)


def sums_of(mixtures, frames_of):
    """Sums of frames (n, D) given for each mixture."""
    sums = mixtures.no_sums()
    for p, frames in frames_of.items():
        sums.counts[p, 0] = len(frames)
        sums.values[p, 0] = frames.sum(axis=0)
        sums.squares[p, 0] = (frames**2).sum(axis=0)
    return sums


def test_mixtures_learn_mean_and_variance():
    frames = np.random.default_rng(0).normal([2, -1], [0.5, 2], (20000, 2))
    mixtures = one_gaussian_each([1, 1, 1])
    found = learnt(mixtures, sums_of(mixtures, {1: frames}), speech=slice(1, 2))
    assert np.allclose(found.means[1, 0], [2, -1], atol=0.05)
    assert np.allclose(found.variances[1, 0], [0.25, 4], rtol=0.05)


def test_a_few_frames_change_little():
    mixtures = one_gaussian_each([1, 1, 1])
    found = learnt(mixtures, sums_of(mixtures, {1: np.full((1, 2), 6.0)}), speech=slice(1, 2))
    assert np.allclose(found.means[1, 0], 1.0)  # one frame against five
    assert (found.means[0] == 0).all()


def test_unknown_phones_are_like_all_speech():
    rng = np.random.default_rng(1)
    frames = {p: rng.normal(p, 1, (500, 2)) for p in (0, 1, 2)}
    mixtures = one_gaussian_each([1, 1, 1, 1])
    found = learnt(mixtures, sums_of(mixtures, frames), speech=slice(1, 3))
    both = np.concatenate([frames[1], frames[2]])  # silence, the first, is no speech
    assert np.allclose(found.means[3, 0], both.mean(axis=0), atol=1e-5)
    assert np.allclose(found.variances[3, 0], both.var(axis=0), atol=1e-4)


def test_gaussians_are_split_where_there_are_frames_enough():
    mixtures = one_gaussian_each([1000, 59, 60])
    larger = grown(mixtures, most=np.array([2, 2, 2]))
    assert (larger.counts > 0).sum(axis=1).tolist() == [2, 1, 2]
    assert np.allclose(larger.counts.sum(axis=1), [1000, 59, 60])
    assert larger.means[0, 0, 0] == -larger.means[0, 1, 0] != 0


def test_growth_ends_at_the_largest_size_of_each_mixture():
    mixtures = grown(one_gaussian_each([1000, 1000, 100]), most=np.array([8, 6, 8]))
    assert (mixtures.counts > 0).sum(axis=1).tolist() == [8, 6, 3]
    assert len(np.unique(mixtures.means[0, :, 0])) == 8  # no two are the same
    assert grown(mixtures, most=np.array([8, 6, 8])) is None
