"""Every model trains on generated data, without a corpus."""

import json
import logging
import re
import warnings
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from config.train import DataLoaderConfig
from models.base.assets import Assets
from models.base.registry import load_config
from models.checkpoint.loading import load_model
from models.programs.benchmark.run import generated_config, known_models
from models.synthesizer.synthesizer import Synthesizer
from models.training.data import ProcessRank, collect_assets, load_data, windows
from preprocessors.manifest import read_splits
from processors.dataset.store import write_index
from processors.extraction.fingerprint import Fingerprint, write_fingerprint
from processors.records import WordPhones
from processors.text.symbols import MARKS
from processors.text.voice_phones import arpabet_vocabulary, nvidia_vocabulary
from tests.models.training import small_tasks
from tests.models.training.small_tasks import PREPROCESS, make_data, make_processed, train_config
from tests.models.vocoder.small_hifigan import write_vocoder_config
from tests.processors.mel_wavs import FRAMES, MEL, make_mel_wav_store
from tests.processors.stores import write_finished, write_shard
from tests.worlds.experiments import train_experiment
from utils.errors import InputError

FEW = (
    *(f"train.{key}=4" for key in ("synthetic_utterances", "max_steps")),
    *(f"train.{key}=1" for key in ("batch_size", "log_steps", "valid_steps")),
    *("train.save_steps=0", "train.valid_samples=0", "train.dataloader.num_worker=0"),
    *("train.cut_mel_frame=16", "train.tracker=none", "train.mixed_precision=fp32"),
    # a rate at which four updates are enough; the defaults of keys that it does not read
    *("train.scheduler=constant", "train.lr_scheduler.num_warmup=4000"),
    *("train.lr_scheduler.gamma=0.999", "train.lr_scheduler.milestones=[]"),
    *("train.optimizer=adam", "train.adam.lr=0.01", "train.adam.weight_decay=0"),
)


def generated_config_of(tmp_path, model="fastspeech2", *overrides):
    return generated_config(model, [*FEW, f"log_dir={tmp_path}", *overrides], small=True)


@pytest.mark.parametrize(
    "model",
    [
        name if name in ("flowspeech", "freevgl") else pytest.param(name, marks=pytest.mark.slow)
        for name in known_models()
    ],
)
def test_a_model_trains_on_generated_data_and_its_loss_falls(model, tmp_path, caplog):
    with caplog.at_level(logging.INFO):
        train_experiment(generated_config_of(tmp_path, model), "voice")
    losses = [float(number) for number in re.findall(r"validation loss (\d\S*)", caplog.text)]
    assert len(losses) == 4
    assert losses[-1] < losses[0]
    assert "nan" not in caplog.text
    assert "skipped" not in caplog.text
    network = load_model(tmp_path / "voice").network
    assert all(bool(weights.isfinite().all()) for weights in network.parameters())
    card = (tmp_path / "voice" / "README.md").read_text()
    assert "| data | generated (--synthetic), 4 utterances: its output is not speech |" in card
    assert "LJSpeech, licence" not in card


def test_synthesis_warns_that_the_data_was_generated(tmp_path, caplog):
    train_experiment(generated_config_of(tmp_path, "flowspeech", "train.max_steps=1"), "voice")
    Synthesizer(tmp_path / "voice", "griffin_lim")
    assert "was trained on generated data (--synthetic): its speech is noise" in caplog.text


def test_batches_hold_short_and_long_utterances_with_durations_that_fit(tmp_path):
    config = generated_config_of(tmp_path, "fastspeech2", "train.synthetic_utterances=40")
    data = load_data(config, collect_assets(config), ProcessRank(), torch.device("cpu"))
    lengths = []
    for batch in data.train:
        assert torch.equal(batch.durations.sum(dim=1), batch.mel_lengths)
        assert int(batch.durations.min()) >= 0
        assert int(batch.phone_ids.max()) < len(arpabet_vocabulary())
        lengths += batch.mel_lengths.tolist()
    assert len(lengths) == 39
    assert (min(lengths), max(lengths)) == (95, 869)


@pytest.mark.parametrize(
    ("extractor", "phones"),
    [("letters", {"a", "<space>", "'"}), ("espeak", {"AA1"}), ("nvidia_english", {"@AA1", "A"})],
)
def test_the_symbols_are_of_the_kind_that_the_text_has(extractor, phones, tmp_path):
    text = f"preprocess.text.phone_extractor={extractor}"
    assets = collect_assets(generated_config_of(tmp_path, "tacotron2", text))
    assert phones < set(assets.vocabulary.symbols)
    assert assets.trained_phones == set(assets.vocabulary.symbols) - set(MARKS[:1])


def test_each_dataset_has_its_utterances_and_its_speaker(tmp_path):
    config = generated_config_of(tmp_path, "fastspeech2", 'dataset=["one", "two"]')
    assets = collect_assets(config)
    data = load_data(config, assets, ProcessRank(), torch.device("cpu"))
    assert [speaker.name for speaker in assets.speakers] == ["one", "two"]
    assert data.n_utterances == 6
    assert {int(speaker) for batch in data.train for speaker in batch.speaker_ids} == {0, 1}


def test_resuming_on_other_data_is_refused(tmp_path):
    train_experiment(generated_config_of(tmp_path, "freevgl", "train.max_steps=1"), "vocoder")
    more = generated_config_of(tmp_path, "freevgl", "train.synthetic_utterances=5")
    with pytest.raises(InputError, match=r"synthetic_utterances was 4, is 5"):
        train_experiment(more, "vocoder", resume=True)


CPU = torch.device("cpu")


def config_of(root, *overrides):
    return load_config(small_tasks.write_voice_config(root), overrides)


def test_assets_come_from_all_datasets(tmp_path):
    make_processed(tmp_path / "data" / "mini", speakers=("zoe",))
    make_processed(tmp_path / "data" / "more", speakers=("anna", "zoe"))
    assets = collect_assets(config_of(tmp_path, 'dataset=["mini", "more"]'))
    assert [speaker.name for speaker in assets.speakers] == ["anna", "zoe"]
    assert assets.stats.speakers.keys() == {"anna", "zoe"}
    one = collect_assets(config_of(tmp_path)).stats.speakers["zoe"]
    assert assets.stats.speakers["zoe"].seconds > one.seconds
    assert assets.mel == PREPROCESS.mel


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("speakers.json", '[{"nom": "anna"}]', r"mini/speakers\.json: unexpected content: "),
        ("phones.json", "3", r"phones\.json: expected numbers by phone; delete it"),
    ],
)
def test_what_stage_1_did_not_write_is_refused(tmp_path, file, content, message):
    (make_processed(tmp_path / "data" / "mini").folder / file).write_text(content)
    with pytest.raises(InputError, match=message):
        collect_assets(config_of(tmp_path))


def test_features_of_another_mel_are_refused(tmp_path):
    make_processed(tmp_path / "data" / "mini")
    with pytest.raises(InputError, match=r"f_max 4000\.0 and 3000"):
        collect_assets(config_of(tmp_path, "preprocess.f_max=3000"))


@pytest.mark.parametrize(
    ("phones", "overrides", "symbols"),
    [
        (["XX", "AA1", "QQ"], [], (*arpabet_vocabulary().symbols, "QQ", "XX")),
        (["ə", "a", "<.>"], ["preprocess.text.phone_extractor=espeak"], (*MARKS, "a", "ə")),
    ],
)
def test_the_vocabulary_is_that_of_the_text_and_other_phones_of_the_data(
    tmp_path, phones, overrides, symbols
):
    make_processed(tmp_path / "data" / "mini")
    path = tmp_path / "data" / "mini" / "phones.json"
    path.write_text(json.dumps(dict.fromkeys(phones, 1)))
    assert collect_assets(config_of(tmp_path, *overrides)).vocabulary.symbols == symbols


def test_the_trained_phones_are_those_of_the_training_split(tmp_path):
    folder = tmp_path / "data" / "mini"
    make_processed(folder)
    rare = [small_tasks.make_features(i) for i in range(14)]
    splits = read_splits(folder)
    for features, name in ((splits.valid[0], "OY1"), (splits.train[0], "ZH")):
        position = [item.id for item in rare].index(features)
        item = rare[position]
        rare[position] = replace(item, phones=(item.phones[0], name, *item.phones[2:]))
    write_index(folder, write_shard(folder / "features" / "s.safetensors", rare, PREPROCESS.mel))
    phones = collect_assets(config_of(tmp_path)).trained_phones
    assert "ZH" in phones
    assert "OY1" not in phones


@pytest.mark.parametrize("n_workers", [0, 1])
def test_a_faulty_utterance_is_named_in_one_line(tmp_path, n_workers):
    make_processed(tmp_path)
    broken = [small_tasks.make_features(i) for i in range(14)]
    broken[3].durations[0] += 1
    shard = tmp_path / "features" / "s.safetensors"
    write_index(tmp_path, write_shard(shard, broken, PREPROCESS.mel))
    config = train_config(dataloader=DataLoaderConfig(num_worker=n_workers))
    data = make_data(small_tasks.FeatureStore(tmp_path), config)
    with pytest.raises(InputError, match=r"^utt-003: durations sum to \d+ .*; run stage 1 again$"):
        list(windows(data.train, 1))


def _refuse(_items):
    raise InputError("a.wav: InputError: of a decoder\nin two lines")


@pytest.mark.parametrize("n_workers", [0, 1])
def test_the_error_of_a_batch_keeps_its_text_and_its_class(tmp_path, n_workers):
    config = train_config(dataloader=DataLoaderConfig(num_worker=n_workers))
    data = make_data(make_processed(tmp_path), config)
    data.train.dataset.collator = _refuse
    with pytest.raises(InputError) as caught:
        list(windows(data.train, 1))
    assert str(caught.value) == "a.wav: InputError: of a decoder\nin two lines"


def test_no_more_loader_processes_are_started_than_there_are_cores(tmp_path, monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda _process: {0})
    config = train_config(dataloader=DataLoaderConfig(num_worker=2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # PyTorch's, of more processes than cores
        data = make_data(make_processed(tmp_path), config)
    assert data.train.num_workers == 1


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


def test_data_of_another_corpus_are_refused_by_stage_2(tmp_path):
    folder = tmp_path / "data" / "mini"
    make_processed(folder)
    write_fingerprint(folder, Fingerprint({}, {"dataset_path": "/first"}, "", {}))
    collect_assets(config_of(tmp_path, "dataset_path.mini=/first"))
    with pytest.raises(InputError, match="mini holds the data of the corpus /first, not of /other"):
        collect_assets(config_of(tmp_path, "dataset_path.mini=/other"))


def test_data_of_other_keys_are_refused_with_both_values_and_the_way_out(tmp_path):
    folder = tmp_path / "data" / "mini"
    make_processed(folder)
    write_finished(folder, f0_max=600.0, aligner="hmm", max_seconds=30.0, max_bad_ratio=0.5)
    expected = (
        r"mini was made with another configuration: preprocess\.aligner was 'hmm', is"
        r" 'pocketsphinx'; preprocess\.f0_max was 600\.0, is 500\.0; run stage 1 with this one"
    )
    config = config_of(tmp_path, "preprocess.f0_max=500")
    with pytest.raises(InputError, match=expected):
        collect_assets(config)
    with pytest.raises(InputError, match=expected):
        load_data(config, Assets(PREPROCESS.mel, arpabet_vocabulary()), ProcessRank(), CPU)


def test_a_key_that_moves_the_derived_folder_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_finished(Path("data/mini"), f0_max=600.0)
    config = config_of(tmp_path, "preprocess.processed_dir=", "preprocess.f0_max=500")
    message = r"f0_max was 600\.0, is 500\.0; run stage 1, or undo the change"
    with pytest.raises(InputError, match=message):
        collect_assets(config)


def test_data_that_stage_1_did_not_finish_are_refused(tmp_path):
    folder = make_processed(tmp_path / "data" / "mini").folder
    write_fingerprint(folder, Fingerprint({}, {}, "", {}, finished=False))
    message = r"mini/fingerprint\.json: stage 1 was not finished by this version"
    with pytest.raises(InputError, match=message):
        collect_assets(config_of(tmp_path))


def vocoder_config_of(root, *overrides, dataset=("mini",), **train):
    path = write_vocoder_config(root, **({"batch_size": 3, "cut_mel_frame": 16} | train))
    names, paths = json.dumps(dataset), json.dumps(dict.fromkeys(dataset, "corpus"))
    settings = (f"dataset={names}", f"dataset_path={paths}", "preprocess.mel_padding=hifigan")
    return load_config(path, [*settings, *overrides])


@pytest.fixture
def recorded(tmp_path):
    make_mel_wav_store(tmp_path / "data" / "mini")
    return tmp_path


def load(config, place=ProcessRank()):  # noqa: B008
    return load_data(config, collect_assets(config), place, CPU)


def test_a_vocoder_needs_the_mel_and_no_text(recorded):
    assets = collect_assets(vocoder_config_of(recorded))
    assert assets.mel == MEL
    assert (assets.vocabulary, assets.stats, assets.lexicon) == (None, None, None)
    assert [speaker.name for speaker in assets.speakers] == ["anna"]


def test_an_epoch_holds_one_segment_of_every_training_recording(recorded):
    make_mel_wav_store(recorded / "data" / "more", FRAMES[:7])
    data = load(vocoder_config_of(recorded, dataset=("mini", "more"), batch_size=4))
    for epoch in range(3):
        data.sampler.set_epoch(epoch)
        batches = list(data.train)
        assert sorted(len(batch.ids) for batch in batches) == [1, 4, 4]
        ids = Counter(id for batch in batches for id in batch.ids)
        numbers = Counter([*range(6), *range(3)])
        assert ids == {f"rec-{number:03d}": n for number, n in numbers.items()}
        for batch in batches:
            assert batch.mel.shape == (len(batch.ids), 8, 16)
            assert batch.wav.shape == (len(batch.ids), 16 * 64)


def test_processes_share_an_epoch(recorded):
    config = vocoder_config_of(recorded, batch_size=2)
    parts = [load(config, ProcessRank(rank, 2)) for rank in range(2)]
    ids = [id for part in parts for batch in part.train for id in batch.ids]
    assert len(parts[0].sampler) == len(parts[1].sampler)
    assert sorted(ids) == [f"rec-{number:03d}" for number in range(6)]


def test_an_interrupted_epoch_continues_with_the_same_segments(recorded):
    whole, rest = (load(vocoder_config_of(recorded, batch_size=2)) for _ in range(2))
    whole.sampler.set_epoch(5)
    expected = list(whole.train)
    rest.sampler.set_epoch(5, start=1)
    found = list(rest.train)
    assert [batch.ids for batch in found] == [batch.ids for batch in expected[1:]]
    for ours, theirs in zip(found, expected[1:], strict=True):
        assert torch.equal(ours.wav, theirs.wav)
        assert torch.equal(ours.mel, theirs.mel)
    assert whole.plan == rest.plan


def test_the_plan_changes_with_the_segments(recorded):
    plan = load(vocoder_config_of(recorded)).plan
    assert load(vocoder_config_of(recorded, "train.cut_mel_frame=20")).plan != plan
    assert load(vocoder_config_of(recorded, "train.batch_size=2")).plan != plan
    assert load(vocoder_config_of(recorded, "train.log_steps=7")).plan == plan


def test_a_vocoder_is_validated_on_whole_recordings(recorded):
    data = load(vocoder_config_of(recorded, valid_samples=1))
    batches = list(data.valid)
    assert sorted(id for batch in batches for id in batch.ids) == ["rec-006", "rec-007"]
    assert sorted(int(n) for batch in batches for n in batch.mel_lengths) == [25, 90]
    assert data.samples.ids == ("rec-006",)
    assert data.samples.wav.shape == (1, 90 * 64)


def test_long_recordings_are_validated_by_their_first_ten_seconds(tmp_path):
    make_mel_wav_store(tmp_path / "data" / "mini", (20, 20, 20, 20, 1300, 20, 20))
    data = load(vocoder_config_of(tmp_path))
    lengths = [int(n) for batch in data.valid for n in batch.mel_lengths]
    assert sorted(lengths) == [20, 1250]


def test_recordings_of_other_keys_are_refused(recorded):
    write_finished(recorded / "data" / "mini", max_seconds=20.0)
    with pytest.raises(InputError, match=r"preprocess\.max_seconds was 20\.0, is 30\.0"):
        collect_assets(vocoder_config_of(recorded))


def test_recordings_of_another_mel_are_refused(recorded):
    with pytest.raises(InputError, match="padding hifigan and centre"):
        collect_assets(vocoder_config_of(recorded, "preprocess.mel_padding=centre"))


def test_features_of_an_acoustic_model_are_refused(tmp_path):
    make_processed(tmp_path / "data" / "mini")
    with pytest.raises(InputError, match=r"no audio; run stage 1 of a vocoder"):
        collect_assets(vocoder_config_of(tmp_path, "preprocess.mel_padding=centre"))


def test_segments_shorter_than_a_window_are_refused(recorded):
    with pytest.raises(InputError, match=r"cut_mel_frame 3: segments of 192 samples are shorter"):
        load(vocoder_config_of(recorded, "train.cut_mel_frame=3"))


LETTERS = ("<sil>", "a", "b", "<space>", "q", "<.>")
MIXED = ("preprocess.aligner=learned", "preprocess.text.phone_extractor=mixed")


def make_mixed(root):
    folder = root / "data" / "mini"
    make_processed(folder)
    words = (WordPhones(0, 1, 3, ("AA1", "B")),)
    changes = {"phones": LETTERS, "durations": None, "word_phones": words}
    items = [replace(small_tasks.make_features(i), **changes) for i in range(14)]
    write_index(folder, write_shard(folder / "features" / "s.safetensors", items, PREPROCESS.mel))
    (folder / "phones.json").write_text(json.dumps(dict.fromkeys(LETTERS, 1)))
    write_finished(folder, aligner="learned")


@pytest.mark.parametrize(
    ("p_arpabet", "words"),
    [(0, {"a", "b", "q"}), (0.5, {"a", "b", "q", "AA1", "B"}), (1, {"q", "AA1", "B"})],
)
def test_the_trained_phones_of_a_mixture_are_those_that_can_be_drawn(tmp_path, p_arpabet, words):
    make_mixed(tmp_path)
    assets = collect_assets(config_of(tmp_path, *MIXED, f"preprocess.text.p_arpabet={p_arpabet}"))
    assert assets.trained_phones == {"<sil>", "<space>", "<.>"} | words


BOUNDARY_AND_LETTERS = ("<space>", "a", "b", "q")


@pytest.mark.parametrize(
    ("extractor", "symbols"),
    [
        ("mixed", (*arpabet_vocabulary().symbols, *BOUNDARY_AND_LETTERS)),
        ("letters", (*MARKS, *BOUNDARY_AND_LETTERS)),
        ("nvidia_english", nvidia_vocabulary("nvidia_english").symbols),
    ],
)
def test_the_vocabulary_of_letters_is_of_the_kind_of_the_text(tmp_path, extractor, symbols):
    make_mixed(tmp_path)
    settings = (MIXED[0], f"preprocess.text.phone_extractor={extractor}")
    assert collect_assets(config_of(tmp_path, *settings)).vocabulary.symbols == symbols
