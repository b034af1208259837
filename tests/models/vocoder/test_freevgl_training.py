"""FreeVGL with discriminators on the trainer: two networks, two optimizers, one step."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from accelerate.state import AcceleratorState

from models.checkpoint.folders import latest_checkpoint
from models.training.trainer import Updater, weighted_mean
from models.vocoder._freevgl_discriminators import (
    MagnitudeDiscriminator,
    MagnitudeDiscriminatorConfig,
)
from models.vocoder.freevgl import FreeVGL, FreeVGLConfig, FreeVGLTask, edge_frames
from modules.mel import MelSpectrogram
from tests.models.compiled import assert_compiled_as_eager, by_backend, set_backend
from tests.models.training.small_tasks import make_trainer
from tests.models.training.test_state import everything
from tests.models.vocoder.small_hifigan import (
    MEL,
    gan_config,
    make_batch,
    make_recordings,
    make_segments,
)

SMALL = FreeVGLConfig(
    channels=16,
    n_layers=2,
    kernel_size=3,
    iterations=4,
    lambda_adversarial=0.5,
    adversarial_start=0,
    discriminator=MagnitudeDiscriminatorConfig(channels=4),
)
CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def _accelerate():
    AcceleratorState._reset_state(reset_partial_state=True)


@pytest.fixture
def store(tmp_path):
    return make_recordings(tmp_path / "data")


def make_task(**changes: object) -> FreeVGLTask:
    """The same networks each time; neither level nor blur is random unless asked for."""
    config = replace(SMALL, **({"gain_db": 0.0, "blurred": 0.0} | changes))
    torch.manual_seed(0)
    network = FreeVGL(config, MEL)
    torch.nn.init.normal_(network.residual.weight, std=0.05)
    discriminator = MagnitudeDiscriminator(config.discriminator, MEL)
    return FreeVGLTask(network, discriminator, config, MEL)


def updater_of(task: FreeVGLTask) -> Updater:
    """Plain gradient descent: Adam would make whole steps of rounding errors."""
    optimizers = {
        name: torch.optim.SGD(network.parameters(), lr=0.05)
        for name, network in task.networks.items()
    }
    return Updater(task, optimizers, CPU)


def weights_of(task: FreeVGLTask) -> dict[str, torch.Tensor]:
    return {
        f"{name}.{key}": weight.detach().clone()
        for name, network in task.networks.items()
        for key, weight in network.named_parameters()
    }


@by_backend
def test_compiled_it_trains_as_it_is(monkeypatch, backend):
    set_backend(monkeypatch, backend)
    assert_compiled_as_eager(make_task, make_batch(0, 1), make_batch(0, 1), n_graphs=3)


def test_every_weight_of_both_networks_gets_a_gradient():
    task, batch = make_task(), make_batch(0, 1)
    for update in task.training_step(batch):
        network = task.networks[update.network]
        network.zero_grad()
        weighted_mean(update.losses, task.counts(batch)).backward()
        assert all(weight.grad.abs().max() > 0 for weight in network.parameters())


def test_discriminators_compare_predicted_with_recorded_magnitudes_given_the_mel(monkeypatch):
    task, batch, seen = make_task(), make_batch(0, 1), []
    discriminator = task.networks["discriminator"]
    monkeypatch.setattr(
        discriminator,
        "forward",
        lambda *given: seen.extend(given) or MagnitudeDiscriminator.forward(discriminator, *given),
    )
    next(task.training_step(batch))
    recorded, predicted = seen[0].chunk(2)
    edge = edge_frames(MEL)
    with torch.no_grad():
        expected = MelSpectrogram(MEL).magnitude(batch.wav).log(), task.network(batch.mel)
    for image, log_magnitude in zip((recorded, predicted), expected, strict=True):
        audible = log_magnitude.clamp(min=-8.1117)  # 3e-4
        assert torch.allclose(image[:, 0], audible[..., edge:-edge], atol=1e-3)
        assert torch.equal(image[:, 1], recorded[:, 1])
    bands = (MelSpectrogram(MEL).filters @ recorded[:, 1].exp()).log()
    assert (bands - batch.mel[..., edge:-edge]).abs().mean() < 0.2  # the level of the mel


def test_before_the_start_only_the_discriminators_use_their_losses():
    plain, late, started = make_task(), make_task(adversarial_start=2), make_task()
    del plain.networks["discriminator"]
    for task, step in ((plain, 0), (late, 1), (started, 0)):
        task.begin_update(step)
        updater_of(task).run([make_batch(0, 1)])
    weights = [weights_of(task) for task in (plain, late, started)]
    for name in weights[0]:  # of the network
        assert torch.allclose(weights[1][name], weights[0][name], atol=1e-6)
    assert not torch.allclose(
        weights[2]["model.residual.weight"], weights[0]["model.residual.weight"], atol=1e-4
    )
    assert all(
        torch.equal(weights[1][name], weights[2][name])
        for name in weights[1]
        if name.startswith("disc")
    )
    late.begin_update(2)
    assert {
        term.weight
        for term in late.adversarial_losses(
            late.spectra(make_batch(0).mel, make_batch(0).wav)
        ).values()
    } == {0.5, 2.0}


def test_two_micro_batches_of_one_make_the_update_of_one_batch_of_two():
    start = weights_of(make_task())
    found = []
    for windows in ([[make_batch(0, 1)]] * 2, [[make_batch(0), make_batch(1)]] * 2):
        task = make_task()
        updater = updater_of(task)
        for window in windows:
            updater.run(window)
        found.append(weights_of(task))
    for name, weight in found[0].items():
        assert torch.allclose(weight, found[1][name], atol=2e-6), name
    changed = {name.split(".")[0] for name in start if not torch.equal(start[name], found[0][name])}
    assert changed == {"model", "discriminator"}


def run(store, folder: Path, resume: bool = False, **changes: object):
    config = gan_config(ema_decay=0.9, valid_steps=2, **changes)
    task = make_task(adversarial_start=3, gain_db=10.0, blurred=0.5)
    trainer = make_trainer(store, folder, config, task, make_segments(store, config))
    if resume:
        trainer.checkpointer.resume(latest_checkpoint(folder))
    trainer.fit()
    return everything(trainer)


@pytest.mark.parametrize("window", [1, 2])
def test_a_resumed_run_is_bit_equal_in_networks_average_and_optimizers(store, tmp_path, window):
    options = {"gradient_accumulation_step": window, "max_steps": 6}
    whole = run(store, tmp_path / "whole", **options)
    run(store, tmp_path / "parts", **(options | {"max_steps": 3}))
    parts = run(store, tmp_path / "parts", resume=True, **options)
    weights, optimizers, *_ = whole
    assert {name.split(".")[0] for name in weights} == {"model", "discriminator", "average"}
    assert {name.split(".")[0] for name in optimizers} == {"model", "discriminator"}
    assert parts[:3] == whole[:3]


def test_a_checkpoint_holds_the_average_both_networks_and_the_state(store, tmp_path):
    run(store, tmp_path / "run", max_steps=2)
    files = {path.name for path in latest_checkpoint(tmp_path / "run").glob("*.safetensors")}
    assert files == {"model.safetensors", "raw_model.safetensors", "discriminator.safetensors"}
