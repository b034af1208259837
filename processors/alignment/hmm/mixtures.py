"""Mixtures of Gaussians with diagonal covariance: densities, re-estimation and growth."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from modules.compiled import compiled

UNUSED = -1e30  # log-weight of a component that is not in use
LEAST_VARIANCE = 0.15  # of the variance of all speech, which is 1
_PRIOR_FRAMES = 5  # weight of the previous estimate, in frames
_FRAMES_PER_GAUSSIAN = 30  # with fewer frames a mixture does not grow
_APART = 0.2  # deviations: by how much the means of a split Gaussian move, to each side
_NEGLIGIBLE = 1e-4  # occupancy below which a frame is not accumulated


class Gaussians(NamedTuple):
    """P mixtures of K diagonal Gaussians, ready for use."""

    # log-weight and normalisation, (P, K) float32; `UNUSED` where there is none
    constants: np.ndarray
    means: np.ndarray  # (P, K, D) float32
    precisions: np.ndarray  # inverse variances, (P, K, D) float32


class Sums(NamedTuple):
    """Sufficient statistics of Gaussians."""

    counts: np.ndarray  # frames, (P, K)
    values: np.ndarray  # sum of the frames, (P, K, D)
    squares: np.ndarray  # sum of their squares, (P, K, D)


@compiled
def _posteriors(frame: np.ndarray, gaussians: Gaussians, pdf: int, logs: np.ndarray) -> None:
    # fills logs (K,) with the posteriors of the components
    K, D = gaussians.means.shape[1:]
    best = UNUSED
    for k in range(K):
        logs[k] = UNUSED
        if gaussians.constants[pdf, k] > UNUSED:
            distance = np.float32(0.0)
            for d in range(D):
                difference = frame[d] - gaussians.means[pdf, k, d]
                distance += difference * difference * gaussians.precisions[pdf, k, d]
            logs[k] = gaussians.constants[pdf, k] - 0.5 * distance
            best = max(best, logs[k])
    total = 0.0
    for k in range(K):
        logs[k] = np.exp(logs[k] - best) if logs[k] > UNUSED else 0.0
        total += logs[k]
    for k in range(K):
        logs[k] /= total


@compiled
def _log_densities(features: np.ndarray, gaussians: Gaussians, pdfs: np.ndarray) -> np.ndarray:
    # of frames (D, T) under each Gaussian, with its log-weight: (K, U, T) float32
    D, T = features.shape
    K = gaussians.means.shape[1]
    result = np.empty((K, len(pdfs), T), np.float32)
    for k in range(K):
        for column, pdf in enumerate(pdfs):
            logs = result[k, column]
            logs[:] = gaussians.constants[pdf, k]
            if gaussians.constants[pdf, k] > UNUSED:
                for d in range(D):
                    mean = gaussians.means[pdf, k, d]
                    half = np.float32(0.5) * gaussians.precisions[pdf, k, d]
                    for t in range(T):  # frames are innermost, since the CPU takes many at once
                        difference = features[d, t] - mean
                        logs[t] -= half * difference * difference
    return result


def log_likelihoods(frames: np.ndarray, gaussians: Gaussians, pdfs: np.ndarray) -> np.ndarray:
    """Computes the log-likelihood of frames (T, D) under mixtures `pdfs` (U,): (T, U)."""
    logs = _log_densities(np.ascontiguousarray(frames.T), gaussians, pdfs)  # (K, U, T)
    best = logs.max(axis=0)
    mixed = best + np.log(np.exp(logs - best).sum(axis=0)) if len(logs) > 1 else best
    return np.ascontiguousarray(mixed.T, dtype=np.float64)


@compiled
def accumulate(
    frames: np.ndarray, occupancy: np.ndarray, pdfs: np.ndarray, gaussians: Gaussians, sums: Sums
) -> None:
    """Adds frames, (T, D), to sums of all mixtures in place, by the posteriors of the Gaussians.

    `occupancy` is the probability of each state, (T, S), whose mixtures are `pdfs`, (S,).
    """
    T, D = frames.shape
    shares = np.empty(gaussians.means.shape[1])
    for s in range(len(pdfs)):
        p = pdfs[s]
        for t in range(T):
            if occupancy[t, s] < _NEGLIGIBLE:
                continue
            _posteriors(frames[t], gaussians, p, shares)
            for k in range(len(shares)):
                weight = occupancy[t, s] * shares[k]
                if weight > 0:
                    sums.counts[p, k] += weight
                    for d in range(D):
                        value = weight * frames[t, d]
                        sums.values[p, k, d] += value
                        sums.squares[p, k, d] += value * frames[t, d]


@compiled
def log_mixture(emissions: np.ndarray, log_shares: np.ndarray) -> np.ndarray:
    """Computes the log-likelihood under a mixture of all distributions, (T, P) and (P,) -> (T,)."""
    result = np.empty(len(emissions))
    for t in range(len(emissions)):
        best = UNUSED
        for p in range(len(log_shares)):
            best = max(best, emissions[t, p] + log_shares[p])
        total = 0.0
        for p in range(len(log_shares)):
            below = emissions[t, p] + log_shares[p] - best
            if below > -10.0:  # e**-10 of the best adds nothing
                total += np.exp(below)
        result[t] = best + np.log(total)
    return result


@dataclass(frozen=True)
class Mixtures:
    """P mixtures of up to K diagonal Gaussians."""

    counts: np.ndarray  # frames of each Gaussian, (P, K); 0: not in use
    means: np.ndarray  # (P, K, D) float32
    variances: np.ndarray  # (P, K, D) float32

    @cached_property
    def gaussians(self) -> Gaussians:
        """The mixtures as constants that densities need."""
        D = self.means.shape[2]
        used = self.counts > 0
        shares = self.counts / self.counts.sum(axis=1, keepdims=True)
        logs = np.log(np.where(used, shares, 1))
        norms = 0.5 * (np.log(self.variances).sum(axis=2) + D * np.log(2 * np.pi))
        constants = np.where(used, logs - norms, UNUSED).astype(np.float32)
        return Gaussians(constants, self.means, (1 / self.variances).astype(np.float32))

    def zero_sums(self) -> Sums:
        """Returns sums of no frames."""
        return Sums(*(np.zeros(array.shape) for array in (self.counts, self.means, self.means)))

    def reestimated(self, sums: Sums, speech: slice) -> "Mixtures":
        """Runs the M-step (Rabiner 1989, eqs. 52 to 54), smoothed where there are few frames.

        Mixtures after those of `speech` belong to unknown phones: they become a Gaussian of all
        speech.
        """
        counts = sums.counts[..., None]  # (P, K, 1)
        total = np.maximum(counts, 1e-3)
        mean = sums.values / total
        variance = sums.squares / total - mean**2
        trust = counts / (counts + _PRIOR_FRAMES)
        means = trust * mean + (1 - trust) * self.means
        variances = np.maximum(trust * variance + (1 - trust) * self.variances, LEAST_VARIANCE)
        # a Gaussian in use stays in use
        least = 1e-3 * np.maximum(1, sums.counts.mean(axis=1, keepdims=True))
        n_frames = np.where(self.counts > 0, np.maximum(sums.counts, least), 0)
        of_all = max(sums.counts[speech].sum(), 1e-3)
        mean_of_all = sums.values[speech].sum(axis=(0, 1)) / of_all
        n_frames[speech.stop :] = 0
        n_frames[speech.stop :, 0] = 1  # too few frames to be split
        means[speech.stop :, 0] = mean_of_all
        spread = sums.squares[speech].sum(axis=(0, 1)) / of_all - mean_of_all**2
        variances[speech.stop :, 0] = np.maximum(spread, LEAST_VARIANCE)
        return Mixtures(n_frames, means.astype(np.float32), variances.astype(np.float32))

    def split(self, most: np.ndarray) -> "Mixtures | None":
        """Adds Gaussians where there are enough frames, by splitting those with most frames in two.

        Up to `most` for each mixture, (P,); None if no mixture can grow.
        """
        K = self.means.shape[1]
        n_used = (self.counts > 0).sum(axis=1)
        wanted = np.clip(self.counts.sum(axis=1) // _FRAMES_PER_GAUSSIAN, 1, most).astype(int)
        if (wanted <= n_used).all():
            return None
        size = max(int(wanted.max()), K)
        more = ((0, 0), (0, size - K), (0, 0))
        counts, means = np.pad(self.counts, more[:2]), np.pad(self.means, more)
        variances = np.pad(self.variances, more, constant_values=1)
        for p in range(len(counts)):
            apart = np.full(size, _APART)  # halved each time, or Gaussians split twice would meet
            for new in range(n_used[p], wanted[p]):
                old = int(counts[p].argmax())
                offset = apart[old] * np.sqrt(variances[p, old])
                apart[old] = apart[new] = apart[old] / 2
                means[p, new], means[p, old] = means[p, old] + offset, means[p, old] - offset
                variances[p, new] = variances[p, old]
                counts[p, old] /= 2
                counts[p, new] = counts[p, old]
        return Mixtures(counts, means, variances)


def single_gaussians(sums: np.ndarray) -> Mixtures:
    """Returns one Gaussian for each row of sums, as those of contexts, (P, 1 + 2 D)."""
    D = sums.shape[1] // 2
    counts = np.maximum(sums[:, :1], 1e-3)
    means = sums[:, 1 : 1 + D] / np.maximum(counts, 1)
    variances = np.maximum(sums[:, 1 + D :] / np.maximum(counts, 1) - means**2, LEAST_VARIANCE)
    variances[counts[:, 0] < 1] = 1  # without frames
    shape = (len(counts), 1, D)
    means, variances = means.reshape(shape), variances.reshape(shape)
    return Mixtures(counts, means.astype(np.float32), variances.astype(np.float32))
