"""Finds where a recording differs from its text, by a likelihood-ratio test of every short edit.

At every place up to `MAX_WORDS` words of the text, or none, are replaced by arbitrary sound, as
the background model scores it. Text and recording differ, if at all, at the place of the largest
gain in log-likelihood. Both sides of it are scored by the best path (Viterbi; Rabiner 1989,
section III.B) through the words that stay, so that several errors do not affect each other.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from modules.compiled import compiled
from processors.alignment.hmm.chain import N_STATES, SKIP, Chain, Segment
from processors.alignment.hmm.model import FRAME_S, HmmAlignment
from processors.records import AlignmentScore

MAX_WORDS = 3
_COST = 80.0  # nats per second of replaced sound; correct speech gains less, so that it stays
_NEVER = -1e30


class Edit(NamedTuple):
    """A replacement of words by arbitrary sound."""

    # Increase of the log-likelihood, nats, less `_COST`; never below 0. Silences at both ends of
    # the words are free, which is worth some nats everywhere.
    gain: float
    first: int  # first word that is replaced
    past: int  # one past the last one; equal to `first` where sound is inserted between two words
    start: int  # first frame of the sound
    end: int  # one past its last frame


def score_of(
    aligned: HmmAlignment, chain: Chain, segments: Sequence[Segment], words: Sequence[str]
) -> AlignmentScore:
    """Scores how well a recording fits its words, whose phones are those of the segments."""
    edit = best_edit(aligned.emissions, aligned.background, chain, segments)
    start_s, end_s = round(edit.start * FRAME_S, 3), round(edit.end * FRAME_S, 3)
    replaced = " ".join(words[edit.first : edit.past])
    if not replaced:  # sound between two words, or before the first or after the last
        before, after = words[: edit.first][-1:], words[edit.past :][:1]
        replaced = " ... ".join([*before, *([] if before and after else [""]), *after])
    return AlignmentScore(round(edit.gain, 2), replaced, start_s, end_s)


def best_edit(
    emissions: np.ndarray, background: np.ndarray, chain: Chain, segments: Sequence[Segment]
) -> Edit:
    """Returns the edit with the largest gain, from log-likelihoods (T, P), and background (T,)."""
    logs = Chain(chain.pdfs, *map(_log, chain[1:]))  # of its probabilities
    forward = _forward_scores(emissions, logs)  # (T, S)
    # of the frames from t on, t included: the best path from the end through the reversed chain
    backward = _forward_scores(np.ascontiguousarray(emissions[::-1]), _reversed(logs))
    places = [number for number, segment in enumerate(segments) if segment.place]
    silences = np.array(places) * N_STATES
    exits = _exits(forward + _log(1 - chain.stay), silences)  # (W + 1, T + 1)
    # the best path from a time on through all words after a place, (W + 1, T + 1)
    S = len(chain.pdfs)
    entries = np.ascontiguousarray(_exits(backward, S - N_STATES - silences[::-1])[::-1, ::-1])
    sound = np.concatenate([[0.0], np.cumsum(background - _COST * FRAME_S)])  # (T + 1,)
    gain, *span = _best(exits, entries, sound)
    unchanged = float((forward[-1] + logs.final).max())
    return Edit(max(float(gain) - unchanged, 0.0), *map(int, span))


def _log(values: np.ndarray) -> np.ndarray:
    return np.log(values, out=np.full(len(values), _NEVER), where=values > 0)


def _exits(left: np.ndarray, silences: np.ndarray) -> np.ndarray:
    """Scores the best path through all words before a place up to a time, (W + 1, T + 1)."""
    # from the best paths that leave a state, (T, S), and the first state of each silence, (W + 1,)
    exits = np.full((len(silences), len(left) + 1), _NEVER)
    exits[:, 1:] = left[:, silences + N_STATES - 1].T
    exits[1:, 1:] = np.maximum(exits[1:, 1:], left[:, silences[1:] - 1].T)
    exits[0, 0] = 0.0
    return exits


@compiled
def _forward_scores(emissions: np.ndarray, logs: Chain) -> np.ndarray:
    T, S = len(emissions), len(logs.pdfs)
    scores = np.empty((T, S))
    for s in range(S):
        scores[0, s] = logs.start[s] + emissions[0, logs.pdfs[s]]
    for t in range(1, T):
        for s in range(S):
            best = scores[t - 1, s] + logs.stay[s]
            if s > 0:
                best = max(best, scores[t - 1, s - 1] + logs.step[s - 1])
            if logs.skip[s] > _NEVER:
                best = max(best, scores[t - 1, s - SKIP] + logs.skip[s])
            scores[t, s] = best + emissions[t, logs.pdfs[s]]
    return scores


def _reversed(logs: Chain) -> Chain:
    """Reverses a chain; transitions stay with the state that they lead from or to."""
    pdfs, stay, step, skip, start, final = (np.ascontiguousarray(part[::-1]) for part in logs)
    return Chain(pdfs, stay, np.roll(step, -1), np.roll(skip, SKIP), final, start)


@compiled
def _best(
    exits: np.ndarray, entries: np.ndarray, sound: np.ndarray
) -> tuple[float, int, int, int, int]:  # likelihood with the best edit, its words and frames
    best = (_NEVER, 0, 0, 0, 0)
    n_places, n_times = exits.shape
    for first in range(n_places):
        for past in range(first, min(first + MAX_WORDS + 1, n_places)):
            before, start = _NEVER, 0
            for t in range(n_times):
                if exits[first, t] - sound[t] > before:
                    before, start = exits[first, t] - sound[t], t
                if before + sound[t] + entries[past, t] > best[0]:
                    best = (before + sound[t] + entries[past, t], first, past, start, t)
    return best
