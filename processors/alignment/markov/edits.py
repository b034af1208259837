"""Whether a recording says something else than its text at one place: a test of likelihoods.

At every place up to `MOST_WORDS` words of the text, or none, are exchanged for sound of any kind,
which the background stands for: all states of the model together, in any order. The place where
the recording gains most by that is where text and recording differ, if they do. Both sides of it
are the best ways (Viterbi) through what stays of the text, so that words that were said and words
that were not do not spoil each other.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from processors.alignment.markov.acoustics import FRAME_S
from processors.alignment.markov.chain import N_STATES, Chain, Segment
from processors.alignment.markov.compiled import compiled

MOST_WORDS = 3
# What is said as it is written gains less than this by the exchange, so that it stays.
_COST = 80.0  # nats per second
_NEVER = -1e30
_BACK = N_STATES + 1  # from a state that follows a silence to the one before that silence


class Edit(NamedTuple):
    """An exchange of words for sound of any kind.

    Attributes:
        gain: Log-likelihood that it brings, nats, less `_COST`; never below 0. What silence at both
            ends of the words would cost is not charged, which is worth some nats everywhere.
        first: First word that is exchanged.
        past: One past the last one; the same as `first` where something stands between two words.
        start: First frame of the sound.
        end: One past its last frame.
    """

    gain: float
    first: int
    past: int
    start: int
    end: int


def background_of(known: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Log-likelihood of frames if nothing is known of what is said.

    Args:
        known: Log-likelihood of frames under each distribution, (T, P).
        counts: How often each was met, (P,).

    Returns:
        (T,) nats.
    """
    return np.asarray(_mixed(known, np.log(np.maximum(counts, 1e-9) / counts.sum())))


def best_edit(
    emissions: np.ndarray, background: np.ndarray, chain: Chain, segments: Sequence[Segment]
) -> Edit:
    """The exchange that gains most.

    Args:
        emissions: Log-likelihood of the frames under each distribution, (T, P).
        background: The same without knowledge of what is said, (T,).
        chain: States of the text, S of them.
        segments: What they belong to.
    """
    steps = _log_steps(chain)
    forward = _forward_scores(emissions, chain.pdfs, steps)  # (T, S)
    backward = _backward_scores(emissions, chain.pdfs, steps)  # (T, S)
    silences = np.array([number for number, segment in enumerate(segments) if segment.place])
    leaving = _log(1 - chain.stay)
    exits = _exits(forward, leaving, silences * N_STATES)  # (W + 1, T + 1)
    entries = _entries(backward, silences * N_STATES)  # (W + 1, T + 1)
    sound = np.concatenate([[0.0], np.cumsum(background - _COST * FRAME_S)])  # (T + 1,)
    gain, *place = _best(exits, entries, sound)
    unchanged = float((forward[-1] + steps.final).max())
    return Edit(max(float(gain) - unchanged, 0.0), *(int(number) for number in place))


class _LogSteps(NamedTuple):
    """Logarithms of a chain's probabilities, (S,) each."""

    stay: np.ndarray
    step: np.ndarray
    skip: np.ndarray
    start: np.ndarray
    final: np.ndarray


def _log_steps(chain: Chain) -> _LogSteps:
    return _LogSteps(*map(_log, (chain.stay, chain.step, chain.skip, chain.start, chain.final)))


def _log(values: np.ndarray) -> np.ndarray:
    logs = np.full(len(values), _NEVER)
    return np.log(values, out=logs, where=values > 0)


def _exits(forward: np.ndarray, leaving: np.ndarray, silences: np.ndarray) -> np.ndarray:
    """Best way to have said all words before a place by a time, (W + 1, T + 1).

    Args:
        forward: Best way to a state at a frame, (T, S).
        leaving: Log-probability of leaving a state, (S,).
        silences: First state of the silence at each place, (W + 1,).
    """
    left = forward + leaving
    exits = np.full((len(silences), len(forward) + 1), _NEVER)
    exits[:, 1:] = left[:, silences + N_STATES - 1].T
    exits[1:, 1:] = np.maximum(exits[1:, 1:], left[:, silences[1:] - 1].T)
    exits[0, 0] = 0.0
    return exits


def _entries(backward: np.ndarray, silences: np.ndarray) -> np.ndarray:
    """Best way from a time on through all words after a place, (W + 1, T + 1)."""
    entries = np.full((len(silences), len(backward) + 1), _NEVER)
    entries[:, :-1] = backward[:, silences].T
    after = backward[:, silences[:-1] + N_STATES].T
    entries[:-1, :-1] = np.maximum(entries[:-1, :-1], after)
    entries[-1, -1] = 0.0
    return entries


@compiled
def _mixed(known: np.ndarray, log_shares: np.ndarray) -> np.ndarray:  # log of sums over columns
    result = np.empty(len(known))
    for t in range(len(known)):
        best = _NEVER
        for p in range(len(log_shares)):
            best = max(best, known[t, p] + log_shares[p])
        total = 0.0
        for p in range(len(log_shares)):
            below = known[t, p] + log_shares[p] - best
            if below > -10.0:  # e**-10 of the best adds nothing
                total += np.exp(below)
        result[t] = best + np.log(total)
    return result


@compiled
def _forward_scores(emissions: np.ndarray, pdfs: np.ndarray, steps: _LogSteps) -> np.ndarray:
    T, S = len(emissions), len(pdfs)
    scores = np.empty((T, S))
    for s in range(S):
        scores[0, s] = steps.start[s] + emissions[0, pdfs[s]]
    for t in range(1, T):
        for s in range(S):
            best = scores[t - 1, s] + steps.stay[s]
            if s > 0:
                best = max(best, scores[t - 1, s - 1] + steps.step[s - 1])
            if steps.skip[s] > _NEVER:
                best = max(best, scores[t - 1, s - _BACK] + steps.skip[s])
            scores[t, s] = best + emissions[t, pdfs[s]]
    return scores


@compiled
def _backward_scores(emissions: np.ndarray, pdfs: np.ndarray, steps: _LogSteps) -> np.ndarray:
    # of all frames from t on, t included
    T, S = len(emissions), len(pdfs)
    scores = np.empty((T, S))
    for s in range(S):
        scores[T - 1, s] = steps.final[s] + emissions[T - 1, pdfs[s]]
    for t in range(T - 2, -1, -1):
        for s in range(S):
            best = scores[t + 1, s] + steps.stay[s]
            if s + 1 < S:
                best = max(best, scores[t + 1, s + 1] + steps.step[s])
            if s + _BACK < S and steps.skip[s + _BACK] > _NEVER:
                best = max(best, scores[t + 1, s + _BACK] + steps.skip[s + _BACK])
            scores[t, s] = best + emissions[t, pdfs[s]]
    return scores


@compiled
def _best(
    exits: np.ndarray, entries: np.ndarray, sound: np.ndarray
) -> tuple[float, int, int, int, int]:  # likelihood with the best edit, its words and frames
    found = (_NEVER, 0, 0, 0, 0)
    n_places, n_times = exits.shape
    for first in range(n_places):
        for past in range(first, min(first + MOST_WORDS + 1, n_places)):
            before, start = _NEVER, 0
            for t in range(n_times):
                if exits[first, t] - sound[t] > before:
                    before, start = exits[first, t] - sound[t], t
                if before + sound[t] + entries[past, t] > found[0]:
                    found = (before + sound[t] + entries[past, t], first, past, start, t)
    return found
