"""Matcha's own numbers; tests/models/test_contract.py has what every model must do."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from models.tts.matcha import Matcha, MatchaTask
from models.tts.matcha.config import MatchaConfig
from models.tts.matcha.unet import Doubling, FrameMasks, GroupNorm, Halving
from modules.flow import frame_noise, seeds_of_phones
from modules.layers.transformer import turned
from processors.dataset.batch import TtsBatch
from tests.models.tts.batches import losses_of, mean_loss
from tests.worlds.networks import Subject, padded

MEAN, STD = MatchaConfig.mel_mean, MatchaConfig.mel_std
IDS, LENGTHS = torch.tensor([[1, 2, 3, 4]]), torch.tensor([4])


@pytest.fixture(scope="module")
def subject() -> Subject:
    return Subject("matcha")


@pytest.fixture
def task(subject) -> MatchaTask:
    return subject.task()


@pytest.fixture
def batch(subject) -> TtsBatch:
    return subject.phones()


def test_halving_and_doubling_are_convolutions_with_a_stride_of_two():
    frames, mask = torch.randn(2, 12, 4), torch.ones(2, 12, dtype=torch.bool)
    halving, doubling = Halving(4), Doubling(4)
    kernel = halving.linear.weight.unflatten(1, (3, 4)).mT
    expected = nn.functional.conv1d(frames.mT, kernel, halving.linear.bias, 2, 1).mT
    torch.testing.assert_close(halving(frames, mask), expected)
    doubled = doubling(frames, mask)
    torch.testing.assert_close(doubled, doubling.conv(frames.mT).mT)
    assert doubled.shape == (2, 24, 4)


def test_group_normalisation_reads_the_frames_up_to_a_multiple_of_four():
    norm, frames = GroupNorm(8, 16), torch.randn(2, 12, 16) + 3
    nn.init.normal_(norm.weight)
    masks = FrameMasks.of_lengths(torch.tensor([11, 6]), 12)
    normed = norm(frames, masks.read)
    for item, n_read in ((0, 12), (1, 8)):
        alone = nn.functional.group_norm(frames[item : item + 1, :n_read].mT, 8, norm.weight)
        torch.testing.assert_close(normed[item, :n_read], alone[0].mT, rtol=1e-4, atol=1e-5)
    assert masks.halved().valid.tolist() == [[True] * 6, [True] * 3 + [False] * 3]
    assert masks.halved().read.sum(dim=1).tolist() == [6, 4]


def test_rotary_positions_give_scores_of_distances():
    generator = torch.Generator().manual_seed(0)
    query, key = torch.randn(2, 1, 1, 1, 8, generator=generator)
    queries, keys = (turned(part.expand(1, 1, 9, 8), 4) for part in (query, key))
    scores = (queries @ keys.mT)[0, 0]
    for distance in range(-4, 5):
        diagonal = scores.diagonal(distance)
        torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal))
    assert scores[0].std() > 0.1


def test_more_padding_changes_neither_learned_durations_nor_what_is_trained_on_them(subject, batch):
    results = []
    for variant in (batch, padded(batch, subject.mel)):
        task = subject.task()
        loss = mean_loss(task, variant._replace(durations=None))
        loss.backward()
        gradients = {name: p.grad for name, p in task.network.named_parameters()}
        results.append({"loss": loss.detach(), **gradients})
    torch.testing.assert_close(*results, rtol=1e-3, atol=1e-4)
    task = subject.task()
    losses_of(task, batch)["duration"].total.backward()  # trains nothing but the predictor
    trained = {name for name, p in task.network.named_parameters() if p.grad is not None}
    assert all(name.startswith("encoder.duration_predictor.") for name in trained)


def test_losses_are_those_of_the_paper_over_valid_frames(task, batch):
    output, mel = task.network(batch), (batch.mel.mT - MEAN) / STD
    noise, _, _ = task.network.draw(batch.phone_ids, batch.mel.shape[2])
    normal = torch.distributions.Normal(torch.zeros(()), torch.ones(()))
    expected = dict.fromkeys(("flow", "prior", "duration"), 0.0)
    for item, (T, N) in enumerate(zip(batch.mel_lengths, batch.phone_lengths, strict=True)):
        error = output.velocity_hat[item, :T] - (mel[item, :T] - (1 - 1e-4) * noise[item, :T])
        expected["flow"] += error.square().mean(dim=1).sum().item()
        deviation = output.prior[item, :T] - mel[item, :T]
        expected["prior"] -= normal.log_prob(deviation).mean(dim=1).sum().item()
        error = output.log_durations_hat[item, :N] - batch.durations[item, :N].log()
        expected["duration"] += error.square().sum().item()
    losses = {name: term.total.item() for name, term in losses_of(task, batch).items()}
    assert losses == pytest.approx(expected, rel=1e-4)


def test_without_durations_the_most_likely_alignment_is_found(task, batch):
    network, mask = task.network, batch.phone_ids > 0
    with torch.no_grad():
        prior, _ = network._encode(batch.phone_ids, mask, batch.speaker_ids)
    mel = (prior * STD + MEAN).repeat_interleave(3, dim=1).mT  # three frames of each phone
    recorded = batch._replace(mel=mel, mel_lengths=3 * batch.phone_lengths, durations=None)
    assert torch.equal(network.durations_of(recorded), 3 * mask)
    attention = network.teacher_forced_attention(recorded)
    assert attention[0].sum(dim=0).tolist() == [3] * int(batch.phone_lengths[0])
    assert torch.equal(network.durations_of(batch), batch.durations)


def test_segments_are_parts_of_the_mels_and_counted_so(task, batch):
    network = task.network.train()
    network.config = replace(network.config, out_size=8)
    output, mel = task.network(batch), (batch.mel.mT - MEAN) / STD
    for item, T in enumerate(batch.mel_lengths.tolist()):
        n = min(8, T)
        segments = [mel[item, start : start + n] for start in range(T - n + 1)]
        assert sum(torch.equal(output.mel[item, :n], segment) for segment in segments) == 1
    assert task.counts(batch)["frames"] == batch.mel_lengths.clamp(max=8).sum()
    network.eval()
    assert task.counts(batch)["frames"] == batch.mel_lengths.sum()


def test_noise_of_training_depends_on_update_and_utterance_not_on_the_batch(task, batch):
    network = task.network.train()
    network.begin_update(5)
    drawn, alone = (network.draw(ids, 20) for ids in (batch.phone_ids, batch.phone_ids[1:2, :4]))
    assert torch.equal(drawn.noise, frame_noise(seeds_of_phones(batch.phone_ids, 6), 20, 20))
    for part, together in zip(alone, drawn, strict=True):
        assert torch.equal(part, together[1:2])
    assert len({*drawn.times.tolist(), *drawn.positions.tolist()}) == 6
    network.eval()
    validated = network.draw(batch.phone_ids, 20)
    network.begin_update(6)
    assert torch.equal(network.draw(batch.phone_ids, 20).noise, validated.noise)


def speech(network: Matcha, **controls: object) -> torch.Tensor:
    return network.infer(IDS, LENGTHS, durations=torch.full_like(IDS, 5), **controls).mel


def test_seed_temperature_and_noise_choose_the_speech_and_more_steps_follow_the_flow(subject):
    network = subject.network()
    plain, silent = speech(network), speech(network, temperature=0.0)
    assert not torch.equal(speech(network, seed=1), plain)
    assert torch.equal(silent, speech(network, temperature=0.0, seed=1))
    noise = frame_noise(seeds_of_phones(IDS, 0), 24, subject.mel.n_mels).mT  # of 20 frames
    for n_frames in (24, 20):
        assert torch.equal(speech(network, noise=noise[:, :, :n_frames]), plain)
    with pytest.raises(ValueError, match="20 bands and 20 frames or more"):
        speech(network, noise=noise[:, :, :19])

    exact = speech(network, steps=30)
    errors = [(speech(network, steps=steps) - exact).abs().mean() for steps in (2, 8)]
    assert errors[0] > 2 * errors[1] > 0
    assert torch.equal(speech(network, steps=2), speech(network))


def test_pace_and_limits_hold_for_durations(subject):
    network, durations = subject.network(), torch.tensor([[2, 3, 0, 4]])
    for frames, controls, expected in (
        # ends at 3, 7.5 and 13.5, of 13 frames
        (durations, {"duration_control": 1.5}, [3, 5, 0, 5]),
        (durations, {"max_frames": torch.tensor([4])}, [2, 2, 0, 0]),
        (0 * durations, {}, [1, 0, 0, 0]),
    ):
        spoken = network.infer(IDS, LENGTHS, durations=frames, **controls)
        assert spoken.durations.tolist() == [expected]


def test_samples_show_the_alignment(task, batch):
    pytest.importorskip("matplotlib")
    samples = list(task.samples(batch._replace(durations=None)))
    assert [sample.id for sample in samples] == list(batch.ids)
    assert all(sample.figures.keys() == {"mel", "alignment"} for sample in samples)
