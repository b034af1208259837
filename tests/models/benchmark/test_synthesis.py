import pytest
import torch

from models.benchmark.configs import generated_config, known_models
from models.benchmark.synthesis import Speed, SynthesisRun, _cut, _durations
from models.training.data.loading import ProcessRank, collect_assets, load_data
from processors.dataset.sampler import Draw

CPU = torch.device("cpu")


def utterance(model):
    config = generated_config(model, small=True)
    data = load_data(config, collect_assets(config), ProcessRank(), CPU)
    return data.validation[Draw(0, 0)]


@pytest.mark.parametrize("model", known_models())
def test_every_model_synthesises_all_frames_with_random_weights(model):
    config = generated_config(model, small=True)
    work = SynthesisRun(config, Speed(CPU, "fp32", 1, 30)).step()
    assert 15 <= work.frames <= 30
    assert work.samples == 256 * work.frames


def test_a_batch_has_padding():
    config = generated_config("hifigan", ("train.synthetic_utterances=100",), small=True)
    work = SynthesisRun(config, Speed(CPU, "bf16", 2, 0)).step()
    assert work.utterances == 2
    assert work.frames < work.cells


def test_a_cut_utterance_keeps_whole_phones():
    item = utterance("fastspeech2")
    short = _cut(item, 100)
    assert int(short.durations.sum()) == short.mel.shape[1] <= 100
    assert len(short.phone_ids) == len(short.durations)
    assert torch.equal(_cut(item, 0).phone_ids, item.phone_ids)


def test_without_durations_frames_are_shared_equally():
    item = utterance("tacotron2")
    durations = _durations([item])[0]
    assert int(durations.sum()) == item.mel.shape[1]
    assert int(durations.max() - durations.min()) <= 1
