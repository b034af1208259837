"""The hidden Markov model of an utterance: states of its phones, and of optional silences."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

N_STATES = 4  # of each phone and silence, from left to right: 40 ms at least
SKIP = N_STATES + 1  # states from the last one before a silence to the first one after it
SILENCE_UNIT = 0

SilencePlace = Literal["edge", "punctuation", "word"]
SILENCE_PLACES: tuple[SilencePlace, ...] = ("edge", "punctuation", "word")


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
    """Phones, by the units of each word, with optional silences before, between and after words."""
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
    """The states of segments.

    Args:
        pdfs: Distribution of each of their states, (S,).
        stay: Probability of staying, by distribution, (P,).
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
