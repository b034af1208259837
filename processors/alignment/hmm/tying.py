"""State tying: which states share a distribution, by the neighbours of their phones.

Young, Odell and Woodland 1994, "Tree-based state tying for high accuracy acoustic modelling": a
binary tree for each state of each unit asks whether the phone to the left or right is one of a
set; every leaf is a distribution. The sets are not phonetic classes: they are found by clustering
the units of the corpus.
"""

from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from typing import NamedTuple

import numpy as np

from processors.alignment.hmm.chain import N_STATES, Segment
from processors.alignment.hmm.mixtures import LEAST_VARIANCE

MAX_LEAVES = 2500
_LEAST_FRAMES = 30  # of a leaf
# Nats that a question must gain for each feature and each nat of the logarithm of all frames: a
# quarter of the description length of a Gaussian (Shinoda and Watanabe 2000).
_LEAST_GAIN = 0.25

Contexts = dict[tuple[int, int, int], np.ndarray]
"""State of a unit, left and right unit: frames, their sum and that of their squares, (1 + 2 D,)."""


class Tying(NamedTuple):
    """Decision trees. A node is the number of a question, or, below 0, -1 - that of a leaf."""

    roots: np.ndarray  # node of each state, as `states_of` numbers them
    sets: np.ndarray  # units that questions are about, (Q, units) bool
    asked: np.ndarray  # set of each question, (M,)
    sides: np.ndarray  # neighbour that it is about: 0 left, 1 right, (M,)
    branches: np.ndarray  # node after no, and after yes, (M, 2)

    def pdfs_of(self, segments: Sequence[Segment]) -> np.ndarray:
        """Returns the distribution of each state of segments, (N * N_STATES,)."""
        context = np.repeat(neighbours(segments), N_STATES, axis=1)  # (2, S)
        node = self.roots[states_of(segments)]  # (S,)
        while (node >= 0).any():
            places = np.flatnonzero(node >= 0)
            question = node[places]
            answers = self.sets[self.asked[question], context[self.sides[question], places]]
            node[places] = self.branches[question, answers.astype(int)]
        return -1 - node


def no_context(n_units: int) -> Tying:
    """Returns context-independent states: one distribution each."""
    none = np.zeros(0, np.int64)
    sets = np.zeros((0, n_units), bool)
    return Tying(-1 - np.arange(n_states(n_units)), sets, none, none, np.zeros((0, 2), np.int64))


def n_states(n_units: int) -> int:
    """Returns the number of context-independent states."""
    return 1 + (n_units - 1) * N_STATES


def states_of(segments: Sequence[Segment]) -> np.ndarray:
    """Returns the number of each state of segments, (N * N_STATES,)."""
    units = np.array([segment.unit for segment in segments])
    numbers = (units[:, None] - 1) * N_STATES + 1 + np.arange(N_STATES)  # (N, N_STATES)
    # all states of silence are state 0: separate ones absorbed phone onsets
    return np.where(units[:, None] == 0, 0, numbers).ravel()


def neighbours(segments: Sequence[Segment]) -> np.ndarray:
    """Returns units to the left and right of each segment, (2, N); 0 for those of silence."""
    context = np.zeros((2, len(segments)), np.int64)
    for number, segment in enumerate(segments):
        for side, step in enumerate((-1, 1)):
            if not segment.place:
                past = segments[number + step].place == "word"  # such silences are rare
                context[side, number] = segments[number + (2 * step if past else step)].unit
    return context


class TiedStates(NamedTuple):
    """The tying of a corpus."""

    tying: Tying  # P leaves: the first is of silence, the last N_STATES are of unknown phones
    sums: np.ndarray  # of the frames of each leaf, as of a context, (P, 1 + 2 D)
    states: np.ndarray  # which state of which unit a leaf belongs to, (P,)


def accumulate_contexts(
    contexts: Contexts, frames: np.ndarray, occupancy: np.ndarray, segments: Sequence[Segment]
) -> None:
    """Adds the frames of an utterance, (T, D), by the probabilities of its states, (T, S)."""
    observed = np.concatenate([np.ones((len(frames), 1)), frames, frames**2], axis=1)
    sums = occupancy.T @ observed  # (S, 1 + 2 D)
    neighbour_units = np.repeat(neighbours(segments), N_STATES, axis=1)
    for number, key in enumerate(zip(states_of(segments), *neighbour_units, strict=True)):
        if key in contexts:
            contexts[key] += sums[number]
        else:
            contexts[key] = sums[number].copy()


def tie(contexts: Contexts, n_units: int) -> TiedStates:
    """Grows the trees greedily, the question with the largest gain first."""
    keys = sorted(contexts)
    forest = _Forest(np.array(keys), np.array([contexts[key] for key in keys]), n_units)
    members, n_roots = forest.members, len(forest.members)
    open_splits = [split for root in range(1, n_roots) for split in forest.best_split(root)]
    heapify(open_splits)
    while open_splits and len(members) - len(forest.splits) < MAX_LEAVES:
        split = heappop(open_splits)
        yes = forest.sets[split.asked, forest.keys[members[split.node], 1 + split.side]]
        forest.splits[split.node] = (split, len(members))
        for answers in (~yes, yes):
            members.append(members[split.node][answers])
            for further in forest.best_split(len(members) - 1):
                heappush(open_splits, further)
    return forest.numbered(n_roots)


class _Split(NamedTuple):
    """A question that may be asked at a leaf; the largest gain sorts first."""

    loss: float
    node: int
    side: int
    asked: int


class _Forest:
    """Trees while they grow, over contexts, (C, 3), and their sums, (C, 1 + 2 D)."""

    def __init__(self, keys: np.ndarray, sums: np.ndarray, n_units: int) -> None:
        self.keys, self.sums, self.n_units = keys, sums, n_units
        self.sets = _sets((keys[:, 0] + N_STATES - 1) // N_STATES, sums, n_units)
        n_features = sums.shape[1] // 2
        self.least_gain = _LEAST_GAIN * n_features * np.log(max(sums[:, 0].sum(), 2.0))
        # contexts of every node; questions by node
        self.members = [np.flatnonzero(keys[:, 0] == root) for root in range(n_states(n_units))]
        self.splits: dict[int, tuple[_Split, int]] = {}  # and the first of its two branches

    def best_split(self, node: int) -> list[_Split]:
        """Returns the question with the largest gain at a leaf, if it gains enough."""
        members = self.members[node]
        if len(members) < 2:
            return []
        total = self.sums[members].sum(axis=0)
        best = []
        for side in (0, 1):
            answers = self.sets[:, self.keys[members, 1 + side]].astype(float)
            yes = answers @ self.sums[members]  # (Q, 1 + 2 D)
            no = total - yes
            # rounded: the last digits of sums must not favour a smaller set
            loss = np.round(_cost(yes) + _cost(no) - _cost(total), 6)
            loss[np.minimum(yes[:, 0], no[:, 0]) < _LEAST_FRAMES] = np.inf
            best.append(_Split(float(loss.min()), node, side, int(loss.argmin())))
        return [min(best)] if min(best).loss < -self.least_gain else []

    def numbered(self, n_roots: int) -> TiedStates:
        """Returns questions and leaves with numbers, in the order of the roots."""
        questions = {node: number for number, node in enumerate(self.splits)}
        leaves: list[int] = []

        def number_of(node: int) -> int:
            if node in questions:
                first = self.splits[node][1]
                branches[questions[node]] = number_of(first), number_of(first + 1)
                return questions[node]
            leaves.append(node)
            return -len(leaves)

        branches = np.zeros((len(questions), 2), np.int64)
        roots: list[int] = []
        states: list[int] = []
        for root in range(n_roots):
            roots.append(number_of(root))
            states += [root] * (len(leaves) - len(states))
        asked = np.array([split.asked for split, _ in self.splits.values()], np.int64)
        sides = np.array([split.side for split, _ in self.splits.values()], np.int64)
        tying = Tying(np.array(roots), self.sets, asked, sides, branches)
        sums = np.array([self.sums[self.members[leaf]].sum(axis=0) for leaf in leaves])
        return TiedStates(tying, sums, np.array(states))


def _cost(sums: np.ndarray) -> np.ndarray:
    """Computes the negative log-likelihood of frames under their Gaussian, up to a constant."""
    D = sums.shape[-1] // 2
    count = np.maximum(sums[..., :1], 1e-6)
    mean = sums[..., 1 : 1 + D] / count
    variance = np.maximum(sums[..., 1 + D :] / count - mean**2, LEAST_VARIANCE)
    return np.asarray(0.5 * sums[..., 0] * np.log(variance).sum(axis=-1))


def _sets(units: np.ndarray, sums: np.ndarray, n_units: int) -> np.ndarray:
    """Finds sets of similar units, (Q, units), by agglomerative clustering; the largest first."""
    of_unit = np.zeros((n_units, sums.shape[1]))
    np.add.at(of_unit, units, sums)
    groups = np.eye(n_units, dtype=bool)[of_unit[:, 0] > 0]
    joined = of_unit[of_unit[:, 0] > 0]
    sets = list(groups)
    while len(groups) > 2:
        cost = _cost(joined)
        loss = _cost(joined[:, None] + joined) - cost[:, None] - cost
        np.fill_diagonal(loss, np.inf)
        first, second = np.unravel_index(int(loss.argmin()), loss.shape)
        is_other = ~np.isin(np.arange(len(groups)), (first, second))
        groups = np.concatenate([groups[is_other], [groups[first] | groups[second]]])
        joined = np.concatenate([joined[is_other], [joined[first] + joined[second]]])
        sets.append(groups[-1])
    # of two that split the training data equally, the larger one covers more of other data
    return np.array(sets[::-1])
