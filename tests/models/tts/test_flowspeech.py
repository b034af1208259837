from dataclasses import replace
from pathlib import Path

import pytest
import torch

from models.base.assets import Assets
from models.base.registry import load_config
from models.tts.flowspeech import FlowSpeech, FlowSpeechTask
from models.tts.flowspeech.config import (
    EstimatorConfig,
    FlowSpeechConfig,
    PhoneEncoderConfig,
    ProsodyConfig,
)
from models.tts.flowspeech.network import DilatedDepthwise
from modules.flow import frame_noise, seeds_of_phones
from modules.mel import MelConfig
from modules.variance.pitch_transform import PitchTransform
from tests.models.tts.batches import ENERGY, MEL, N_MELS, N_PHONES, PITCH, batch_of, losses_of
from utils.errors import InputError

ROOT = Path(__file__).parents[3]
SMALL = FlowSpeechConfig(
    hidden=16,
    encoder=PhoneEncoderConfig(n_layers=1, filter_size=32, kernel_size=3, dropout=0.0),
    prosody=ProsodyConfig(channels=16, kernel_size=3, dropout=0.0, n_bins=16),
    estimator=EstimatorConfig(channels=16, n_blocks=2, kernel_size=3, dilations=(1, 2)),
)
PROSODY_PARTS = ("prosody_encoder.", "duration_predictor.", "pitch.predictor.", "energy.predictor.")


def network_of(config: FlowSpeechConfig = SMALL) -> FlowSpeech:
    """A network whose parts that begin at zero are as after training."""
    torch.manual_seed(0)
    network = FlowSpeech(config, N_PHONES, MEL, PITCH, ENERGY)
    network.f0_residual.predictor.dropout.p = 0.0
    torch.nn.init.normal_(network.f0_residual.predictor.linear.weight, std=0.1)
    torch.nn.init.normal_(network.estimator.velocity.weight, std=0.1)
    return network


def task_of(network: FlowSpeech) -> FlowSpeechTask:
    return FlowSpeechTask(network, Assets(MelConfig()))


@pytest.mark.parametrize("dilation", [1, 2, 4])
def test_a_dilated_convolution_is_that_of_pytorch(dilation):
    layer, frames = DilatedDepthwise(8, 7, dilation), torch.randn(2, 21, 8)
    weight, bias = layer.conv.weight, layer.conv.bias
    options = {"padding": 3 * dilation, "dilation": dilation, "groups": 8}
    expected = torch.nn.functional.conv1d(frames.mT, weight, bias, **options).mT
    torch.testing.assert_close(layer(frames), expected)


def test_a_long_mel_in_windows_is_that_of_the_whole(monkeypatch):
    network = network_of().eval()
    ids, lengths = torch.randint(1, N_PHONES, (2, 30)), torch.tensor([30, 21])
    durations = torch.full_like(ids, 3) * (torch.arange(30) < lengths[:, None])
    whole = network.infer(ids, lengths, durations=durations).mel
    monkeypatch.setattr("models.tts.flowspeech.network._WINDOW_FRAMES", 16)
    torch.testing.assert_close(network.infer(ids, lengths, durations=durations).mel, whole)


def test_predictors_share_no_gradient_with_the_mel_and_the_flow_trains_no_mean_mel():
    trained = []
    for names in (("duration", "pitch"), ("flow",)):
        network = network_of().train()
        losses = losses_of(task_of(network), batch_of())
        sum(losses[name].total for name in names).backward()
        trained.append({name for name, p in network.named_parameters() if p.grad is not None})
    assert all(name.startswith(PROSODY_PARTS) for name in trained[0])
    assert not any(name.startswith((*PROSODY_PARTS, "prior.")) for name in trained[1])
    assert {"phone_embedding.weight", "estimator.noisy.weight"} <= trained[1]


def test_the_flow_loss_is_the_squared_error_of_the_velocity_over_valid_frames():
    network, batch = network_of().train(), batch_of()
    network.begin_update(5)
    noise = frame_noise(seeds_of_phones(batch.phone_ids, 6), batch.mel.shape[2], N_MELS)
    _, times = network.draw(batch.phone_ids, 1)
    mel = (batch.mel.mT + 5.5) / 2.2
    output = network(mel, noise, times, *network.inputs_of(batch))
    expected = 0.0
    for item, T in enumerate(batch.mel_lengths):
        velocity = mel[item, :T] - (1 - 1e-4) * noise[item, :T]
        error = output.velocity_hat[item, :T] - velocity
        expected += error.square().mean(dim=1).sum().item()
    loss = losses_of(task_of(network), batch)["flow"].total
    assert loss.item() == pytest.approx(expected, rel=1e-4)


def test_noise_of_training_depends_on_update_and_utterance_not_on_the_batch():
    network, batch = network_of().train(), batch_of()
    network.begin_update(0)
    noise, times = network.draw(batch.phone_ids, 20)
    alone, time = network.draw(batch.phone_ids[1:2, :4], 20)
    assert torch.equal(alone, noise[1:2])
    assert torch.equal(time, times[1:2])
    assert len(set(times.tolist())) == 3
    network.begin_update(1)
    later, _ = network.draw(batch.phone_ids, 20)
    assert not torch.equal(later, noise)
    network.eval()
    validated, _ = network.draw(batch.phone_ids, 20)
    network.begin_update(2)
    assert torch.equal(network.draw(batch.phone_ids, 20)[0], validated)


def test_times_of_training_are_logit_normal():
    _, times = network_of().draw(torch.arange(1, 4001)[:, None], 1)
    assert times.median() == pytest.approx(0.5, abs=0.02)
    # a normal number lies within ln 3 of 0 with a probability of 0.728
    assert times.sub(0.5).abs().lt(0.25).float().mean() == pytest.approx(0.728, abs=0.02)


def speech(network: FlowSpeech, **asked) -> torch.Tensor:
    ids, lengths = torch.tensor([[1, 2, 3]]), torch.tensor([3])
    return network.infer(ids, lengths, durations=torch.full_like(ids, 5), **asked).mel


def test_seed_and_temperature_choose_the_speech_and_more_steps_follow_the_flow_more_closely():
    network = network_of().eval()
    plain = speech(network)
    assert torch.equal(speech(network), plain)
    assert not torch.equal(speech(network, seed=1), plain)
    silent = speech(network, temperature=0.0)
    assert torch.equal(silent, speech(network, temperature=0.0, seed=1))
    assert torch.equal(speech(network, temperature=0.3), plain)
    calm = network_of(replace(SMALL, steps=2, temperature=0.0)).eval()
    assert torch.equal(speech(calm), speech(network, steps=2, temperature=0.0))
    exact = speech(network, steps=50)
    errors = [(speech(network, steps=steps) - exact).abs().mean() for steps in (1, 4, 16)]
    assert errors[0] > 2 * errors[1] > 4 * errors[2] > 0
    assert torch.equal(speech(network, steps=4), speech(network))


def test_pitch_and_energy_can_be_controlled_transformed_and_given():
    network = network_of().eval()
    plain = speech(network)
    for asked in (
        {"pitch_control": 1.2},
        {"energy_control": 0.5},
        {"pitch_transform": PitchTransform(flatten=True)},
        {"pitch": torch.full((1, 3), 250.0)},
    ):
        assert not torch.equal(speech(network, **asked), plain)
    with pytest.raises(ValueError, match="pitch_transform acts on predicted pitch"):
        speech(network, pitch=torch.full((1, 3), 250.0), pitch_transform=PitchTransform())
    batch = batch_of()  # and taught
    mel, higher = network.teacher_forced_mel(batch), batch._replace(f0=batch.f0 * 1.5)
    assert (network.teacher_forced_mel(higher) - mel).abs().max() > 0.01


ADVERSARIAL = replace(SMALL, lambda_adversarial=0.5, lambda_feature=2.0, adversarial_start=2)


def test_discriminators_compare_synthesised_with_recorded_mels_given_the_mean_mel(monkeypatch):
    monkeypatch.setattr("models.tts.flowspeech._SEGMENT_FRAMES", 7)
    network, batch, seen = network_of(ADVERSARIAL).eval(), batch_of(), []
    task = task_of(network)
    task.networks["discriminator"].register_forward_pre_hook(lambda _, given: seen.extend(given))
    with torch.no_grad():
        next(task.training_step(batch))
    recorded, synthesised = seen[0].chunk(2)  # (B, 2, M, 7)
    assert torch.equal(recorded[:, 1], synthesised[:, 1])
    starts = network.seeds(batch.phone_ids)
    expected = network.teacher_forced_mel(batch)
    for item, T in enumerate(batch.mel_lengths.tolist()):
        first = int(starts[item]) % max(1, T - 6)
        n = min(7, T - first)
        mel = (synthesised[item, 0] * 2.2 - 5.5).clamp(min=MEL.log_floor_value)
        torch.testing.assert_close(mel[:, :n], expected[item, :, first : first + n])
        target = (batch.mel[item, :, first : first + n] + 5.5) / 2.2
        torch.testing.assert_close(recorded[item, 0, :, :n], target)
        assert not recorded[item, :, :, n:].any()
        assert not synthesised[item, :, :, n:].any()


def test_with_discriminators_only_the_estimator_learns_from_their_start_on_by_their_losses():
    network = network_of(ADVERSARIAL).train()
    task = task_of(network)
    for step, expected in ((1, [0.0, 0.0]), (2, [0.5, 2.0])):
        task.begin_update(step)
        _, update = task.training_step(batch_of())
        assert [update.losses[key].weight for key in ("gen_adv", "feature_matching")] == expected
    sum(term.total for term in update.losses.values()).backward()
    trained = {name for name, part in network.named_parameters() if part.grad is not None}
    assert trained == {name for name, _ in network.named_parameters() if "estimator" in name}


def test_discriminators_and_learned_durations_exclude_each_other(tmp_path):
    base, config = ROOT / "config" / "tiny" / "flowspeech.json", tmp_path / "config.json"
    config.write_text(f'{{"base_config": "{base}", "model": {{"lambda_adversarial": 1}}}}')
    load_config(config)
    with pytest.raises(InputError, match=r"model\.lambda_adversarial trains the estimator alone"):
        load_config(config, ['preprocess.aligner="learned"'])
