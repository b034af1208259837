import math
from dataclasses import replace

import pytest
import torch

from models.base.aligner import JointAligner, JointAlignerConfig
from models.base.assets import Assets
from models.tts import fastpitch
from models.tts.fastpitch import FastPitch, FastPitchTask
from models.tts.fastpitch.config import FastPitchConfig, FFTConfig, TemporalPredictorConfig
from modules.mel import MelConfig
from modules.variance.contours import ContourStats
from modules.variance.pitch_transform import PitchTransform
from processors.dataset.batch import TtsBatch
from tests.models.tts import batches
from tests.models.tts.batches import MEL, N_MELS, N_PHONES, PITCH, batch_of, losses_of
from tests.worlds.networks import Subject

SIZES = FFTConfig(
    n_layers=1, heads=2, head_size=6, filter_size=32, dropout=0.0, attention_dropout=0.0
)
PREDICTOR = TemporalPredictorConfig(filter_size=16, dropout=0.0)
SMALL = FastPitchConfig(
    hidden=16,
    encoder=SIZES,
    decoder=SIZES,
    duration_predictor=PREDICTOR,
    pitch_predictor=PREDICTOR,
    energy_predictor=PREDICTOR,
    aligner=JointAlignerConfig(
        hidden=8, attention_channels=8, prior_end=0, binarization_weight=1.0, binarization_start=0
    ),
)
VERSION_1_0 = replace(SMALL, variant="1.0", harmonics=True)
VARIANTS = {"1.1": SMALL, "1.0": VERSION_1_0, "NVIDIA's energy": replace(SMALL, energy="log_mel")}
by_variant = pytest.mark.parametrize("config", VARIANTS.values(), ids=VARIANTS)


def network_of(config: FastPitchConfig = SMALL, pitch: ContourStats = PITCH) -> FastPitch:
    torch.manual_seed(0)
    network = FastPitch(config, N_PHONES, MEL, pitch)
    if network.harmonics is not None:
        torch.nn.init.normal_(network.harmonics.depth.weight, std=0.1)  # as after training
    if network.f0_residual is not None:
        network.f0_residual.predictor.dropout.p = 0.0
        torch.nn.init.normal_(network.f0_residual.predictor.linear.weight, std=0.1)
    return network


def task_of(network: FastPitch, *, learned: bool = False) -> FastPitchTask:
    """Training with the durations of the batches, or with learned ones."""
    aligner = None
    if learned:
        torch.manual_seed(1)
        aligner = JointAligner(network.config.aligner, N_PHONES, N_MELS, network.n_speakers)
    return FastPitchTask(network, Assets(MelConfig()), aligner)


def spoken(network: FastPitch, **arguments):
    """Three phones, without training."""
    phones, arguments = ([[1, 2, 3]], [3]), {"durations": torch.tensor([[2, 1, 3]])} | arguments
    return network.eval().infer(*map(torch.tensor, phones), **arguments)


@by_variant
def test_losses_are_sums_of_squares_over_valid_positions(config):
    batch, task = batch_of(), task_of(network_of(config).train())
    with torch.no_grad():
        output = task.network(*task.network.inputs_of(batch))
    expected = dict.fromkeys(("mel", "duration", "pitch"), 0.0)
    if config.variant == "1.1":
        expected["energy"] = 0.0
    for item, (N, T) in enumerate(zip(batch.phone_lengths, batch.mel_lengths, strict=True)):
        mel, f0 = batch.mel[item, :, :T].T, batch.f0[item, :T]
        energy = mel.norm(dim=1) if config.energy == "log_mel" else batch.energy[item, :T]
        expected["mel"] += float((output.mel_hat[item, :T] - mel).square().mean(dim=1).sum())
        log_durations = (batch.durations[item, :N] + 1).log()
        error = output.prosody.log_durations_hat[item, :N] - log_durations
        expected["duration"] += float(error.square().sum())
        ends = batch.durations[item].cumsum(0).tolist()
        for phone in range(N):
            frames = slice(ends[phone - 1] if phone else 0, ends[phone])
            voiced = ((f0[frames] - 200) / 50)[f0[frames] > 0]
            pitch = float(voiced.mean()) if len(voiced) else 0.0
            error = float(output.prosody.contours_hat["pitch"][item, phone] - pitch)
            expected["pitch"] += error**2
            if config.variant == "1.1":
                mean = float(energy[frames].mean()) if batch.durations[item, phone] else 0.0
                target = torch.tensor(1 + mean).log()
                error = float(output.prosody.contours_hat["energy"][item, phone] - target)
                expected["energy"] += error**2
    (update,) = task.training_step(batch)
    losses = {name: term.total.item() for name, term in update.losses.items()}
    assert (losses.pop("f0_residual", None) is None) == (task.network.f0_residual is None)
    assert losses == pytest.approx(expected, rel=1e-4)
    weights = {name: (term.per, term.weight) for name, term in update.losses.items()}
    assert weights.pop("mel") == ("frames", 1.0)
    assert weights.pop("f0_residual", ("frames", 1.0)) == ("frames", 1.0)
    assert set(weights.values()) == {("phones", 0.1)}


def gradients_of(task: FastPitchTask, windows: list[TtsBatch]) -> dict[str, torch.Tensor]:
    """Gradients of one update over micro-batches, each loss divided by the count of them all."""
    counts: dict[str, int] = {}
    for batch in windows:
        for unit, count in task.counts(batch).items():
            counts[unit] = counts.get(unit, 0) + count
    task.begin_update(10)
    for batch in windows:
        for update in task.training_step(batch):
            terms = update.losses.values()
            sum(term.weight * term.total / counts[term.per] for term in terms).backward()
    networks = task.networks.items()
    return {f"{k}.{name}": p.grad for k, n in networks for name, p in n.named_parameters()}


@pytest.mark.parametrize("learned", [False, True], ids=["stored", "learned"])
@by_variant
def test_micro_batches_of_any_size_give_the_update_of_one_batch(config, learned):
    batch = batch_of((5, 4, 5))  # fewer phones than frames, for the aligner
    parts = [TtsBatch(batch.ids[i:j], *(x[i:j] for x in batch[1:])) for i, j in ((0, 1), (1, 3))]
    results = []
    for windows in ([batch], parts):
        if learned:
            windows = [part._replace(durations=None) for part in windows]
        results.append(gradients_of(task_of(network_of(config).train(), learned=learned), windows))
    assert any(name.startswith("aligner.") for name in results[0]) == learned
    torch.testing.assert_close(results[0], results[1], rtol=1e-4, atol=1e-6)


def test_the_durations_that_the_aligner_finds_are_those_that_the_network_learns():
    task = task_of(network_of().train(), learned=True)
    batch = batch_of((5, 4))
    assert list(task.networks) == ["model", "aligner"]
    aligner, model = task.training_step(batch._replace(durations=None))
    assert (aligner.network, set(aligner.losses)) == ("aligner", {"forward_sum", "binarization"})
    found, _ = task.aligner.align(batch)
    expected = losses_of(task_of(task.network), batch._replace(durations=found))
    assert model.losses["duration"].total == expected["duration"].total
    validation = task.validation_step(batch._replace(durations=None))
    assert validation["forward_sum"].weight == 0
    assert validation["mel"].weight == 1


def test_the_taught_mel_is_that_of_training():
    network, batch = network_of().eval(), batch_of()
    batches.assert_taught(network, batch, network(*network.inputs_of(batch)).mel_hat)


def test_true_prosody_at_inference_gives_the_mel_of_training():
    network, batch = network_of(replace(SMALL, harmonics=True)).eval(), batch_of((6,))
    network.f0_residual = None  # which synthesis adds to lines, and training to nothing
    f0 = torch.where(torch.arange(batch.f0.shape[1]) < batch.durations[0, 0], 0.0, 150.0)[None]
    trained = network(*batch[1:5], batch.mel_lengths, f0, torch.full_like(f0, 20)).mel_hat
    # a phone without frames has no pitch and no energy
    known = (batch.durations > 0).float()
    pitch, energy = 150.0 * known, 20.0 * known
    pitch[0, 0] = 0
    given = {"durations": batch.durations, "pitch": pitch, "energy": energy}
    spoken = network.infer(batch.phone_ids, batch.phone_lengths, **given)
    torch.testing.assert_close(spoken.mel, trained.mT)
    torch.testing.assert_close(spoken.energy, energy)
    assert spoken.pitch[0, 0] == 200  # unvoiced: the mean


def test_pitch_and_energy_controls_are_factors_on_hz_and_energy():
    network, factors = network_of(), torch.tensor([[1.0, 0.5, 2.0]])
    torch.nn.init.constant_(network.energy.predictor.linear.bias, 3.0)
    neutral = spoken(network)
    higher = spoken(network, pitch_control=1.2, energy_control=factors)
    torch.testing.assert_close(higher.pitch, neutral.pitch * 1.2)
    assert not torch.equal(higher.mel, neutral.mel)
    louder = spoken(network, energy_control=factors).energy
    torch.testing.assert_close(louder, neutral.energy * factors, rtol=1e-5, atol=1e-5)
    assert torch.equal(spoken(network, pitch_control=1.0, energy_control=1.0).mel, neutral.mel)


def test_pitch_transforms_act_on_voiced_phones_of_each_speaker():
    network = network_of(SMALL, batches.TWO_PITCHES).eval()
    speaker, flat = {"speaker_ids": torch.tensor([1])}, PitchTransform(flatten=True, shift_hz=5)
    plain, voiced = spoken(network, **speaker), torch.tensor([[True, False, True]])
    out = spoken(network, pitch_transform=flat, voiced=voiced, **speaker)
    expected = plain.pitch.clone()
    expected[0, [0, 2]] = 225
    torch.testing.assert_close(out.pitch, expected)
    assert out.durations.equal(plain.durations)
    assert not torch.equal(out.energy, plain.energy)  # it is predicted after the pitch


def test_speakers_are_alike_without_their_weight():
    network = network_of(replace(SMALL, speaker_emb_weight=0.0), batches.TWO_PITCHES).eval()
    first, second = (spoken(network, speaker_ids=torch.tensor([n])).mel for n in (0, 1))
    assert torch.equal(first, second)


@pytest.mark.parametrize(
    ("frames", "slower", "expected"),
    [(2.4, 1.0, 2), (2.4, 1.3, 3), (1e6, 1.0, 75), (1e6, 2.0, 150)],
)
def test_durations_are_limited_before_the_control_and_rounded_after_it(frames, slower, expected):
    network = network_of()
    torch.nn.init.zeros_(network.duration_predictor.linear.weight)
    network.duration_predictor.linear.bias.data.fill_(math.log(frames + 1))
    out = spoken(network, durations=None, duration_control=slower)
    assert out.durations.tolist() == [[expected] * 3]


def test_a_voice_without_energy_has_none_and_refuses_controls_that_it_lacks():
    network = network_of(VERSION_1_0)
    assert network.controls == {"pitch", "duration", "pitch_transform"}
    assert network_of().controls == network.controls | {"energy"}
    assert spoken(network).energy is None
    assert spoken(network).contours_per_frame()[1] is None
    for asked, message in (
        ({"energy_control": 1.2}, r"no energy \(FastPitch 1\.0\) and no energy_control; leave"),
        ({"energy": torch.ones(1, 3)}, r"no energy \(FastPitch 1\.0\); leave energy out"),
        ({"steps": 4}, "no control of steps; leave it out"),
        ({"temperature": 0.3}, "no control of temperature; leave it out"),
    ):
        with pytest.raises(ValueError, match=f"this voice has {message}"):
            spoken(network, **asked)


def test_energies_of_different_kinds_are_not_initialised_from_one_another():
    ours, theirs = network_of().scales(), network_of(VARIANTS["NVIDIA's energy"]).scales()
    assert ours.keys() == theirs.keys() == {n for n in network_of().state_dict() if "energy." in n}
    assert set(ours.values()) == {"spectrum"}
    assert set(theirs.values()) == {"log_mel"}


@pytest.mark.parametrize("aligner", ["hmm", "learned"])
def test_the_task_of_a_voice_takes_its_numbers_from_the_assets(aligner):
    subject = Subject("fastpitch", "", 2)
    preprocess = replace(subject.config.preprocess, aligner=aligner)
    config = replace(subject.config, preprocess=preprocess)
    task = fastpitch.MODEL.task.build(config, subject.assets)
    network = task.network
    assert network.pitch.norm.mean.tolist() == [150, 225]
    assert network.phone_embedding.num_embeddings == len(subject.assets.vocabulary)
    assert network.mel_linear.out_features == subject.mel.n_mels
    assert network.log_floor == subject.mel.log_floor_value
    assert (task.aligner is not None) == (aligner == "learned")
