"""Every network on a GPU, compared with the CPU: losses, gradients, accumulation, resuming.

Skipped without CUDA. ARION_TEST_DEVICE=cpu runs these tests on the CPU, to try them.
"""

import os
from typing import NamedTuple

import pytest
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from safetensors.torch import load_file
from torch.nn import functional as F

from models.base.registry import find_model
from models.programs.benchmark.run import generated_config, known_models
from models.training.data import ProcessRank, collect_assets, load_data, make_collator
from models.training.trainer import Updater
from processors.dataset.sampler import Draw
from tests.worlds.experiments import train_experiment
from utils.seed import seed_everything

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read when CUDA is first used
DEVICE = os.environ.get("ARION_TEST_DEVICE", "cuda")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(DEVICE == "cuda" and not torch.cuda.is_available(), reason="no CUDA GPU"),
]
CPU = torch.device("cpu")
KINDS = {"fp32": "no", "bf16": "bf16", "fp16": "fp16"}
# Largest relative errors of a loss, and of the gradient of a network as a vector.
TOLERANCES = {"fp32": (1e-4, 1e-3), "fp16": (0.02, 0.1), "bf16": (0.15, 0.3)}
WITH_BATCH_NORMALISATION = {"fastspeech2", "tacotron2"}  # its statistics are those of a micro-batch
FEW = (
    *("train.synthetic_utterances=12", "train.batch_size=4", "train.cut_mel_frame=16"),
    *("train.tracker=none", "train.valid_samples=0", "train.valid_steps=0"),
    *("train.dataloader.num_worker=0", "train.gradient_accumulation_step=1"),
)
# Of two alignments that are almost equally likely, rounding chooses one: durations are given.
GIVEN_DURATIONS = {"fastpitch": ["preprocess.aligner=pocketsphinx"]}


@pytest.fixture
def _without_chance(monkeypatch):
    """Random numbers differ between devices; TF32 would round the products of fp32."""
    attend = F.scaled_dot_product_attention
    monkeypatch.setattr("modules.layers.basic._dropped", lambda values, _: values)
    monkeypatch.setattr(
        F, "scaled_dot_product_attention", lambda q, k, v, mask, _dropout: attend(q, k, v, mask)
    )
    monkeypatch.setattr(torch, "rand", lambda *n, device=None: torch.full(n, 0.5, device=device))
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)


@pytest.fixture
def _deterministic():
    torch.use_deterministic_algorithms(True, warn_only=True)
    yield
    torch.use_deterministic_algorithms(False)


class Result(NamedTuple):
    losses: dict[str, float]
    gradients: dict[str, torch.Tensor]  # by network, as one vector


def update(model, device, precision="fp32", size=4):
    """One update, of four utterances in micro-batches of `size`, that leaves the weights alone."""
    AcceleratorState._reset_state(reset_partial_state=True)
    accelerator = Accelerator(cpu=device == "cpu", mixed_precision=KINDS[precision])
    config = generated_config(model, [*FEW, *GIVEN_DURATIONS.get(model, ())], small=True)
    assets = collect_assets(config)
    seed_everything(1)
    task = find_model(config.task, config.model_type).task.build(config, assets)
    for network in task.networks.values():
        accelerator.prepare_model(network, evaluation_mode=True)
        network.train()
    items = load_data(config, assets, ProcessRank(), CPU).train.dataset.items
    collate = make_collator(config.task, assets.mel)
    drawn = [items[Draw(0, i)] for i in range(4)]
    window = [collate(drawn[first : first + size]) for first in range(0, 4, size)]
    optimizers = {name: torch.optim.SGD(n.parameters(), 0.0) for name, n in task.networks.items()}
    updater = Updater(task, optimizers, accelerator.device, half=precision == "fp16")
    if precision == "fp16":  # small enough for the first gradients
        updater.scaler.load_state_dict({**updater.scaler.state_dict(), "scale": 64.0})
    report = updater.run(window)
    assert report.updated == task.networks.keys()
    return Result(report.losses, {name: gradient_of(n) for name, n in task.networks.items()})


def gradient_of(network):
    parameters = (p for p in network.parameters() if p.grad is not None)
    return torch.cat([p.grad.detach().double().cpu().flatten() for p in parameters])


def assert_close(found, expected, precision):
    of_losses, of_gradients = TOLERANCES[precision]
    # the log-mel of an untrained HiFi-GAN, almost silent, is off by 2.3 % on an H200 in fp16
    is_silent = precision == "fp16" and "generator" in expected.gradients
    of_mel = 0.03 if is_silent else of_losses
    for name, loss in expected.losses.items():
        error = of_mel if name == "mel" else of_losses
        assert found.losses[name] == pytest.approx(loss, rel=error, abs=1e-3), name
    for name, gradient in expected.gradients.items():
        error = float((found.gradients[name] - gradient).norm() / gradient.norm())
        # an untrained generator is almost silent, and the gradient of a log-mel there is all noise
        is_noisy = name == "generator" and precision != "fp32"
        assert error < (1.0 if is_noisy else of_gradients), (name, error)


@pytest.mark.usefixtures("_without_chance")
@pytest.mark.parametrize("precision", KINDS)
@pytest.mark.parametrize("model", known_models())
def test_losses_and_gradients_are_those_of_the_cpu_in_fp32(model, precision):
    if DEVICE == "cpu" and precision == "fp16":
        pytest.skip("fp16 needs a GPU")
    found, expected = update(model, DEVICE, precision), update(model, "cpu")
    assert_close(found, expected, precision)


@pytest.mark.usefixtures("_without_chance")
@pytest.mark.parametrize("model", sorted(known_models().keys() - WITH_BATCH_NORMALISATION))
def test_micro_batches_make_the_update_of_the_whole_batch(model):
    assert_close(update(model, DEVICE, size=2), update(model, DEVICE, size=4), "fp32")


@pytest.mark.usefixtures("_deterministic")
@pytest.mark.parametrize("model", known_models())
def test_a_resumed_run_ends_with_the_same_bits(model, tmp_path):
    def run(name, steps, **flags):
        AcceleratorState._reset_state(reset_partial_state=True)
        limits = [f"train.max_steps={steps}", "train.save_steps=2", f"log_dir={tmp_path}"]
        train_experiment(generated_config(model, [*FEW, *limits], small=True), name, **flags)
        return tmp_path / name / "checkpoints" / f"step-{steps:08d}"

    whole = run("whole", 3)
    run("halves", 2)
    halves = run("halves", 3, resume=True)
    files = sorted(path.name for path in whole.glob("*.safetensors"))
    assert "model.safetensors" in files
    for name in files:
        weights, resumed = load_file(whole / name), load_file(halves / name)
        assert weights.keys() == resumed.keys()
        assert all(torch.equal(weights[key], resumed[key]) for key in weights), name
