import numpy as np

from processors.alignment.markov.chain import N_STATES, segments_of
from processors.alignment.markov.contexts import Tying, n_states, neighbours, no_context, states_of


def test_phones_have_neighbours_past_silence_without_punctuation():
    segments = segments_of([[1, 2], [3], [4]], [False, True, False], silence=0)
    left, right = neighbours(segments)
    spoken = [not segment.place for segment in segments]
    assert left[spoken].tolist() == [0, 1, 2, 0]  # the comma before 4 is silence
    assert right[spoken].tolist() == [2, 3, 0, 0]
    assert not left[np.logical_not(spoken)].any()


def test_without_context_each_state_of_a_unit_has_its_distribution():
    segments = segments_of([[1, 2], [1]], [False, False], silence=0)
    assert np.array_equal(no_context(3).pdfs_of(segments), states_of(segments))
    assert states_of(segments[1:3]).tolist() == list(range(1, 1 + 2 * N_STATES))
    assert no_context(3).roots.min() == -n_states(3)


def test_all_states_of_silence_are_one():
    segments = segments_of([[1]], [False], silence=0)
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
    segments = segments_of([[2, 1], [1, 1]], [True, False], silence=0)
    first = tying.pdfs_of(segments).reshape(-1, N_STATES)[:, 0]
    assert first[[2, 4, 5]].tolist() == [20, 21, 22]
