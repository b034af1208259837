import torch

from models.benchmark.configs import generated_config
from models.benchmark.training import training_step, with_random_batches
from models.training.data.loading import ProcessRank, collect_assets, load_data

CPU = torch.device("cpu")
FEW = ("train.synthetic_utterances=8", "train.batch_size=2", "train.mixed_precision=fp32")


def padding(data):
    """The share of computed frames that are padding, and the sizes of the batches."""
    lengths, plan = data.train.dataset.lengths, data.sampler.plan(epoch=1)
    cells = sum(len(batch) * lengths[batch].max() for batch in plan)
    return 1 - sum(lengths[batch].sum() for batch in plan) / cells, [len(batch) for batch in plan]


def test_an_update_counts_its_work():
    config = generated_config("fastspeech2", FEW, small=True)
    work = training_step(config, CPU)()  # the longest utterance is in the first update
    assert 869 <= work.frames <= work.cells
    assert work.audio_s == work.frames * 256 / 22050
    assert work.utterances >= 1


def test_random_batches_waste_a_third_and_buckets_little():
    config = generated_config("fastspeech2", ("train.synthetic_utterances=900",), small=True)
    data = load_data(config, collect_assets(config), ProcessRank(), CPU)
    (random, sizes), (buckets, _) = map(padding, (with_random_batches(data, 16, 0), data))
    assert sorted(sizes)[1:] == [16] * (len(sizes) - 1)
    assert 0.3 < random < 0.4
    assert buckets < 0.05


def test_two_precisions_train_in_one_process():
    in_bf16 = generated_config("freevgl", ("train.batch_size=2",), small=True)
    in_fp32 = generated_config("freevgl", FEW, small=True)
    steps = [training_step(config, CPU) for config in (in_bf16, in_fp32)]
    assert all(step().frames > 0 for step in steps)
