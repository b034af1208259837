"""Mixtures of Gaussians, and how they are learnt and grow."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from processors.alignment.markov.passes import UNUSED, Gaussians, Sums

_PRIOR_FRAMES = 5  # what was known before counts like so many frames
LEAST_VARIANCE = 0.15  # of the variance of all speech, which is 1
_FRAMES_PER_GAUSSIAN = 30  # with fewer frames a mixture does not grow
_APART = 0.2  # deviations, to each side: where the halves of a Gaussian begin


@dataclass(frozen=True)
class Mixtures:
    """P mixtures of up to K diagonal Gaussians.

    Attributes:
        counts: Frames of each Gaussian, (P, K); 0: not in use.
        means: (P, K, D) float32.
        variances: (P, K, D) float32.
    """

    counts: np.ndarray
    means: np.ndarray
    variances: np.ndarray

    @cached_property
    def gaussians(self) -> Gaussians:
        """The same, ready for use."""
        D = self.means.shape[2]
        used = self.counts > 0
        shares = self.counts / self.counts.sum(axis=1, keepdims=True)
        logs = np.log(np.where(used, shares, 1))
        norms = 0.5 * (np.log(self.variances).sum(axis=2) + D * np.log(2 * np.pi))
        constants = np.where(used, logs - norms, UNUSED).astype(np.float32)
        return Gaussians(constants, self.means, (1 / self.variances).astype(np.float32))

    def no_sums(self) -> Sums:
        """Sums of no frames at all."""
        return Sums(*(np.zeros(array.shape) for array in (self.counts, self.means, self.means)))


def of_sums(sums: np.ndarray) -> Mixtures:
    """A Gaussian for each row of sums; of mean 0 and variance 1 where there are no frames.

    Args:
        sums: Frames, their sum and that of their squares, (P, 1 + 2 D).
    """
    D = sums.shape[1] // 2
    counts = np.maximum(sums[:, :1], 1e-3)
    means = sums[:, 1 : 1 + D] / np.maximum(counts, 1)
    variances = np.maximum(sums[:, 1 + D :] / np.maximum(counts, 1) - means**2, LEAST_VARIANCE)
    variances[counts[:, 0] < 1] = 1
    ready = (array[:, None].astype(np.float32) for array in (means, variances))
    return Mixtures(counts, *ready)


def learnt(mixtures: Mixtures, sums: Sums, speech: slice) -> Mixtures:
    """The mixtures that sums speak for; where these are of few frames, close to the old ones.

    Args:
        mixtures: Those that shared the frames out.
        sums: Of the frames.
        speech: Mixtures of speech. Those after them belong to unknown phones and become a Gaussian
            of all speech.
    """
    counts = sums.counts[..., None]  # (P, K, 1)
    total = np.maximum(counts, 1e-3)
    mean = sums.values / total
    variance = sums.squares / total - mean**2
    trust = counts / (counts + _PRIOR_FRAMES)
    means = trust * mean + (1 - trust) * mixtures.means
    variances = np.maximum(trust * variance + (1 - trust) * mixtures.variances, LEAST_VARIANCE)
    # no Gaussian of a mixture that is in use dies
    least = 1e-3 * np.maximum(1, sums.counts.mean(axis=1, keepdims=True))
    kept = np.where(mixtures.counts > 0, np.maximum(sums.counts, least), 0)
    of_all = max(sums.counts[speech].sum(), 1e-3)
    mean_of_all = sums.values[speech].sum(axis=(0, 1)) / of_all
    kept[speech.stop :] = 0
    kept[speech.stop :, 0] = 1  # frames that it shares with others: it never grows
    means[speech.stop :, 0] = mean_of_all
    spread = sums.squares[speech].sum(axis=(0, 1)) / of_all - mean_of_all**2
    variances[speech.stop :, 0] = np.maximum(spread, LEAST_VARIANCE)
    return Mixtures(kept, means.astype(np.float32), variances.astype(np.float32))


def grown(mixtures: Mixtures, most: np.ndarray) -> Mixtures | None:
    """The mixtures with more Gaussians, where there are frames enough to learn them.

    The Gaussians with most frames are split in two.

    Args:
        mixtures: Of any size.
        most: Gaussians of each mixture at most, (P,).

    Returns:
        Larger mixtures; None if no mixture can grow.
    """
    P, K, D = mixtures.means.shape
    n_used = (mixtures.counts > 0).sum(axis=1)
    wanted = np.clip(mixtures.counts.sum(axis=1) // _FRAMES_PER_GAUSSIAN, 1, most).astype(int)
    if (wanted <= n_used).all():
        return None
    size = max(int(wanted.max()), K)
    counts = np.zeros((P, size))
    means = np.zeros((P, size, D), np.float32)
    variances = np.ones((P, size, D), np.float32)
    counts[:, :K], means[:, :K], variances[:, :K] = (
        mixtures.counts, mixtures.means, mixtures.variances,
    )  # fmt: skip
    for p in range(P):
        apart = np.full(size, _APART)  # less each time, or halves of halves would meet
        for new in range(n_used[p], wanted[p]):
            old = int(counts[p].argmax())
            offset = apart[old] * np.sqrt(variances[p, old])
            apart[old] = apart[new] = apart[old] / 2
            means[p, new], means[p, old] = means[p, old] + offset, means[p, old] - offset
            variances[p, new] = variances[p, old]
            counts[p, old] /= 2
            counts[p, new] = counts[p, old]
    return Mixtures(counts, means, variances)
