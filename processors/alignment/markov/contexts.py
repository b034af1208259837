"""Which states sound alike: those of a phone are told apart by its neighbours, as far as that pays.

A binary tree for each state of each unit asks whether the phone to the left or right is one of a
set; every leaf is a distribution (Young, Odell and Woodland 1994, "Tree-based state tying for high
accuracy acoustic modelling"). The sets are no phonetics: they are what sounds alike in the corpus.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from processors.alignment.markov.chain import N_STATES, Segment


class Tying(NamedTuple):
    """The trees. A node is the number of a question, or, below 0, -1 - the number of a leaf.

    Attributes:
        roots: Node of each state, as `states_of` numbers them.
        sets: Units that questions are about, (Q, units) bool.
        asked: Which set a question is about, (M,).
        sides: Of whom: 0 of the left neighbour, 1 of the right one, (M,).
        branches: Node after no, and after yes, (M, 2).
    """

    roots: np.ndarray
    sets: np.ndarray
    asked: np.ndarray
    sides: np.ndarray
    branches: np.ndarray

    def pdfs_of(self, segments: Sequence[Segment]) -> np.ndarray:
        """The distribution of each state of segments, (N * N_STATES,)."""
        beside = np.repeat(neighbours(segments), N_STATES, axis=1)  # (2, S)
        node = self.roots[states_of(segments)]  # (S,)
        while (node >= 0).any():
            places = np.flatnonzero(node >= 0)
            question = node[places]
            answers = self.sets[self.asked[question], beside[self.sides[question], places]]
            node[places] = self.branches[question, answers.astype(int)]
        return -1 - node


def no_context(n_units: int) -> Tying:
    """The same distributions whatever the neighbours are."""
    none = np.zeros(0, np.int64)
    sets = np.zeros((0, n_units), bool)
    return Tying(-1 - np.arange(n_states(n_units)), sets, none, none, np.zeros((0, 2), np.int64))


def n_states(n_units: int) -> int:
    """How many states can be told apart without context."""
    return 1 + (n_units - 1) * N_STATES


def states_of(segments: Sequence[Segment]) -> np.ndarray:
    """Number of each state of segments, (N * N_STATES,).

    All states of silence are one, 0: states of their own would learn how phones begin and end, and
    take these parts from them.
    """
    units = np.array([segment.unit for segment in segments])
    numbers = (units[:, None] - 1) * N_STATES + 1 + np.arange(N_STATES)  # (N, N_STATES)
    return np.where(units[:, None] == 0, 0, numbers).ravel()


def neighbours(segments: Sequence[Segment]) -> np.ndarray:
    """Units to the left and right of each segment, (2, N); 0 for those of silence.

    Silence without punctuation is rare: phones look past it.
    """
    beside = np.zeros((2, len(segments)), np.int64)
    for number, segment in enumerate(segments):
        for side, step in enumerate((-1, 1)):
            if not segment.place:
                past = segments[number + step].place == "word"
                beside[side, number] = segments[number + (2 * step if past else step)].unit
    return beside
