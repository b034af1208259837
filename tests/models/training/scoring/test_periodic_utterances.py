import shutil
from types import SimpleNamespace

import numpy as np
import pytest

from models.training.scoring.periodic import UnavailableError, choose_utterances
from tests.models.training.small_tasks import (
    PREPROCESS,
    TEXT,
    make_data,
    make_processed,
    train_config,
    write_corpus,
)
from tests.models.vocoder.small_hifigan import (
    gan_config,
    make_recording,
    make_recordings,
    make_segments,
)

RATE, HOP = PREPROCESS.sample_rate, PREPROCESS.hop_length


def config_of(**changes):
    return SimpleNamespace(
        train=train_config(**({"score_utterances": 3} | changes)), preprocess=PREPROCESS
    )


@pytest.fixture
def store(tmp_path):
    return make_processed(tmp_path / "data")


@pytest.fixture
def data(store):
    return make_data(store, train_config())


def test_an_acoustic_model_is_compared_with_the_span_of_its_features(tmp_path, store, data):
    store.starts[:] = 40
    write_corpus(tmp_path, store, lead=40)
    (first, *_) = choose_utterances(config_of(), data)
    recorded, features = first.read_recording(), store.read(first.id)
    T = features.mel.shape[1]
    noise = np.random.default_rng(store.index_of(first.id)).normal(0, 0.1, 40 + (7 + 60) * HOP)

    assert first.batch.ids == (first.id,)
    assert np.allclose(recorded.wav, noise[40 : 40 + T * HOP], atol=2 / 32768)
    assert (recorded.sample_rate, recorded.text, recorded.language) == (RATE, TEXT, "en-gb")
    assert recorded.recorded
    assert [phone.name for phone in recorded.phones] == list(features.phones)
    assert recorded.phones[-1].end_s == pytest.approx(T * HOP / RATE)


def test_the_utterances_are_the_same_in_a_random_order(tmp_path, store, data):
    write_corpus(tmp_path, store)
    all_of_them = [one.id for one in choose_utterances(config_of(score_utterances=99), data)]
    some = [one.id for one in choose_utterances(config_of(score_utterances=2), data)]

    assert sorted(all_of_them) == list(store.ids[-4:])
    assert all_of_them != sorted(all_of_them)  # random, but fixed
    assert some == all_of_them[:2]


def test_a_recording_that_is_missing_is_named(tmp_path, store, data):
    write_corpus(tmp_path, store, written=lambda id: id != store.ids[-1])
    with pytest.raises(UnavailableError, match=rf"corpus/{store.ids[-1]}\.wav is missing"):
        choose_utterances(config_of(score_utterances=4), data)


def test_without_the_manifest_of_stage_1_there_are_no_recordings(data):
    with pytest.raises(UnavailableError, match=r"utt-\d+ is not in .*manifest\.jsonl"):
        choose_utterances(config_of(), data)


def test_without_validation_data_there_is_nothing_to_score(store, data):
    data.validation.ids = ()
    with pytest.raises(UnavailableError, match="no validation data"):
        choose_utterances(config_of(), data)


def test_a_vocoder_needs_no_corpus_and_uses_texts_if_there_are_any(tmp_path):
    store = make_recordings(tmp_path / "data")
    data = make_segments(store, gan_config())
    (alone, *_) = choose_utterances(config_of(), data)
    write_corpus(tmp_path, store)
    shutil.rmtree(tmp_path / "corpus")
    (first, *_) = choose_utterances(config_of(), data)
    wav = make_recording(int(first.id[-3:])).wav / np.float32(32768)

    assert np.array_equal(first.read_recording().wav, wav)
    assert np.array_equal(alone.read_recording().wav, wav)
    assert (alone.read_recording().text, first.read_recording().text) == ("", TEXT)


def test_the_text_of_a_recording_that_is_cut_is_unknown(tmp_path):
    store = make_recordings(tmp_path / "data")
    write_corpus(tmp_path, store)
    data = make_segments(store, gan_config())
    data.validation.lengths[:] = 9
    (first, *_) = choose_utterances(config_of(), data)

    assert first.read_recording().text == ""
    assert len(first.read_recording().wav) == 9 * HOP
