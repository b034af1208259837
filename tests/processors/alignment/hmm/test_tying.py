import numpy as np
import pytest

from processors.alignment.hmm import tying
from processors.alignment.hmm.chain import N_STATES, segments_of
from processors.alignment.hmm.tying import (
    Tying,
    accumulate_contexts,
    n_states,
    neighbours,
    no_context,
    states_of,
    tie,
)

N_UNITS = 6  # silence, four phones, unknown phones
N_FEATURES = 20


def heard(seed=0, n=150, shift=3.0):
    """Contexts of words of three phones; only unit 1 changes before 3 and 4, in its last state."""
    rng = np.random.default_rng(seed)
    means = np.random.default_rng(9).normal(0, 1.5, (n_states(N_UNITS), N_FEATURES))
    # the third and the fourth phone sound nearly alike
    means[n_states(4) : n_states(5)] = means[n_states(3) : n_states(4)] + 0.2
    contexts = {}
    for _ in range(n):
        units = rng.integers(1, 5, 3)
        segments = segments_of([units.tolist()], [False])
        frames = np.repeat(means[states_of(segments)], 3, axis=0)
        for place in np.flatnonzero((units[:-1] == 1) & (units[1:] >= 3)):
            last = ((place + 2) * N_STATES - 1) * 3
            frames[last : last + 3] += shift
        frames = frames + rng.normal(0, 0.5, frames.shape)
        occupancy = np.repeat(np.eye(len(segments) * N_STATES), 3, axis=0)
        accumulate_contexts(contexts, frames, occupancy, segments)
    return contexts


def pdfs_in(tied, word):
    """Of the states of the first phone."""
    return tied.tying.pdfs_of(segments_of([word], [False])).reshape(-1, N_STATES)[1].tolist()


def test_a_state_that_sounds_different_before_some_phones_is_told_apart_there():
    tied = tie(heard(), N_UNITS)
    *alike, last = pdfs_in(tied, [1, 2])
    assert pdfs_in(tied, [1, 4]) == pdfs_in(tied, [1, 3]) != [*alike, last]
    assert pdfs_in(tied, [1, 3])[:-1] == alike  # only the last state differs
    assert len(tied.states) == n_states(N_UNITS) + 1
    assert tied.states[last] == tied.states[pdfs_in(tied, [1, 3])[-1]] == N_STATES


def test_leaves_hold_the_frames_of_their_contexts_silence_first_and_unknown_phones_last():
    contexts = heard()
    tied = tie(contexts, N_UNITS)
    assert tied.sums.sum(axis=0) == pytest.approx(sum(contexts.values()))
    assert tied.states[:2].tolist() == [0, 1]
    assert tied.states[-N_STATES:].tolist() == list(range(n_states(5), n_states(6)))
    assert not tied.sums[-N_STATES:].any()
    before_3 = pdfs_in(tied, [1, 3])[-1]
    expected = sum(s for (state, _, right), s in contexts.items() if state == 4 and right >= 3)
    assert tied.sums[before_3] == pytest.approx(expected)


def test_nothing_is_told_apart_that_sounds_alike_or_beyond_the_allowed_leaves(monkeypatch):
    assert np.array_equal(tie(heard(shift=0.0), N_UNITS).states, np.arange(n_states(N_UNITS)))
    monkeypatch.setattr(tying, "MAX_LEAVES", n_states(N_UNITS))
    assert len(tie(heard(), N_UNITS).states) == n_states(N_UNITS)


def test_a_context_that_was_not_met_is_treated_like_one_that_sounds_alike():
    contexts = {key: sums for key, sums in heard().items() if key[0] != N_STATES or key[2] != 4}
    tied = tie(contexts, N_UNITS)
    assert pdfs_in(tied, [1, 4]) == pdfs_in(tied, [1, 3]) != pdfs_in(tied, [1, 2])


def test_phones_have_neighbours_past_silence_without_punctuation():
    segments = segments_of([[1, 2], [3], [4]], [False, True, False])
    left, right = neighbours(segments)
    spoken = [not segment.place for segment in segments]
    assert left[spoken].tolist() == [0, 1, 2, 0]  # the comma before 4 is silence
    assert right[spoken].tolist() == [2, 3, 0, 0]
    assert not left[np.logical_not(spoken)].any()


def test_without_context_each_state_of_a_unit_has_its_distribution_and_silence_one():
    segments = segments_of([[1, 2], [1]], [False, False])
    assert np.array_equal(no_context(3).pdfs_of(segments), states_of(segments))
    assert states_of(segments[1:3]).tolist() == list(range(1, 1 + 2 * N_STATES))
    assert no_context(3).roots.min() == -n_states(3)
    assert states_of(segments).reshape(-1, N_STATES)[[0, -1]].tolist() == [[0] * N_STATES] * 2


def test_questions_about_neighbours_lead_to_a_leaf():
    # the first state of unit 1: is 2 to the left? if not, is silence to the right?
    roots = -1 - np.arange(n_states(3))
    roots[1] = 0
    tying = Tying(
        roots,
        sets=np.array([[False, False, True], [True, False, False]]),
        asked=np.array([0, 1]),
        sides=np.array([0, 1]),
        branches=np.array([[1, -21], [-22, -23]]),
    )
    segments = segments_of([[2, 1], [1, 1]], [True, False])
    first = tying.pdfs_of(segments).reshape(-1, N_STATES)[:, 0]
    assert first[[2, 4, 5]].tolist() == [20, 21, 22]


def test_parts_of_a_corpus_add_up():
    both, frames = {}, np.random.default_rng(0).normal(size=(4 * N_STATES, N_FEATURES))
    occupancy = np.repeat(np.eye(2 * N_STATES), 2, axis=0)
    parts = []
    for word in ([1, 2], [1, 3], [1, 2]):
        parts.append({})
        for contexts in (both, parts[-1]):
            accumulate_contexts(contexts, frames, occupancy, segments_of([word], [False])[-2:])
    assert set(both) == set().union(*parts)
    for key, sums in both.items():
        assert np.allclose(sums, sum(part.get(key, 0) for part in parts))
