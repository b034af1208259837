import torch

from models.benchmark.configs import generated_config
from models.benchmark.training import TrainingRun, _with_random_batches
from models.training.data.loading import ProcessRank, collect_assets, load_data

CPU = torch.device("cpu")
FEW = ("train.synthetic_utterances=8", "train.batch_size=2", "train.mixed_precision=fp32")


def padding(data):
    """The share of computed frames that are padding, and the sizes of the batches."""
    lengths, plan = data.train.dataset.lengths, data.sampler.plan(epoch=1)
    cells = sum(len(batch) * lengths[batch].max() for batch in plan)
    return 1 - sum(lengths[batch].sum() for batch in plan) / cells, {len(one) for one in plan}


def test_an_update_counts_its_work():
    config = generated_config("fastspeech2", FEW, small=True)
    work = TrainingRun(config, CPU).step()  # the longest utterance is in the first update
    assert 869 <= work.frames <= work.cells
    assert work.samples == 256 * work.frames
    assert work.utterances >= 1


def test_random_batches_waste_a_third_and_buckets_little():
    config = generated_config("fastspeech2", ("train.synthetic_utterances=900",), small=True)
    data = load_data(config, collect_assets(config), ProcessRank(), CPU)
    (random, sizes), (buckets, _) = map(padding, (_with_random_batches(data, 16, 0), data))
    assert sizes == {16}
    assert 0.3 < random < 0.4
    assert buckets < 0.05


def test_two_precisions_train_in_one_process():
    config = generated_config("freevgl", ("train.batch_size=2",), small=True)  # bf16
    runs = TrainingRun(config, CPU), TrainingRun(generated_config("freevgl", FEW, small=True), CPU)
    assert all(run.step().frames > 0 for run in runs)
