from dataclasses import replace

import pytest
import torch
from torch import nn

from models.base.assets import Assets
from models.tts.matcha import Matcha, MatchaTask
from models.tts.matcha.config import DecoderConfig, EncoderConfig, MatchaConfig
from models.tts.matcha.unet import Doubling, FrameMasks, GroupNorm, Halving
from modules.flow import frame_noise, seeds_of_phones
from modules.layers.transformer import turned
from processors.dataset.batch import TtsBatch
from tests.models.tts.batches import (
    FLOOR,
    MEL,
    N_MELS,
    N_PHONES,
    batch_of,
    losses_of,
    mean_loss,
    pad,
)

SMALL = MatchaConfig(
    encoder=EncoderConfig(
        hidden=16, n_layers=1, filter_size=24, dropout=0.0, duration_filter_size=16,
        duration_dropout=0.0,
    ),
    decoder=DecoderConfig(channels=(16, 24), n_middle_stages=1, head_size=8, dropout=0.0),
    speaker_size=8,
    mel_mean=0.5,
    mel_std=1.5,
    steps=3,
)  # fmt: skip


def network_of(config: MatchaConfig = SMALL, n_speakers: int = 1) -> Matcha:
    """A network whose prenet is as after training; without its dropout."""
    torch.manual_seed(0)
    network = Matcha(config, N_PHONES, n_speakers, N_MELS, FLOOR)
    network.encoder.prenet.dropout.p = 0.0
    nn.init.normal_(network.encoder.prenet.linear.weight, std=0.1)
    return network


def task_of(network: Matcha) -> MatchaTask:
    return MatchaTask(network, Assets(MEL))


def batch_with_durations(*, given: bool) -> TtsBatch:
    """Each phone has a frame: without durations the alignment gives it one."""
    batch = batch_of()
    durations = batch.durations.clamp(min=1) * (batch.phone_ids > 0)
    lengths = durations.sum(dim=1)
    generator = torch.Generator().manual_seed(1)
    mel = torch.randn(len(lengths), N_MELS, int(lengths.max()), generator=generator)
    T = mel.shape[2]
    return batch._replace(
        mel=mel.masked_fill(torch.arange(T) >= lengths[:, None, None], FLOOR),
        mel_lengths=lengths,
        durations=durations if given else None,
        f0=torch.zeros(len(lengths), T),
        energy=torch.zeros(len(lengths), T),
    )


@pytest.mark.parametrize(("n_speakers", "n_parameters"), [(1, 18_204_193), (109, 20_857_569)])
def test_the_default_sizes_are_the_published_ones(n_speakers, n_parameters):
    network = Matcha(MatchaConfig(), 178, n_speakers, 80, FLOOR)
    assert sum(parameter.numel() for parameter in network.parameters()) == n_parameters


def test_halving_and_doubling_are_convolutions_with_a_stride_of_two():
    frames, mask = torch.randn(2, 12, 4), torch.ones(2, 12, dtype=torch.bool)
    halving, doubling = Halving(4), Doubling(4)
    conv = nn.Conv1d(4, 4, 3, 2, 1)
    conv.weight.data = halving.linear.weight.data.unflatten(1, (3, 4)).mT
    conv.bias = halving.linear.bias
    torch.testing.assert_close(halving(frames, mask), conv(frames.mT).mT)
    expected = doubling.conv(frames.mT).mT
    torch.testing.assert_close(doubling(frames, mask), expected)
    assert doubling(frames, mask).shape == (2, 24, 4)


def test_group_normalisation_reads_the_frames_up_to_a_multiple_of_four():
    norm, frames = GroupNorm(16), torch.randn(2, 12, 16) + 3
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


def test_more_padding_changes_neither_learned_durations_nor_what_is_trained_on_them():
    batch, results = batch_with_durations(given=True), []
    for variant in (batch, pad(batch, phones=3, frames=5)):
        variant = variant._replace(durations=None)
        task = task_of(network_of().train())
        mean_loss(task, variant).backward()
        losses = {name: term.total for name, term in task.validation_step(variant).items()}
        results.append((losses, {name: p.grad for name, p in task.network.named_parameters()}))
    torch.testing.assert_close(*results, rtol=1e-3, atol=1e-4)


def test_durations_train_nothing_but_their_predictor():
    network = network_of().train()
    losses_of(task_of(network), batch_with_durations(given=True))["duration"].total.backward()
    trained = {name for name, p in network.named_parameters() if p.grad is not None}
    assert all(name.startswith("encoder.duration_predictor.") for name in trained)


def test_losses_are_those_of_the_paper_over_valid_frames():
    network, batch = network_of().train(), batch_with_durations(given=True)
    network.begin_update(5)
    drawn = network.draw(batch.phone_ids, batch.mel.shape[2])
    torch.testing.assert_close(
        drawn.noise, frame_noise(seeds_of_phones(batch.phone_ids, 6), drawn.noise.shape[1], N_MELS)
    )
    phones = batch.phone_ids, batch.phone_lengths, batch.speaker_ids
    output = network(drawn, batch.mel, batch.mel_lengths, *phones, batch.durations)
    mel = (batch.mel.mT - 0.5) / 1.5
    flow, prior, duration = 0.0, 0.0, 0.0
    for item, T in enumerate(batch.mel_lengths):
        velocity = mel[item, :T] - (1 - 1e-4) * drawn.noise[item, :T]
        flow += (output.velocity_hat[item, :T] - velocity).square().mean(dim=1).sum().item()
        deviation = output.prior[item, :T] - mel[item, :T]
        normal = torch.distributions.Normal(torch.zeros(()), torch.ones(()))
        prior -= normal.log_prob(deviation).mean(dim=1).sum().item() + 0.0
        N = int(batch.phone_lengths[item])
        log_durations = batch.durations[item, :N].log()
        duration += (output.log_durations_hat[item, :N] - log_durations).square().sum().item()
    losses = losses_of(task_of(network), batch)
    assert losses["flow"].total.item() == pytest.approx(flow, rel=1e-4)
    assert losses["prior"].total.item() == pytest.approx(prior, rel=1e-4)
    assert losses["duration"].total.item() == pytest.approx(duration, rel=1e-4)


def test_without_durations_the_most_likely_alignment_is_found():
    network, given = network_of().eval(), batch_with_durations(given=True)
    mask = torch.arange(given.phone_ids.shape[1]) < given.phone_lengths[:, None]
    with torch.no_grad():
        prior, _ = network._encode(given.phone_ids, mask, given.speaker_ids)
    mel = (prior * 1.5 + 0.5).repeat_interleave(3, dim=1).mT  # three frames of each phone
    batch = given._replace(mel=mel, mel_lengths=3 * given.phone_lengths, durations=None)
    assert torch.equal(network.durations_of(batch), 3 * mask)
    attention = network.teacher_forced_attention(batch)
    assert attention[0].sum(dim=0).tolist() == [3] * int(given.phone_lengths[0])
    assert torch.equal(network.durations_of(given), given.durations)


def test_segments_are_parts_of_the_mels_and_counted_so():
    network = network_of(replace(SMALL, out_size=8)).train()
    batch, task = batch_with_durations(given=True), task_of(network)
    drawn = network.draw(batch.phone_ids, batch.mel.shape[2])
    phones = batch.phone_ids, batch.phone_lengths, batch.speaker_ids
    output = network(drawn, batch.mel, batch.mel_lengths, *phones, batch.durations)
    mel = (batch.mel.mT - 0.5) / 1.5
    for item, T in enumerate(batch.mel_lengths):
        n = min(8, int(T))
        places = [
            start
            for start in range(int(T) - n + 1)
            if torch.equal(output.mel[item, :n], mel[item, start : start + n])
        ]
        assert len(places) == 1
    assert task.counts(batch)["frames"] == sum(min(8, int(T)) for T in batch.mel_lengths)
    network.eval()
    assert task.counts(batch)["frames"] == int(batch.mel_lengths.sum())


def test_noise_of_training_depends_on_update_and_utterance_not_on_the_batch():
    network, batch = network_of().train(), batch_of()
    network.begin_update(0)
    drawn = network.draw(batch.phone_ids, 20)
    alone = network.draw(batch.phone_ids[1:2, :4], 20)
    for part, together in zip(alone, drawn, strict=True):
        assert torch.equal(part, together[1:2])
    assert len({*drawn.times.tolist(), *drawn.places.tolist()}) == 6
    network.begin_update(1)
    assert not torch.equal(network.draw(batch.phone_ids, 20).noise, drawn.noise)
    network.eval()
    validated = network.draw(batch.phone_ids, 20)
    network.begin_update(2)
    assert torch.equal(network.draw(batch.phone_ids, 20).noise, validated.noise)


def speech(network: Matcha, **asked) -> torch.Tensor:
    ids, lengths = torch.tensor([[1, 2, 3]]), torch.tensor([3])
    return network.infer(ids, lengths, durations=torch.full_like(ids, 5), **asked).mel


def test_seed_temperature_and_noise_choose_the_speech():
    network = network_of().eval()
    plain = speech(network)
    assert torch.equal(speech(network), plain)
    assert not torch.equal(speech(network, seed=1), plain)
    silent = speech(network, temperature=0.0)
    assert torch.equal(silent, speech(network, temperature=0.0, seed=1))
    noise = frame_noise(seeds_of_phones(torch.tensor([[1, 2, 3]]), 0), 17, N_MELS).mT
    assert torch.equal(speech(network, noise=noise), plain)
    torch.testing.assert_close(speech(network, noise=noise[:, :, :15]), plain)
    with pytest.raises(ValueError, match="6 bands and 15 frames or more"):
        speech(network, noise=noise[:, :, :14])


def test_more_steps_follow_the_flow_more_closely():
    network = network_of().eval()
    exact = speech(network, steps=50)
    errors = [(speech(network, steps=steps) - exact).abs().mean() for steps in (2, 8)]
    assert errors[0] > 2 * errors[1] > 0
    assert torch.equal(speech(network, steps=3), speech(network))


def test_pace_and_limits_hold_for_durations():
    network = network_of().eval()
    ids, lengths = torch.tensor([[1, 2, 3, 4]]), torch.tensor([4])
    asked = {"durations": torch.tensor([[2, 3, 0, 4]]), "steps": 1}
    slower = network.infer(ids, lengths, duration_control=1.5, **asked)
    assert slower.durations.tolist() == [[3, 5, 0, 5]]  # ends at 3, 7.5 and 13.5, of 13 frames
    cut = network.infer(ids, lengths, max_frames=torch.tensor([4]), **asked)
    assert cut.durations.tolist() == [[2, 2, 0, 0]]
    nothing = network.infer(ids, lengths, durations=torch.zeros_like(ids), steps=1)
    assert nothing.mel_lengths.tolist() == [1]


def test_samples_show_the_alignment():
    pytest.importorskip("matplotlib")
    network, batch = network_of().eval(), batch_with_durations(given=False)
    from processors.text.voice_phones import Vocabulary

    vocabulary = Vocabulary(["<pad>", *map(str, range(1, N_PHONES))])
    task = MatchaTask(network, Assets(MEL, vocabulary))
    samples = list(task.samples(batch))
    assert [sample.id for sample in samples] == list(batch.ids)
    assert all(sample.figures.keys() == {"mel", "alignment"} for sample in samples)


@pytest.mark.parametrize(
    ("section", "keys", "message"),
    [
        (MatchaConfig, {"steps": 0}, "steps is 0, expected 1 or more"),
        (MatchaConfig, {"steps": 51}, "steps are 51 .*, expected at most 50 and 2"),
        (MatchaConfig, {"out_size": 6}, "out_size is 6, expected a multiple of 4"),
        (MatchaConfig, {"mel_std": 0.0}, "mel_std is 0, expected more than 0"),
        (
            MatchaConfig,
            {"encoder": EncoderConfig(hidden=33)},
            "encoder.hidden is 33, expected a multiple of encoder.heads, 2",
        ),
        (
            MatchaConfig,
            {"speaker_size": 3},
            "speaker_size is 3, expected a multiple of encoder.heads, 2",
        ),
        (EncoderConfig, {"kernel_size": 4}, "kernel_size is 4, expected an odd number"),
        (DecoderConfig, {"channels": (12,)}, r"channels are \[12\], expected .* multiples of 8"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(section, keys, message):
    with pytest.raises(ValueError, match=message):
        section(**keys)
