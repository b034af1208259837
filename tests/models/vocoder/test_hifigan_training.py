"""HiFi-GAN on the trainer: two networks, two optimizers, one step."""

import math
from dataclasses import replace

import pytest
import torch
from torch.nn import functional as F
from torch.nn.utils import parametrize

from config.train import AdamConfig, ScheduleConfig
from models.base.task import LossTerm
from models.checkpoint.folders import latest_checkpoint
from models.training.observing.scoring import eval_mode, validate
from models.vocoder.hifigan import normalise_weights
from models.vocoder.hifigan.config import DiscriminatorConfig
from modules.mel import MelSpectrogram
from tests.models.training.test_checkpointer import everything
from tests.models.vocoder import plain_hifigan
from tests.models.vocoder.plain_hifigan import PlainDiscriminator, PlainHiFiGAN
from tests.models.vocoder.small_hifigan import (
    DISCRIMINATOR,
    GENERATOR,
    MEL,
    gan_config,
    make_batch,
    make_gan,
    make_gan_trainer,
    make_recordings,
    make_segments,
    tensors_of,
    updater_of,
)

CPU = torch.device("cpu")
RATE = 0.003


def changed(before, after):
    """The networks some of whose tensors differ."""
    return {name.split(".")[0] for name in before if not torch.equal(before[name], after[name])}


def largest_difference(first, second):
    return max((first[name] - second[name]).abs().max().item() for name in first)


def after_updates(task, *windows):
    updater = updater_of(task, RATE)
    for window in windows:
        updater.run(window)
    return tensors_of(task)


def test_a_step_is_that_of_the_paper():
    """With plain autograd: first the discriminators, then the generator."""
    batch, task = make_batch(0, 1), make_gan()
    plain = PlainHiFiGAN(GENERATOR, MEL.n_mels)
    normalise_weights(plain)
    discriminators = PlainDiscriminator(DISCRIMINATOR).eval()
    plain.load_state_dict(task.networks["generator"].state_dict())
    discriminators.load_state_dict(task.networks["discriminator"].state_dict())
    updater_of(task, RATE).run([batch])
    wav_hat = plain(batch.mel)
    descend(plain_hifigan.discriminator_loss(discriminators, batch.wav, wav_hat), discriminators)
    iterate_spectral_norms(discriminators)
    mel_of = MelSpectrogram(replace(MEL, padding="hifigan"))
    mel_loss = F.l1_loss(mel_of(wav_hat), mel_of(batch.wav))
    descend(plain_hifigan.generator_loss(discriminators, batch.wav, wav_hat) + 45 * mel_loss, plain)
    for network, ours in ((plain, "generator"), (discriminators, "discriminator")):
        start, found = (gan.networks[ours].state_dict() for gan in (make_gan(), task))
        assert largest_difference(found, network.state_dict()) < 1e-5
        assert largest_difference(found, start) > 1e-3


def iterate_spectral_norms(network):
    for module in network.train().modules():
        if parametrize.is_parametrized(module):
            module.weight  # noqa: B018  (reading it iterates once)
    network.eval()


@torch.enable_grad()
def descend(loss, network):
    parameters = list(network.parameters())
    gradients = torch.autograd.grad(loss, parameters)
    with torch.no_grad():
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter -= RATE * gradient


def test_the_generator_first_learns_alone_if_asked_to():
    task = make_gan(adversarial=False, lambda_stft=1.0)
    before = tensors_of(task)
    report = updater_of(task, RATE).run([make_batch(0, 1)])
    assert list(task.networks) == list(report.norms) == ["generator"]
    assert report.losses.keys() == {"mel", "stft"}
    assert changed(before, tensors_of(task)) == {"generator"}


def not_a_number(*_arguments):
    return {"broken": LossTerm(torch.full((), math.nan, requires_grad=True), "items")}


NETWORKS = {"discriminator_losses": "discriminator", "adversarial_losses": "generator"}


@pytest.mark.parametrize(("step", "skipped"), NETWORKS.items())
def test_a_step_that_is_not_finite_leaves_its_network_whole_and_the_other_learns(
    monkeypatch, step, skipped
):
    task = make_gan()
    before = tensors_of(task, "named_parameters")
    monkeypatch.setattr(f"models.vocoder.hifigan.{step}", not_a_number)
    report = updater_of(task, RATE).run([make_batch(0), make_batch(1)])
    after = tensors_of(task, "named_parameters")
    assert report.faults == {skipped: "loss broken"}
    assert changed(before, after) == set(NETWORKS.values()) - {skipped}
    assert all(bool(tensor.isfinite().all()) for tensor in tensors_of(task).values())


def test_a_broken_recording_leaves_both_networks_whole_and_is_named():
    task, undisturbed = make_gan(), make_gan()
    before, updater = tensors_of(task), updater_of(task, RATE)
    broken = make_batch(2)
    broken.wav[0, 5] = math.nan
    report = updater.run([make_batch(0), broken])
    assert report.faults.keys() == {"generator", "discriminator"}
    assert set(report.utterances) == {"rec-002"}
    assert changed(before, tensors_of(task)) == set()
    updater.run([make_batch(0, 1)])
    assert changed(tensors_of(task), after_updates(undisturbed, [make_batch(0, 1)])) == set()


def test_max_steps_counts_both_updates_as_one_step(store, tmp_path):
    trainer = make_gan_trainer(store, tmp_path / "run", gan_config(max_steps=3))
    trainer.fit()
    assert trainer.position.step == 3
    assert trainer._updater.optimizers.keys() == {"generator", "discriminator"}
    for optimizer in trainer._updater.optimizers.values():
        assert {int(state["step"]) for state in optimizer.state.values()} == {3}
    files = {path.name for path in (tmp_path / "run" / "step-00000003").iterdir()}
    assert {"model.safetensors", "discriminator.safetensors"} < files


def test_both_optimizers_follow_the_schedule(store, tmp_path, monkeypatch):
    store = make_recordings(tmp_path / "fewer", 6)
    schedule = {"scheduler": "exponential", "lr_scheduler": ScheduleConfig(gamma=0.5)}
    config = gan_config(max_steps=3, adam=AdamConfig(lr=0.4), **schedule)
    trainer = make_gan_trainer(store, tmp_path / "run", config)
    optimizers, update, rates = trainer._updater.optimizers, trainer._updater.run, []

    def recorded(window):
        rates.append([optimizers[name].param_groups[0]["lr"] for name in trainer.run.task.networks])
        return update(window)

    monkeypatch.setattr(trainer._updater, "run", recorded)
    trainer.fit()
    assert rates == [[0.4] * 2, [0.2] * 2, [0.1] * 2]  # a batch an epoch


def run(store, folder, resume=False, **changes):
    # a period and a scale
    gan = make_gan(discriminator=DiscriminatorConfig((2,), (4,) * 5, 1, (4, *[16] * 6)))
    trainer = make_gan_trainer(store, folder, gan_config(**changes), gan)
    if resume:
        trainer.checkpointer.resume(latest_checkpoint(folder))
    trainer.fit()
    return everything(trainer)


@pytest.mark.parametrize("window", [1, 2])
def test_a_resumed_run_is_bit_equal_in_networks_and_optimizers(store, tmp_path, window):
    options = {"gradient_accumulation_step": window, "valid_steps": 2, "max_steps": 5}
    whole = run(store, tmp_path / "whole", **options)
    run(store, tmp_path / "parts", **(options | {"max_steps": 3}))  # within an epoch
    parts = run(store, tmp_path / "parts", resume=True, **options)
    weights, optimizers, *_ = whole
    assert {name.split(".")[0] for name in weights} == {"generator", "discriminator"}
    assert {name.split(".")[0] for name in optimizers} == {"generator", "discriminator"}
    assert parts[:3] == whole[:3]


@pytest.mark.slow
def test_training_brings_the_copies_nearer_to_the_recordings(store, tmp_path):
    config = gan_config(max_steps=30, adam=AdamConfig(lr=2e-3, betas=(0.8, 0.99)))
    trainer = make_gan_trainer(store, tmp_path / "run", config, make_gan(lambda_stft=1.0))
    before = validate(trainer.run.task, trainer.run.data.valid, CPU)
    trainer.fit()
    after = validate(trainer.run.task, trainer.run.data.valid, CPU)
    assert after.loss < 0.8 * before.loss
    assert after.metrics["stft"] < before.metrics["stft"]


def test_validation_measures_each_recording_without_its_padding(store):
    task = make_gan()
    data = make_segments(store, gan_config(batch_size=9))
    found = validate(task, data.valid, CPU)
    mel_of, total, n_frames = MelSpectrogram(MEL), 0.0, 0
    with eval_mode(task.networks.values()):
        for id in store.ids[8:12]:
            mel = torch.from_numpy(store.read(id).mel)[None]
            mel_hat = mel_of(task.networks["generator"](mel))
            total += (mel_hat - mel).abs().mean().item() * mel.shape[2]
            n_frames += mel.shape[2]
    assert found.losses == {"mel_l1": pytest.approx(total / n_frames, rel=1e-4)}
    assert found.loss == found.losses["mel_l1"]
    assert found.metrics["stft"] > 0
