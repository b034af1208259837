from concurrent.futures import ThreadPoolExecutor
from itertools import groupby

import numpy as np
import pytest

from processors.alignment.hmm.training import Example, _tie_states, train
from tests.processors.alignment.hmm.synthetic import corpus, found_in
from utils.errors import InputError


def test_boundaries_of_a_known_model_are_recovered_also_in_utterances_not_heard(model, drawn):
    errors = np.concatenate([found_in(model, one.example)[0] - one.starts_s for one in drawn])
    assert np.median(np.abs(errors)) < 0.005
    assert (np.abs(errors) <= 0.02).mean() > 0.95
    assert abs(np.median(errors)) < 0.002  # no constant lead
    errors = [found_in(model, one.example)[0] - one.starts_s for one in corpus(n=10, seed=1)]
    assert (np.abs(np.concatenate(errors)) <= 0.02).mean() > 0.95


def test_silence_is_found_where_it_is_as_often_as_the_model_knows(model, drawn):
    found = np.concatenate([found_in(model, one.example)[1] for one in drawn])
    truth = np.concatenate([one.silences_s for one in drawn])
    assert ((found > 0.025) == (truth > 0)).mean() > 0.97
    assert np.median(np.abs(found - truth)[truth > 0]) < 0.01
    assert model.silence_shares["punctuation"] > 0.9
    assert model.silence_shares["word"] < 0.1


def test_the_same_corpus_gives_the_same_model_with_any_number_of_threads(model, drawn):
    again = train([one.example for one in drawn], n_threads=3)
    assert np.array_equal(again.mixtures.means, model.mixtures.means)
    assert np.array_equal(again.mixtures.counts, model.mixtures.counts)
    assert np.array_equal(again.stay, model.stay)
    assert again.silence_shares == model.silence_shares


def test_every_pass_with_as_many_gaussians_brings_a_higher_likelihood(trained):
    runs = [(size, list(run)) for size, run in groupby(trained[1], lambda args: args[:2])]
    # silence has four times as many; in context, which tells nothing here, all begin again
    assert [K for (_, K), _ in runs] == [1, 8, 16, 1, 8]
    rises = []
    for _, run in runs:
        values = [value for *_, value in run]
        # priors and floors, which are not part of the likelihood, may cost a little
        assert (np.diff(values) > -0.005).all()
        rises.append(values[-1] - values[0])
    first_tie_states = rises.pop(3)  # begins from what four times as many Gaussians heard
    assert first_tie_states > -0.001
    assert min(rises) > 0.001


def test_a_recording_too_short_for_its_phones_is_left_out(drawn):
    examples = [one.example for one in drawn[:12]]
    short = Example("ann", drawn[0].example.frames[:5], (("a", "b"),), (False,))
    model, norms_differ = train(examples), train([*examples, short])
    assert np.allclose(norms_differ.mixtures.means, model.mixtures.means, atol=0.05)


def test_nothing_but_too_short_recordings_or_such_without_a_way_through_are_an_error(model):
    short = Example("ann", np.ones((5, 6), np.float32), (("a", "b"),), (False,))
    with pytest.raises(InputError, match="no recording is long enough for the phones"):
        train([short])
    with pytest.raises(InputError, match="no path through any"), ThreadPoolExecutor(1) as pool:
        _tie_states(pool, model, [])


def test_a_phone_that_training_did_not_meet_is_still_aligned(model, drawn):
    one = drawn[0]
    words = tuple(tuple("x" if p == "c" else p for p in word) for word in one.example.words)
    starts, _ = found_in(model, one.example._replace(words=words))
    assert np.median(np.abs(starts - one.starts_s)) < 0.03


def test_speakers_may_differ_by_a_constant():
    ann, bob = corpus(n=20), corpus(n=20, seed=3, speaker="bob")
    shifted = [
        one._replace(example=one.example._replace(frames=one.example.frames * 2 + 3)) for one in bob
    ]
    model = train([one.example for one in [*ann, *shifted]])
    errors = [found_in(model, one.example)[0] - one.starts_s for one in shifted]
    assert (np.abs(np.concatenate(errors)) <= 0.02).mean() > 0.9
