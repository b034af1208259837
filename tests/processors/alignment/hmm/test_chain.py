import numpy as np

from processors.alignment.hmm.chain import N_STATES, Segment, chain_of, segments_of
from processors.alignment.hmm.tying import states_of

SHARES = {"edge": 0.6, "punctuation": 0.5, "word": 0.2}


def test_words_have_places_for_silence_around_them_that_know_the_punctuation():
    segments = segments_of([[3, 4], [5]], [True, True])
    assert segments == (
        Segment(0, "edge"), Segment(3), Segment(4), Segment(0, "punctuation"), Segment(5),
        Segment(0, "edge"),
    )  # fmt: skip


def test_what_leaves_a_state_adds_up_to_one():
    stay = np.random.default_rng(0).uniform(0.2, 0.8, 3 * N_STATES)
    segments = segments_of([[1, 2], [2], [1]], [False, True, False])
    chain = chain_of(segments, states_of(segments), stay, SHARES)
    S = len(chain.pdfs)
    skipping = np.zeros(S)
    skipping[: -N_STATES - 1] = chain.skip[N_STATES + 1 :]
    leaving = chain.stay + chain.step + skipping
    leaving += np.where(np.arange(S) < S - 1, chain.final, 0)  # of the last one, final is its step
    assert np.allclose(leaving, 1)
    assert chain.start.sum() == 1


def test_silence_is_entered_as_often_as_it_was_found_at_such_a_place():
    stay = np.full(2 * N_STATES, 0.5)
    segments = segments_of([[1], [1], [1]], [True, False, False])
    chain = chain_of(segments, states_of(segments), stay, SHARES)
    last = [(number + 1) * N_STATES - 1 for number in (1, 3, 5)]  # of each word
    assert chain.step[last].tolist() == [0.5 * 0.5, 0.5 * 0.2, 0.5 * 0.6]
    assert chain.final[last[-1]] == 0.5 * 0.4
