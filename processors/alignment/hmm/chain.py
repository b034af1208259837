"""The hidden Markov model of an utterance, and its posteriors.

States of the phones and of optional silences, and the forward-backward algorithm on them (Rabiner
1989, "A tutorial on hidden Markov models", III.A-B).
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from modules.compiled import compiled

N_STATES = 4  # of each phone and silence, from left to right: 40 ms at least
SKIP = N_STATES + 1  # states from the last one before a silence to the first one after it
SILENCE_UNIT = 0

SilencePlace = Literal["edge", "punctuation", "word"]
SILENCE_PLACES: tuple[SilencePlace, ...] = ("edge", "punctuation", "word")
_PRUNED = 1e-100  # states at the ends of the active span are dropped below this probability
_LOWEST = -300.0  # nats below the best state of a frame: products with `_PRUNED` stay above 0


class Segment(NamedTuple):
    """A phone, or an optional silence."""

    unit: int  # number of its acoustic unit
    # of a silence: at an edge, after punctuation or after another word; "" for phones
    place: SilencePlace | Literal[""] = ""


class Chain(NamedTuple):
    """States from left to right; S is N_STATES times the number of segments. Arrays alone."""

    pdfs: np.ndarray  # distribution of each state, (S,)
    stay: np.ndarray  # probability of staying in a state for another frame, (S,)
    step: np.ndarray  # of the transition to the next state, (S,)
    # of the transition into a state from the phone before the silence before it, (S,); mostly 0
    skip: np.ndarray
    start: np.ndarray  # initial probability, (S,)
    final: np.ndarray  # probability of ending after a state, (S,)


def segments_of(words: Sequence[Sequence[int]], punctuated: Sequence[bool]) -> tuple[Segment, ...]:
    """Lists phones, by the units of each word, and optional silences around each word."""
    segments = [Segment(SILENCE_UNIT, "edge")]
    for word, marked in zip(words, punctuated, strict=True):
        segments += [Segment(unit) for unit in word]
        segments.append(Segment(SILENCE_UNIT, "punctuation" if marked else "word"))
    segments[-1] = Segment(SILENCE_UNIT, "edge")
    return tuple(segments)


def chain_of(
    segments: Sequence[Segment],
    pdfs: np.ndarray,
    stay: np.ndarray,
    silence_shares: dict[SilencePlace, float],
) -> Chain:
    """Builds the states of segments, from the distribution of each of them, (S,).

    Args:
        stay: Probability of staying in a state, by distribution, (P,).
        silence_shares: Probability of silence, by place.
    """
    S = len(pdfs)
    stays = stay[pdfs]
    step = 1 - stays
    skip, start, final = np.zeros(S), np.zeros(S), np.zeros(S)
    final[-1] = step[-1]
    for number, segment in enumerate(segments):
        if not segment.place:
            continue
        first, after = number * N_STATES, (number + 1) * N_STATES
        share = silence_shares[segment.place]
        leaving = step[first - 1] if number else 1.0
        if number == 0:
            start[0], start[after] = share, 1 - share
        elif after == S:
            final[first - 1] = leaving * (1 - share)
        else:
            skip[after] = leaving * (1 - share)
        if number:
            step[first - 1] = leaving * share
    return Chain(pdfs, stays, step, skip, start, final)


@compiled
def _arrive(chain: Chain, before: np.ndarray, span: np.ndarray, row: np.ndarray) -> None:
    # probabilities before the emission, from those of the frame before
    stay, step, skip = chain.stay, chain.step, chain.skip  # in the loop, lookups would take longer
    for s in range(span[0], span[1]):
        value = before[s] * stay[s]
        if s > 0:
            value += before[s - 1] * step[s - 1]
        if skip[s] > 0:
            value += before[s - SKIP] * skip[s]
        row[s] = value


@compiled
def _emit(row: np.ndarray, likelihoods: np.ndarray, columns: np.ndarray, span: np.ndarray) -> float:
    # multiplies row by the likelihoods, scales it to sum 1 and prunes span at both ends
    low, high = span
    scale = 0.0
    for s in range(low, high):
        row[s] *= likelihoods[columns[s]]
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
    return float(np.log(scale))


@compiled
def _forward(
    likelihoods: np.ndarray,
    columns: np.ndarray,
    chain: Chain,
    forward: np.ndarray,
    spans: np.ndarray,
) -> float:  # fills forward (T, S), each frame scaled to 1, and spans (T, 2) of the active states
    T, S = forward.shape
    forward[0] = chain.start
    spans[0, 1] = S
    total = _emit(forward[0], likelihoods[0], columns, spans[0])
    for t in range(1, T):
        if not np.isfinite(total):
            break
        spans[t, 0], spans[t, 1] = spans[t - 1, 0], min(S, spans[t - 1, 1] + SKIP)
        _arrive(chain, forward[t - 1], spans[t], forward[t])
        total += _emit(forward[t], likelihoods[t], columns, spans[t])
    return total


@compiled
def _depart(chain: Chain, weight: np.ndarray, span: np.ndarray, later: np.ndarray) -> None:
    # backward variable of the frame before: the reverse of _arrive
    later[:] = 0.0
    for s in range(span[0], span[1]):
        later[s] += chain.stay[s] * weight[s]
        if s > 0:
            later[s - 1] += chain.step[s - 1] * weight[s]
        if chain.skip[s] > 0:
            later[s - SKIP] += chain.skip[s] * weight[s]


@compiled
def _backward(
    likelihoods: np.ndarray,
    columns: np.ndarray,
    chain: Chain,
    occupancy: np.ndarray,
    spans: np.ndarray,
    skipped: np.ndarray,
) -> bool:  # turns the forward variables in occupancy into posteriors; fills skipped (S,)
    T, S = occupancy.shape
    later, weight = chain.final.copy(), np.zeros(S)
    for t in range(T - 1, -1, -1):
        low, high = spans[t]
        scale = 0.0
        for s in range(low, high):
            scale += occupancy[t, s] * later[s]
        if not scale > 0:
            return False
        for s in range(low, high):
            occupancy[t, s] *= later[s] / scale
            weight[s] = later[s] / scale * likelihoods[t, columns[s]]
        if t > 0:
            _depart(chain, weight, spans[t], later)
            reached = (occupancy[t - 1] * later).sum()
            for s in range(low, high):
                if chain.skip[s] > 0 and reached > 0:
                    origin = occupancy[t - 1, s - SKIP]
                    skipped[s] += origin * chain.skip[s] * weight[s] / reached
    return True


class Posteriors(NamedTuple):
    """Posterior probabilities of the states of an utterance."""

    # probability of each state at each frame, (T, S); gamma of Rabiner's eq. 27
    occupancy: np.ndarray
    skipped: np.ndarray  # probability that a state is entered past the silence before it, (S,)
    log_likelihood: float  # of all frames; -inf if no path leads through the chain


def forward_backward(emissions: np.ndarray, columns: np.ndarray, chain: Chain) -> Posteriors:
    """Computes state posteriors over all paths through a chain, with scaled variables and pruning.

    Args:
        emissions: Log-likelihood of the frames under each distribution, (T, U).
        columns: Column of `emissions` for each state, (S,).
    """
    T, S = len(emissions), len(columns)
    peaks = emissions.max(axis=1, keepdims=True)
    likelihoods = np.exp(np.maximum(emissions - peaks, _LOWEST))  # of each frame, 1 at most
    occupancy, skipped = np.zeros((T, S)), np.zeros(S)
    spans = np.zeros((T, 2), dtype=np.int64)
    total = _forward(likelihoods, columns, chain, occupancy, spans)
    ending = float(occupancy[-1] @ chain.final)
    if not (np.isfinite(total) and ending > 0):
        return Posteriors(occupancy, skipped, -np.inf)
    if not _backward(likelihoods, columns, chain, occupancy, spans, skipped):
        return Posteriors(occupancy, skipped, -np.inf)
    return Posteriors(occupancy, skipped, float(total + peaks.sum() + np.log(ending)))
