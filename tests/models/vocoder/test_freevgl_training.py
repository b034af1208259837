"""FreeVGL with discriminators on the trainer: two networks, two optimizers, one step."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from models.checkpoint.folders import latest_checkpoint
from models.vocoder import freevgl
from models.vocoder.freevgl import FreeVGL, FreeVGLTask, MagnitudeDiscriminator, Spectra
from models.vocoder.freevgl.config import FreeVGLConfig
from modules.mel import MelSpectrogram
from tests.models.training.small_tasks import make_trainer
from tests.models.training.test_checkpointer import everything
from tests.models.vocoder.small_hifigan import (
    MEL,
    gan_config,
    make_batch,
    make_segments,
    tensors_of,
    updater_of,
)

ADVERSARIAL = {"lambda_adversarial": 0.5, "adversarial_start": 0, "band_channels": 4}
SMALL = FreeVGLConfig(channels=16, n_layers=2, kernel_size=3, iterations=4, **ADVERSARIAL)


def make_task(**changes: object) -> FreeVGLTask:
    """The same networks each time; neither level nor blur is random unless asked for."""
    config = replace(SMALL, **({"gain_db": 0.0, "blurred": 0.0} | changes))
    torch.manual_seed(0)
    network = FreeVGL(config, MEL)
    torch.nn.init.normal_(network.residual.weight, std=0.05)
    discriminator = MagnitudeDiscriminator(config.bands, config.band_channels, MEL)
    return FreeVGLTask(network, discriminator, config, MEL)


def test_discriminators_compare_predicted_with_recorded_magnitudes_given_the_mel():
    task, batch, seen = make_task(), make_batch(0, 1), []
    task.networks["discriminator"].register_forward_pre_hook(lambda _, given: seen.extend(given))
    next(task.training_step(batch))
    recorded, predicted = seen[0].chunk(2)
    edge = freevgl.edge_frames(MEL)
    with torch.no_grad():
        expected = MelSpectrogram(MEL).magnitude(batch.wav).log(), task.network(batch.mel)
    for image, log_magnitude in zip((recorded, predicted), expected, strict=True):
        audible = log_magnitude.clamp(min=-8.1117)  # 3e-4
        assert torch.allclose(image[:, 0], audible[..., edge:-edge], atol=1e-3)
        assert torch.equal(image[:, 1], recorded[:, 1])
    bands = (MelSpectrogram(MEL).filters @ recorded[:, 1].exp()).log()
    assert (bands - batch.mel[..., edge:-edge]).abs().mean() < 0.2  # the level of the mel


def test_before_the_start_the_network_is_trained_as_without_discriminators():
    plain, late, started = make_task(), make_task(adversarial_start=2), make_task()
    del plain.networks["discriminator"]
    for task in (plain, late, started):
        task.begin_update(1)
        updater_of(task, 0.05).run([make_batch(0, 1)])
    tasks = (plain, late, started)
    without, before, after = (tensors_of(task, "named_parameters") for task in tasks)
    assert all(torch.allclose(before[name], without[name], atol=1e-6) for name in without)
    assert not torch.allclose(after["model.residual.weight"], before["model.residual.weight"])
    discriminators = before.keys() - without.keys()
    assert all(torch.equal(before[name], after[name]) for name in discriminators)


def test_from_the_start_on_the_losses_have_the_weights_of_the_config():
    task = make_task(adversarial_start=2)
    for step, expected in ((1, [0.0, 0.0]), (2, [0.5, 2.0])):
        task.begin_update(step)
        _, update = task.training_step(make_batch(0))
        assert [update.losses[key].weight for key in ("gen_adv", "feature_matching")] == expected


def test_validation_prefers_magnitudes_as_rough_as_those_of_the_recording_to_blurred_ones():
    torch.manual_seed(0)
    task = make_task()
    recorded, other = torch.randn(2, 1, 129, 40).mul(0.6).exp()
    blurred, level = torch.zeros_like(recorded), torch.zeros_like(recorded)
    rough = task.validation_losses(Spectra(other.log(), recorded, level))
    flat = task.validation_losses(Spectra(blurred, recorded, level))
    assert rough.keys() == flat.keys() == {"mel", "contrast"}
    assert float(flat["contrast"].total) == pytest.approx(0.6, abs=0.03)  # its deviation
    assert float(rough["contrast"].total) < 0.2
    with_l1 = [float((hat - recorded.log()).abs().mean()) for hat in (other.log(), blurred)]
    assert with_l1[0] > with_l1[1]  # what L1 would choose


def test_without_discriminators_validation_measures_what_is_trained():
    task, batch = make_task(), make_batch(0)
    del task.networks["discriminator"]
    spectra = task.spectra(batch.mel, batch.wav)
    assert task.validation_losses(spectra) == task.reconstruction_losses(spectra)


def run(store, folder: Path, resume: bool = False, **changes: object):
    config = gan_config(ema_decay=0.9, valid_steps=2, **changes)
    task = make_task(adversarial_start=3, gain_db=10.0, blurred=0.5, bands=((0.0, 0.3), (0.2, 0.5)))
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
    files = {path.stem for path in latest_checkpoint(tmp_path / "parts").glob("*.safetensors")}
    assert files == {"model", "raw_model", "discriminator"}
