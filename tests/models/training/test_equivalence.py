"""Updates of every model on the same data in another split of micro-batches and processes.

As a script, one process of several: MODEL, micro-batches per process and output file.
"""

import sys
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from accelerate import Accelerator
from torch import Tensor

from config.schema import Config
from models.base.assets import Assets
from models.base.registry import find_model
from models.base.task import Scheduled, Task
from models.programs.benchmark.run import generated_config, known_models
from models.training.data import ProcessRank, collect_assets, load_data, make_collator
from models.training.trainer import Updater
from modules.layers import basic
from modules.layers.postnet import MaskedBatchNorm
from processors.dataset.sampler import Draw
from tests.processes import run_together
from utils.cli import leave

CPU = torch.device("cpu")
N_ITEMS, RATE = 4, 0.05
# in fp32, of what the updates change; a mean of means of micro-batches is off by 1 % and more
TOLERANCE = 1e-4
_FEW = (
    f"train.synthetic_utterances={2 * N_ITEMS}",
    "train.batch_size=1",
    "train.gradient_accumulation_step=1",
    "train.cut_mel_frame=8",
    "train.valid_samples=0",
    "train.dataloader.num_worker=0",
)
_NO_DROPOUT = ("model.encoder.attention_dropout=0", "model.decoder.attention_dropout=0")
_NO_CHANCE = ("model.gain_db=0", "model.blurred=0")
_ADVERSARIAL = (
    "model.band_channels=4",
    "model.lambda_adversarial=0.5",
    "model.adversarial_start=0",
)
_ALIGNED = "preprocess.aligner=pocketsphinx"
_LEARNED = "preprocess.aligner=learned"
# every model, by the name of its recipe and what differs from that
MODELS: dict[str, tuple[str, tuple[str, ...]]] = {
    "FastSpeech 2": ("fastspeech2", ()),
    "FastPitch 1.0": ("fastpitch", ('model.variant="1.0"', _ALIGNED, *_NO_DROPOUT)),
    "FastPitch 1.1": ("fastpitch", (_LEARNED, *_NO_DROPOUT)),
    "FlowSpeech": ("flowspeech", ()),
    "FlowSpeech with learned durations": ("flowspeech", (_LEARNED,)),
    "Matcha": ("matcha", (_ALIGNED, "model.out_size=16", "model.encoder.dropout=0")),
    "Matcha with its own durations": ("matcha", ("model.encoder.dropout=0",)),
    "Tacotron 2": ("tacotron2", ()),
    "HiFi-GAN": ("hifigan", ()),
    "Vocos": ("vocos", ()),
    "WaveGlow": ("waveglow", ()),
    "FreeVGL": ("freevgl", _NO_CHANCE),
    "FreeVGL with discriminators": ("freevgl", (*_NO_CHANCE, *_ADVERSARIAL)),
}


class Outcome(NamedTuple):
    """Weights of all networks in one vector, and the losses of the update."""

    before: Tensor
    after: Tensor
    losses: dict[str, float]


@cache
def data_of(model: str, place: ProcessRank) -> tuple[Config, Assets, list[Any]]:
    """The configuration of a model, and its training items of a process."""
    name, overrides = MODELS[model]
    config = generated_config(name, [*_FEW, *overrides], small=True)
    assets = collect_assets(config)
    dataset: Any = load_data(config, assets, place, CPU).train.dataset
    items = range(place.rank, N_ITEMS, place.n_processes)
    return config, assets, [dataset.items[Draw(0, item)] for item in items]


def outcome_of(model: str, n_batches: int, place: ProcessRank = ProcessRank()) -> Outcome:  # noqa: B008
    """Takes an update by plain gradient descent, so that differences are not normalised.

    Without what differs between micro-batches by design: dropout and other random numbers, and the
    statistics of batch normalisation, whose running means are used instead.
    """
    basic._dropped = lambda values, _: values
    config, assets, own = data_of(model, place)
    torch.manual_seed(0)
    task: Task = find_model(config.task, config.model_type).task.build(config, assets)
    for network in task.networks.values():
        network.train()
        for module in network.modules():
            if isinstance(module, MaskedBatchNorm):
                module.eval()
    collator = make_collator(config.task, assets.mel)
    size = len(own) // n_batches
    window = [collator(own[start : start + size]) for start in range(0, len(own), size)]
    optimizers = {
        key: torch.optim.SGD(network.parameters(), lr=RATE)
        for key, network in task.networks.items()
    }
    updater = Updater(task, optimizers, CPU, max_norm=1.0)
    before = _weights(task)
    if isinstance(task, Scheduled):
        task.begin_update(0)
    report = updater.run(window)
    return Outcome(before, _weights(task), report.losses)


def _weights(task: Task) -> Tensor:
    networks = task.networks.values()
    return torch.cat([p.detach().flatten().double() for n in networks for p in n.parameters()])


def main() -> None:
    """Saves the outcome of the first process."""
    accelerator = Accelerator(cpu=True)
    place = ProcessRank(accelerator.process_index, accelerator.num_processes)
    outcome = outcome_of(sys.argv[1], int(sys.argv[2]), place)
    if accelerator.is_main_process:
        torch.save(outcome._asdict(), Path(sys.argv[3]))
    accelerator.end_training()
    leave(0)


@pytest.fixture(autouse=True)
def _dropout(monkeypatch):
    monkeypatch.setattr(basic, "_dropped", basic._dropped)


def assert_same(one: Outcome, other: Outcome) -> None:
    assert torch.equal(one.before, other.before)
    change = (one.after - one.before).norm()
    assert change > 1e-3
    assert (one.after - other.after).norm() < TOLERANCE * change
    assert other.losses == pytest.approx(one.losses, rel=1e-4)


def test_every_model_is_tested():
    assert {recipe for recipe, _ in MODELS.values()} == known_models().keys()


@pytest.mark.parametrize("model", MODELS)
def test_micro_batches_give_the_updates_of_one_batch(model):
    assert_same(outcome_of(model, 1), outcome_of(model, 4))


@pytest.mark.slow  # that of a small task is in test_processes.py
@pytest.mark.parametrize("model", MODELS)
def test_two_processes_of_two_micro_batches_give_the_updates_of_one_batch(model, tmp_path):
    file = tmp_path / "two.pt"
    run_together(2, "-m", "tests.models.training.test_equivalence", model, 2, file)
    assert_same(outcome_of(model, 1), Outcome(**torch.load(file)))


if __name__ == "__main__":
    main()
