import math
from dataclasses import replace

import pytest
import torch

from models.base.assets import Assets
from models.tts.fastspeech2 import FastSpeech2, FastSpeech2Task
from models.tts.fastspeech2.config import (
    FastSpeech2Config,
    TransformerConfig,
    VarianceEmbeddingConfig,
    VariancePredictorConfig,
)
from modules.mel import MelConfig
from modules.variance.adaptor import regulate
from modules.variance.contours import ContourStats
from modules.variance.pitch_transform import PitchTransform
from processors.dataset.statistics import CorpusStats, Stat
from tests.models.tts import batches
from tests.models.tts.batches import ENERGY, MEL, N_PHONES, PITCH, batch_of, losses_of, mean_loss
from tests.worlds.networks import Subject
from utils.errors import InputError

TWO_ENERGIES = ContourStats(*torch.tensor([[40.0, 50], [20, 25], [0, 0], [120, 140]]))
PREDICTOR = VariancePredictorConfig(filter_size=16, dropout=0.0)
SMALL = FastSpeech2Config(
    transformer=TransformerConfig(1, 2, 16, 1, 2, 16, 32, (3, 3), 0.0, 0.0),
    variance_predictor=PREDICTOR,
    variance_embedding=VarianceEmbeddingConfig(n_bins=16),
    max_seq_len=50,
)
FRAME_LEVEL = replace(SMALL, pitch_level="frame", energy_level="frame")
VARIANTS = {
    "default": SMALL,
    "frame level": FRAME_LEVEL,
    "convolution": replace(
        SMALL,
        harmonics=True,
        variance_embedding=VarianceEmbeddingConfig(kind="convolution", dropout=0.0),
        transformer=replace(SMALL.transformer, activation="mish"),
        centred_postnet=True,
    ),
    "own encoder": replace(SMALL, variance_predictor=replace(PREDICTOR, own_encoder=True)),
}


def task_of(network: FastSpeech2) -> FastSpeech2Task:
    return FastSpeech2Task(network, Assets(MelConfig()))


def network_of(
    config: FastSpeech2Config = SMALL, pitch: ContourStats = PITCH, energy: ContourStats = ENERGY
) -> FastSpeech2:
    torch.manual_seed(0)
    network = FastSpeech2(config, N_PHONES, MEL, pitch, energy)
    if network.postnet is not None:
        network.postnet.dropout.p = 0.0
    if network.harmonics is not None:
        torch.nn.init.normal_(network.harmonics.depth.weight, std=0.1)  # as after training
    if network.f0_residual is not None:
        network.f0_residual.predictor.dropout.p = 0.0
        torch.nn.init.normal_(network.f0_residual.predictor.linear.weight, std=0.1)
    return network


def test_losses_are_sums_over_valid_positions():
    batch = batch_of()
    task = task_of(network_of().train())
    with torch.no_grad():
        output = task.network(*batch[1:5], batch.mel_lengths, batch.f0, batch.energy)
    expected = dict.fromkeys(("mel", "refined_mel", "duration", "pitch", "energy"), 0.0)
    for item, (N, T) in enumerate(zip(batch.phone_lengths, batch.mel_lengths, strict=True)):
        mel = batch.mel[item, :, :T].T
        expected["mel"] += float((output.mel_hat[item, :T] - mel).abs().mean(dim=1).sum())
        refined = output.refined_mel_hat[item, :T]
        expected["refined_mel"] += float((refined - mel).abs().mean(dim=1).sum())
        frames = (batch.durations[item, :N] + 1).log()
        prosody = output.prosody
        expected["duration"] += float((prosody.log_durations_hat[item, :N] - frames).square().sum())
        for name in ("pitch", "energy"):
            error = prosody.contours_hat[name][item, :N] - prosody.contours[name][item, :N]
            expected[name] += float(error.square().sum())
    (update,) = task.training_step(batch)
    losses = {name: term.total.item() for name, term in update.losses.items()}
    assert losses == pytest.approx(expected, rel=1e-4)
    units = ["frames", "frames", "phones", "phones", "phones"]
    assert [update.losses[name].per for name in expected] == units
    assert task.counts(batch) == {"frames": int(batch.mel_lengths.sum()), "phones": 17, "items": 3}
    losses = task_of(network_of(FRAME_LEVEL)).validation_step(batch)
    assert losses["pitch"].per == losses["energy"].per == "frames"


def test_with_an_encoder_of_their_own_predictors_share_no_gradient_with_the_mel():
    batch = batch_of()
    task = task_of(network_of(VARIANTS["own encoder"]).train())
    parts = ("prosody_encoder.", "duration_predictor.", "pitch.predictor.", "energy.predictor.")
    of_prosody = ("duration", "pitch", "energy")
    for names, is_prosody in ((("mel", "refined_mel"), False), (of_prosody, True)):
        task.network.zero_grad()
        losses = losses_of(task, batch)
        sum(losses[name].total for name in names).backward()
        trained = [name for name, p in task.network.named_parameters() if p.grad is not None]
        assert {name.startswith(parts) for name in trained} == {is_prosody}


def test_without_postnet_there_is_one_mel_loss_and_dropout_of_attention_acts_in_training():
    sizes = replace(SMALL.transformer, attention_dropout=0.5)
    batch, config = batch_of(), replace(SMALL, transformer=sizes, use_postnet=False)
    task = task_of(network_of(config))
    assert set(task.validation_step(batch)) == {"mel", "duration", "pitch", "energy"}
    task.network.train()
    assert mean_loss(task, batch) != mean_loss(task, batch)
    task.network.eval()
    assert mean_loss(task, batch) == mean_loss(task, batch)


def test_texts_and_audio_longer_than_max_seq_len_work():
    batch = batch_of((60, 55), longest_phone=3)
    assert batch.mel.shape[2] > SMALL.max_seq_len
    networks = network_of().eval(), network_of(replace(SMALL, max_seq_len=500)).eval()
    given = batch.phone_ids, batch.phone_lengths
    torch.testing.assert_close(*(n.infer(*given, durations=batch.durations).mel for n in networks))
    assert torch.isfinite(mean_loss(task_of(networks[0].train()), batch))


@pytest.mark.parametrize(
    ("predicted", "factor", "expected"),
    [
        (2.4, 1.0, [2, 2]),
        (2.4, 1.3, [3, 3]),  # of 3.12: rounded after the control
        (2.4, torch.tensor([[2.0, 0.0, 1.0]]), [5, 0]),
        (0.0, 1.0, [1, 0]),  # one frame at least
        (1e6, 1.0, [1000, 1000]),  # a phone has an end
    ],
)
def test_durations_are_multiplied_rounded_and_limited(predicted, factor, expected):
    network = network_of().eval()
    torch.nn.init.zeros_(network.duration_predictor.linear.weight)
    network.duration_predictor.linear.bias.data.fill_(math.log(predicted + 1))
    ids, lengths = torch.tensor([[1, 2, 0]]), torch.tensor([2])
    output = network.infer(ids, lengths, duration_control=factor)
    assert output.durations.tolist() == [[*expected, 0]]
    assert output.mel_lengths.tolist() == [sum(expected)]


@pytest.mark.parametrize("config", [SMALL, FRAME_LEVEL], ids=["phone", "frame"])
def test_pitch_and_energy_controls_are_factors_on_hz_and_energy(config):
    network = network_of(config).eval()
    arguments = {"phone_ids": torch.tensor([[1, 2, 3]]), "phone_lengths": torch.tensor([3])}
    arguments["durations"] = torch.tensor([[2, 1, 3]])
    neutral = network.infer(**arguments)
    higher = network.infer(**arguments, pitch_control=1.2, energy_control=0.5)
    torch.testing.assert_close(higher.pitch, neutral.pitch * 1.2)
    assert not torch.equal(higher.mel, neutral.mel)
    factors = torch.tensor([[1.0, 0.5, 1.0]])
    quieter = network.infer(**arguments, energy_control=factors)
    if config is FRAME_LEVEL:
        factors = torch.tensor([[1.0, 1, 0.5, 1, 1, 1]])
    torch.testing.assert_close(quieter.energy, neutral.energy * factors)


@pytest.mark.parametrize("config", [SMALL, FRAME_LEVEL], ids=["phone", "frame"])
def test_pitch_transforms_act_on_the_whole_contour_around_the_mean_of_the_speaker(config):
    network = network_of(config, batches.TWO_PITCHES, TWO_ENERGIES).eval()
    phones = torch.tensor([[1, 2, 3], [3, 2, 0]]), torch.tensor([3, 2])
    given = {"speaker_ids": torch.tensor([0, 1]), "durations": torch.tensor([[2, 1, 3], [1, 2, 0]])}
    plain = network.infer(*phones, **given)
    given["voiced"] = torch.tensor([[True, False, True], [True, False, False]])
    flat = network.infer(*phones, **given, pitch_transform=PitchTransform(flatten=True, shift_hz=5))
    expected = torch.tensor([[125.0], [225]]) * (plain.pitch > 0)
    torch.testing.assert_close(flat.pitch, expected)
    assert not torch.equal(flat.mel, plain.mel)


def test_harmonics_move_with_every_control_of_the_pitch():
    """All but the harmonics are the same at any pitch: its vectors are 0."""
    network = network_of(replace(SMALL, harmonics=True, use_postnet=False)).eval()
    torch.nn.init.zeros_(network.pitch.embedding.weight)
    ids, lengths = torch.tensor([[1, 2, 3]]), torch.tensor([3])
    given = {"phone_ids": ids, "phone_lengths": lengths, "durations": torch.full((1, 3), 5)}

    def harmonics(hz: float, **controls) -> torch.Tensor:
        """What the head adds to the mel at 400 Hz but not at this F0."""
        flat = {"pitch": torch.full((1, 3), hz)} if hz else {}
        high = network.infer(**given, pitch=torch.full((1, 3), 400.0))
        return network.infer(**given, **flat, **controls).mel - high.mel

    expected = harmonics(220.0)
    assert expected.abs().max() > 0.1
    torch.testing.assert_close(harmonics(200.0, pitch_control=1.1), expected)
    flat = PitchTransform(flatten=True, shift_hz=20)  # the speaker's mean is 200 Hz
    torch.testing.assert_close(harmonics(0, pitch_transform=flat), expected)


def test_a_voice_without_harmonics_starts_to_learn_them_from_what_it_is():
    voice, batch = network_of(replace(SMALL, use_postnet=False)).eval(), batch_of()
    config = replace(SMALL, use_postnet=False, harmonics=True)
    grown = FastSpeech2(config, N_PHONES, MEL, PITCH, ENERGY).eval()
    missing = grown.load_state_dict(voice.state_dict(), strict=False).missing_keys
    assert {name.split(".")[0] for name in missing} == {"harmonics", "f0_residual"}
    asked = {"phone_ids": batch.phone_ids, "phone_lengths": batch.phone_lengths}
    expected = voice.infer(**asked, duration_control=4).mel
    assert torch.equal(grown.infer(**asked, duration_control=4).mel, expected)


@pytest.mark.parametrize(
    ("hz", "transform", "message"),
    [
        (210.0, PitchTransform(flatten=True), "acts on predicted pitch; leave it or pitch out"),
        (-210.0, None, "pitch holds -210; expected Hz, 0 where unvoiced"),
        (float("nan"), None, "pitch holds nan; expected Hz"),
        (float("inf"), None, "pitch holds inf; expected Hz"),
    ],
)
def test_pitch_that_cannot_be_followed_is_refused(hz, transform, message):
    given = {"pitch": torch.tensor([[0.0, hz]]), "pitch_transform": transform}
    with pytest.raises(ValueError, match=message):
        network_of().eval().infer(torch.tensor([[1, 2]]), torch.tensor([2]), **given)


def test_true_prosody_at_inference_gives_the_mel_of_training():
    batch = batch_of((6,))
    network = network_of(replace(FRAME_LEVEL, harmonics=True)).eval()
    f0, by_phone = torch.full_like(batch.f0, 150.0), batch.energy[:, :6]
    energy = regulate(by_phone[:, :, None], batch.durations).squeeze(2)
    trained = network(*batch[1:5], batch.mel_lengths, f0, energy).refined_mel_hat
    given = {"durations": batch.durations, "pitch": f0[:, :6], "energy": by_phone}
    spoken = network.infer(batch.phone_ids, batch.phone_lengths, **given)
    torch.testing.assert_close(spoken.mel, trained.mT)


@pytest.mark.parametrize(
    ("name", "level"), [("", "phone"), ("frames", "frame"), ("convolution", "frame")]
)
def test_a_voice_takes_its_numbers_from_assets_and_statistics_of_its_level_which_it_needs(
    name, level
):
    subject = Subject("fastspeech2", name, 2)
    other = "frame" if level == "phone" else "phone"
    wrong = dict.fromkeys((f"f0_{other}", f"energy_{other}"), Stat(1.0, 1.0, 0.0, 2.0))
    stats = {key: replace(of, **wrong) for key, of in subject.assets.stats.speakers.items()}
    assets = replace(subject.assets, stats=CorpusStats(stats))
    network = FastSpeech2.build(subject.config.model, assets)
    assert network.pitch.norm.mean.tolist() == [150, 225]
    assert network.energy.norm.std.tolist() == [20, 20]
    assert network.phone_embedding.num_embeddings == len(subject.assets.vocabulary)
    assert network.mel_linear.out_features == subject.mel.n_mels
    assert network.log_floor == subject.mel.log_floor_value
    assets = replace(subject.assets, stats=CorpusStats({"speaker-0": stats["speaker-0"]}))
    with pytest.raises(InputError, match=r"statistics of speaker-1: .* run stage 1 again"):
        FastSpeech2.build(subject.config.model, assets)


@pytest.mark.parametrize("use_postnet", [True, False])
def test_the_taught_mel_is_the_last_one_of_training(use_postnet):
    network, batch = network_of(replace(SMALL, use_postnet=use_postnet)).eval(), batch_of()
    output = network(*network.inputs_of(batch))
    batches.assert_taught(network, batch, output.refined_mel_hat if use_postnet else output.mel_hat)
