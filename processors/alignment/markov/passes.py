"""The inner loops of the aligner, as machine code."""

from typing import NamedTuple

import numpy as np

from processors.alignment.markov.chain import N_STATES, Chain
from processors.alignment.markov.compiled import compiled

UNUSED = -1e30  # log-weight of a component that is not in use
_PRUNED = 1e-100  # states at the ends of the window with less than this are given up
_NEGLIGIBLE = 1e-4  # occupancy below which a frame teaches a state nothing
_BACK = N_STATES + 1  # from a state that follows a silence to the one before that silence


class Gaussians(NamedTuple):
    """P mixtures of K diagonal Gaussians, ready for use.

    Attributes:
        constants: Log-weight and normalisation, (P, K) float32; `UNUSED` where there is none.
        means: (P, K, D) float32.
        precisions: Inverse variances, (P, K, D) float32.
    """

    constants: np.ndarray
    means: np.ndarray
    precisions: np.ndarray


class Sums(NamedTuple):
    """What Gaussians are learnt from.

    Attributes:
        counts: Frames, (P, K).
        values: Sum of the frames, (P, K, D).
        squares: Sum of their squares, (P, K, D).
    """

    counts: np.ndarray
    values: np.ndarray
    squares: np.ndarray


@compiled
def _log_density(
    frame: np.ndarray, gaussians: Gaussians, pdf: int, logs: np.ndarray
) -> float:  # fills logs (K,) with the components' shares of the density
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
    return best + np.log(total)


@compiled
def log_likelihoods(frames: np.ndarray, gaussians: Gaussians, pdfs: np.ndarray) -> np.ndarray:
    """Log-likelihood of frames under mixtures.

    Args:
        frames: (T, D) float32.
        gaussians: All mixtures.
        pdfs: Those that are wanted, (U,).

    Returns:
        (T, U) float64.
    """
    shares = np.empty(gaussians.means.shape[1])
    result = np.empty((len(frames), len(pdfs)))
    for column in range(len(pdfs)):
        for t in range(len(frames)):
            result[t, column] = _log_density(frames[t], gaussians, pdfs[column], shares)
    return result


@compiled
def accumulate(
    frames: np.ndarray, occupancy: np.ndarray, pdfs: np.ndarray, gaussians: Gaussians, sums: Sums
) -> None:
    """Adds what each Gaussian is responsible for to its sums.

    Args:
        frames: (T, D) float32.
        occupancy: Probability of each state at each frame, (T, S).
        pdfs: Mixture of each state, (S,).
        gaussians: All mixtures.
        sums: Of all mixtures; added to.
    """
    T, D = frames.shape
    shares = np.empty(gaussians.means.shape[1])
    for s in range(len(pdfs)):
        p = pdfs[s]
        for t in range(T):
            if occupancy[t, s] < _NEGLIGIBLE:
                continue
            _log_density(frames[t], gaussians, p, shares)
            for k in range(len(shares)):
                weight = occupancy[t, s] * shares[k]
                if weight > 0:
                    sums.counts[p, k] += weight
                    for d in range(D):
                        value = weight * frames[t, d]
                        sums.values[p, k, d] += value
                        sums.squares[p, k, d] += value * frames[t, d]


@compiled
def _arrival(chain: Chain, before: np.ndarray, s: int) -> float:  # at s, from the frame before
    value = before[s] * chain.stay[s]
    if s > 0:
        value += before[s - 1] * chain.step[s - 1]
    if chain.skip[s] > 0:
        value += before[s - _BACK] * chain.skip[s]
    return float(value)


@compiled
def _weigh(row: np.ndarray, emissions: np.ndarray, columns: np.ndarray, span: np.ndarray) -> float:
    # multiplies row by what the frame says, scales it to 1 and narrows span to what is left
    low, high = span
    best, scale = -np.inf, 0.0
    for s in range(low, high):
        if row[s] > 0:
            best = max(best, emissions[columns[s]])
    for s in range(low, high):
        row[s] *= np.exp(min(emissions[columns[s]] - best, 0.0))
        scale += row[s]
    if not scale > 0:
        return -np.inf
    row[low:high] /= scale
    while row[low] < _PRUNED:
        low += 1
    while row[high - 1] < _PRUNED:
        high -= 1
    row[span[0] : low] = 0.0
    row[high : span[1]] = 0.0
    span[0], span[1] = low, high
    return best + np.log(scale)


@compiled
def _forward(
    emissions: np.ndarray, columns: np.ndarray, chain: Chain, forward: np.ndarray, spans: np.ndarray
) -> float:  # fills forward (T, S), each frame scaled to 1, and spans (T, 2) of the active states
    T, S = forward.shape
    forward[0] = chain.start
    spans[0, 1] = S
    total = _weigh(forward[0], emissions[0], columns, spans[0])
    for t in range(1, T):
        if not np.isfinite(total):
            break
        spans[t, 0], spans[t, 1] = spans[t - 1, 0], min(S, spans[t - 1, 1] + _BACK)
        for s in range(spans[t, 0], spans[t, 1]):
            forward[t, s] = _arrival(chain, forward[t - 1], s)
        total += _weigh(forward[t], emissions[t], columns, spans[t])
    return total


@compiled
def _depart(chain: Chain, weight: np.ndarray, span: np.ndarray, later: np.ndarray) -> None:
    # what is to come, seen from the frame before: the reverse of _arrival
    later[:] = 0.0
    for s in range(span[0], span[1]):
        later[s] += chain.stay[s] * weight[s]
        if s > 0:
            later[s - 1] += chain.step[s - 1] * weight[s]
        if chain.skip[s] > 0:
            later[s - _BACK] += chain.skip[s] * weight[s]


@compiled
def _backward(
    emissions: np.ndarray,
    columns: np.ndarray,
    chain: Chain,
    occupancy: np.ndarray,
    spans: np.ndarray,
    skipped: np.ndarray,
) -> bool:  # turns what _forward found into probabilities; fills skipped (S,)
    T, S = occupancy.shape
    later, weight = chain.final.copy(), np.zeros(S)
    for t in range(T - 1, -1, -1):
        low, high = spans[t]
        scale, best = 0.0, -np.inf
        for s in range(low, high):
            scale += occupancy[t, s] * later[s]
            best = max(best, emissions[t, columns[s]])
        if not scale > 0:
            return False
        for s in range(low, high):
            occupancy[t, s] *= later[s] / scale
            weight[s] = later[s] / scale * np.exp(emissions[t, columns[s]] - best)
        if t > 0:
            _depart(chain, weight, spans[t], later)
            reached = (occupancy[t - 1] * later).sum()
            for s in range(low, high):
                if chain.skip[s] > 0 and reached > 0:
                    origin = occupancy[t - 1, s - _BACK]
                    skipped[s] += origin * chain.skip[s] * weight[s] / reached
    return True


class Pass(NamedTuple):
    """What all ways through a chain, each with its probability, say about an utterance.

    Attributes:
        occupancy: Probability of each state at each frame, (T, S).
        skipped: Probability that a state is entered past the silence before it, (S,).
        log_likelihood: Of all frames; -inf if there is no way through.
    """

    occupancy: np.ndarray
    skipped: np.ndarray
    log_likelihood: float


def forward_backward(emissions: np.ndarray, columns: np.ndarray, chain: Chain) -> Pass:
    """Weighs all ways through a chain (the forward-backward algorithm; Rabiner 1989, section III).

    States with next to no chance at a frame are left out there, from both ends of the active ones.

    Args:
        emissions: Log-likelihood of the frames under each distribution, (T, U).
        columns: Column of `emissions` for each state, (S,).
        chain: The states.
    """
    T, S = len(emissions), len(columns)
    occupancy, skipped = np.zeros((T, S)), np.zeros(S)
    spans = np.zeros((T, 2), dtype=np.int64)
    total = _forward(emissions, columns, chain, occupancy, spans)
    ending = float(occupancy[-1] @ chain.final)
    if not (np.isfinite(total) and ending > 0):
        return Pass(occupancy, skipped, -np.inf)
    if not _backward(emissions, columns, chain, occupancy, spans, skipped):
        return Pass(occupancy, skipped, -np.inf)
    return Pass(occupancy, skipped, total + float(np.log(ending)))
