import pytest
import torch

from models.programs.benchmark.run import (
    cut,
    durations_of,
    generated_config,
    known_models,
    synthesis_step,
    training_step,
)
from models.training.data import ProcessRank, collect_assets, load_data
from processors.dataset.sampler import Draw

CPU = torch.device("cpu")
FEW = ("train.synthetic_utterances=8", "train.batch_size=2", "train.mixed_precision=fp32")


def utterance(model):
    config = generated_config(model, small=True)
    data = load_data(config, collect_assets(config), ProcessRank(), CPU)
    return data.validation[Draw(0, 0)]


@pytest.mark.parametrize("model", known_models())
def test_every_model_synthesises_all_frames_with_random_weights(model):
    work = synthesis_step(generated_config(model, small=True), CPU, "fp32", longest=30)()
    assert 15 <= work.frames <= 30
    assert work.audio_s == work.frames * 256 / 22050


def test_a_batch_has_padding():
    config = generated_config("hifigan", ("train.synthetic_utterances=100",), small=True)
    work = synthesis_step(config, CPU, "bf16", batch_size=2)()
    assert work.utterances == 2
    assert work.frames < work.cells


def test_lengths_are_new_or_repeated():
    config = generated_config("hifigan", ("train.synthetic_utterances=100",), small=True)
    for repeated in (False, True):
        step = synthesis_step(config, CPU, "fp32", repeated=repeated)
        assert (len({step().frames for _ in range(4)}) == 1) is repeated


def test_a_cut_utterance_keeps_whole_phones():
    item = utterance("fastspeech2")
    short = cut(item, 100)
    assert int(short.durations.sum()) == short.mel.shape[1] <= 100
    assert len(short.phone_ids) == len(short.durations)
    assert torch.equal(cut(item, 0).phone_ids, item.phone_ids)


def test_without_durations_frames_are_shared_equally():
    item = utterance("tacotron2")
    durations = durations_of(item)
    assert int(durations.sum()) == item.mel.shape[1]
    assert int(durations.max() - durations.min()) <= 1


def test_an_update_counts_its_work():
    config = generated_config("fastspeech2", FEW, small=True)
    work = training_step(config, CPU)()  # the longest utterance is in the first update
    assert 869 <= work.frames <= work.cells
    assert work.audio_s == work.frames * 256 / 22050
    assert work.utterances >= 1


def test_two_precisions_train_in_one_process():
    in_bf16 = generated_config("freevgl", ("train.batch_size=2",), small=True)
    in_fp32 = generated_config("freevgl", FEW, small=True)
    steps = [training_step(config, CPU) for config in (in_bf16, in_fp32)]
    assert all(step().frames > 0 for step in steps)
