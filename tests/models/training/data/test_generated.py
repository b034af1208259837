"""Every model trains on generated data, without a corpus."""

import logging
import re

import pytest
import torch

from models.benchmark.run import generated_config, known_models
from models.checkpoint.loading import load_model
from models.synthesizer.synthesizer import Synthesizer
from models.training.data.loading import ProcessRank, collect_assets, load_data
from models.training.experiment import train
from processors.text.symbols import MARKS, arpabet_vocabulary
from utils.errors import InputError

FEW = (
    "train.synthetic_utterances=4",
    "train.batch_size=1",
    "train.max_steps=4",
    "train.log_steps=1",
    "train.valid_steps=1",
    "train.save_steps=0",
    "train.valid_samples=0",
    "train.cut_mel_frame=16",
    "train.tracker=none",
    "train.mixed_precision=fp32",
    "train.dataloader.num_worker=0",
    # a rate at which four updates are enough
    "train.scheduler=constant",
    "train.lr_scheduler.num_warmup=4000",  # the defaults, which it does not read
    "train.lr_scheduler.gamma=0.999",
    "train.lr_scheduler.milestones=[]",
    "train.optimizer=adam",
    "train.adam.lr=0.01",
    "train.adam.weight_decay=0",
)


def config_of(tmp_path, model="fastspeech2", *overrides):
    return generated_config(model, [*FEW, f"log_dir={tmp_path}", *overrides], small=True)


@pytest.mark.parametrize("model", known_models())
def test_a_model_trains_on_generated_data_and_its_loss_falls(model, tmp_path, caplog):
    with caplog.at_level(logging.INFO):
        train(config_of(tmp_path, model), "voice")

    losses = [float(number) for number in re.findall(r"validation loss (\S+)", caplog.text)]
    assert len(losses) == 4
    assert losses[-1] < losses[0]
    assert "nan" not in caplog.text
    assert "skipped" not in caplog.text
    network = load_model(tmp_path / "voice").network
    assert all(bool(weights.isfinite().all()) for weights in network.parameters())


def test_the_card_says_that_the_data_was_generated(tmp_path):
    train(config_of(tmp_path, "freevgl", "train.max_steps=1"), "vocoder")
    card = (tmp_path / "vocoder" / "README.md").read_text()
    assert "on generated data: its output is not speech." in card
    assert "| data | generated (--synthetic), 4 utterances with the lengths of LJSpeech |" in card
    assert "LJSpeech, licence" not in card


def test_synthesis_warns_that_the_data_was_generated(tmp_path, caplog):
    train(config_of(tmp_path, "fastspeech2", "train.max_steps=1"), "voice")
    Synthesizer(tmp_path / "voice", "griffin_lim")
    assert "was trained on generated data (--synthetic): its speech is noise" in caplog.text


def test_batches_hold_short_and_long_utterances_with_durations_that_fit(tmp_path):
    config = config_of(tmp_path, "fastspeech2", "train.synthetic_utterances=40")
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
    config = config_of(tmp_path, "tacotron2", f"preprocess.text.phone_extractor={extractor}")
    assets = collect_assets(config)
    assert phones < set(assets.vocabulary.symbols)
    assert assets.trained_phones == set(assets.vocabulary.symbols) - set(MARKS[:1])


def test_each_dataset_has_its_utterances_and_its_speaker(tmp_path):
    config = config_of(tmp_path, "fastspeech2", 'dataset=["one", "two"]')
    assets = collect_assets(config)
    data = load_data(config, assets, ProcessRank(), torch.device("cpu"))
    assert [speaker.name for speaker in assets.speakers] == ["one", "two"]
    assert data.n_utterances == 6
    assert {int(speaker) for batch in data.train for speaker in batch.speaker_ids} == {0, 1}


def test_resuming_on_other_data_is_refused(tmp_path):
    train(config_of(tmp_path, "freevgl", "train.max_steps=1"), "vocoder")
    more = config_of(tmp_path, "freevgl", "train.synthetic_utterances=5")
    with pytest.raises(InputError, match=r"synthetic_utterances was 4, is 5"):
        train(more, "vocoder", resume=True)


def test_generated_data_add_no_speaker_to_a_voice(tmp_path):
    with pytest.raises(InputError, match="trained is speakers, and generated data"):
        config_of(tmp_path, "fastspeech2", "train.trained=speakers")
