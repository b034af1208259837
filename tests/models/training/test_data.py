import json
from dataclasses import replace

import pytest
import torch

from config.schema import DataLoaderConfig
from models.base.registry import load_config
from models.training.data import ProcessRank, collect_assets, windows
from processors.dataset.store import write_index, write_shard
from processors.text.symbols import MARKS, arpabet_vocabulary
from tests.models.training.small_tasks import (
    PREPROCESS,
    FeatureStore,
    make_data,
    make_features,
    make_processed,
    train_config,
    write_voice_config,
)
from utils.errors import InputError


def config_of(root, *overrides):
    return load_config(write_voice_config(root), overrides)


def test_assets_come_from_all_datasets(tmp_path):
    make_processed(tmp_path / "data" / "mini", speakers=("zoe",))
    make_processed(tmp_path / "data" / "more", speakers=("anna", "zoe"))
    assets = collect_assets(config_of(tmp_path, 'dataset=["mini", "more"]'))

    assert [speaker.name for speaker in assets.speakers] == ["anna", "zoe"]
    assert assets.stats.speakers.keys() == {"anna", "zoe"}
    one = collect_assets(config_of(tmp_path)).stats.speakers["zoe"]
    assert assets.stats.speakers["zoe"].seconds > one.seconds
    assert assets.mel == PREPROCESS.mel


def test_speakers_that_stage_1_did_not_write_are_refused(tmp_path):
    make_processed(tmp_path / "data" / "mini")
    (tmp_path / "data" / "mini" / "speakers.json").write_text('[{"nom": "anna"}]')
    with pytest.raises(InputError, match=r"mini/speakers\.json: not what .* holds there"):
        collect_assets(config_of(tmp_path))


def test_the_lexicon_vocabulary_is_all_of_arpabet_and_what_else_was_met(tmp_path):
    make_processed(tmp_path / "data" / "mini")
    path = tmp_path / "data" / "mini" / "phones.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"XX": 2, "QQ": 1}))
    vocabulary = collect_assets(config_of(tmp_path)).vocabulary

    assert vocabulary.symbols == (*arpabet_vocabulary().symbols, "QQ", "XX")


def test_the_espeak_vocabulary_is_what_was_met(tmp_path):
    make_processed(tmp_path / "data" / "mini")
    path = tmp_path / "data" / "mini" / "phones.json"
    path.write_text(json.dumps({"ə": 2, "a": 1, "<.>": 3}))
    config = config_of(tmp_path, "preprocess.text.phone_extractor=espeak")

    assert collect_assets(config).vocabulary.symbols == (*MARKS, "a", "ə")


def test_features_of_another_mel_are_refused(tmp_path):
    make_processed(tmp_path / "data" / "mini")

    with pytest.raises(InputError, match="f_max 4000 and 3000"):
        collect_assets(config_of(tmp_path, "preprocess.fmax=3000"))


@pytest.mark.parametrize("n_workers", [0, 1])
def test_a_faulty_utterance_is_named_in_one_line(tmp_path, n_workers):
    make_processed(tmp_path)
    broken = [make_features(i) for i in range(14)]
    broken[3].durations[0] += 1
    write_index(
        tmp_path, write_shard(tmp_path / "features" / "s.safetensors", broken, PREPROCESS.mel)
    )
    config = train_config(dataloader=DataLoaderConfig(num_worker=n_workers))
    data = make_data(FeatureStore(tmp_path), config)

    with pytest.raises(InputError, match=r"^utt-003: durations sum to \d+ .*; run stage 1 again$"):
        list(windows(data.train, 1))


def test_processes_share_the_validation_utterances(tmp_path):
    store = make_processed(tmp_path)
    config = train_config(batch_size=1)
    shares = [make_data(store, config, ProcessRank(rank, 3)).valid for rank in range(3)]
    ids = [id for share in shares for batch in share for id in batch.ids]

    assert sorted(ids) == [f"utt-{i:03d}" for i in range(10, 14)]


def test_samples_are_the_first_validation_utterances(tmp_path):
    store = make_processed(tmp_path)

    assert make_data(store, train_config(valid_samples=2)).samples.ids == ("utt-010", "utt-011")
    assert make_data(store, train_config(valid_samples=0)).samples is None


def test_loading_draws_nothing_from_the_global_generator(tmp_path):
    data = make_data(make_processed(tmp_path), train_config(crop_phones=2))
    before = torch.get_rng_state()
    list(data.train)

    assert torch.equal(torch.get_rng_state(), before)


def test_the_fingerprint_is_that_of_the_batches(tmp_path):
    store = make_processed(tmp_path)
    config = train_config()
    plan = make_data(store, config).plan

    assert make_data(store, replace(config, max_steps=99, log_steps=1)).plan == plan
    assert make_data(store, replace(config, batch_size=4)).plan != plan
    assert make_data(store, config, ProcessRank(1, 2)).plan != plan


def test_a_model_that_needs_durations_is_told_where_there_are_none(tmp_path):
    make_processed(tmp_path / "data" / "mini", timed=False)
    with pytest.raises(InputError, match=r"mini holds no durations.*has pocketsphinx: run stage 1"):
        collect_assets(config_of(tmp_path))
