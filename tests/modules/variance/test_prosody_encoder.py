"""Pitch and energy of FastSpeech 2, embedded by bins and by a convolution."""

from functools import partial

import pytest
import torch

from modules.layers.basic import SpeakerEmbedding, length_mask
from modules.variance import prosody_encoder
from modules.variance.pitch_transform import PitchTransform
from modules.variance.prosody_encoder import MinGRU, ProsodyEncoder
from tests.models.tts.batches import N_MELS, batch_of
from tests.models.tts.test_fastspeech2 import VARIANTS, network_of


@pytest.mark.parametrize(("name", "expected"), [("default", 30 / 4), ("convolution", 30 / 2)])
def test_frames_without_energy_count_with_bins_and_not_with_a_convolution(name, expected):
    network = network_of(VARIANTS[name])
    energy = torch.tensor([[10.0, 0, 20, 0]])
    lengths, speaker = torch.tensor([4]), torch.tensor([0])
    targets = network.contour_targets(energy * 9, energy, lengths[None], lengths, speaker)
    found = network.energy.norm.inverse(targets["energy"], speaker)
    torch.testing.assert_close(found, torch.tensor([[expected]]))


@pytest.mark.parametrize(("name", "pitch_is_read"), [("default", True), ("convolution", False)])
def test_energy_is_predicted_from_phones_with_pitch_only_with_bins(name, pitch_is_read):
    network, batch = network_of(VARIANTS[name]).eval(), batch_of()
    predict = partial(network, *batch[1:5], batch.mel_lengths)
    first, second = (predict(f0, batch.energy) for f0 in (batch.f0, batch.f0 * 1.5))
    assert not torch.equal(first.mel_hat, second.mel_hat)
    energies = (output.prosody.contours_hat["energy"] for output in (first, second))
    assert torch.equal(*energies) != pitch_is_read


# an unvoiced phone has the pitch between its neighbours, or the speaker's mean
@pytest.mark.parametrize(("name", "unvoiced"), [("default", 220.0), ("convolution", 200.0)])
def test_prosody_that_is_given_is_used(name, unvoiced):
    network = network_of(VARIANTS[name]).eval()
    durations = torch.tensor([[2, 0, 3]])
    pitch, energy = torch.tensor([[210.0, 0, 230]]), torch.tensor([[10.0, 20, 30]])
    given = {"durations": durations, "pitch": pitch, "energy": energy}
    output = network.infer(torch.tensor([[1, 2, 3]]), torch.tensor([3]), **given)
    assert output.mel.shape == (1, N_MELS, 5)
    assert torch.equal(output.durations, durations)
    torch.testing.assert_close(output.pitch, torch.tensor([[210.0, unvoiced, 230]]))
    torch.testing.assert_close(output.energy, energy)


def test_with_a_convolution_pitch_transforms_act_on_voiced_phones():
    phones, durations = (torch.tensor([[1, 2, 3]]), torch.tensor([3])), torch.tensor([[2, 1, 3]])
    infer = network_of(VARIANTS["convolution"]).eval().infer
    speak = partial(infer, *phones, durations=durations)
    plain = speak().pitch
    voiced = torch.tensor([[True, False, True]])
    shifted = speak(pitch_transform=PitchTransform(shift_hz=5), voiced=voiced).pitch
    torch.testing.assert_close(shifted - plain, torch.tensor([[5.0, 0, 5]]))


def loop(gates: torch.Tensor, *, is_backward: bool) -> torch.Tensor:
    """The recurrence of one item, phone by phone: (N, 2 * L) -> (N, L)."""
    update, candidate = gates.chunk(2, dim=1)
    state, states = torch.zeros(update.shape[1]), {}
    order = range(len(gates))
    for n in reversed(order) if is_backward else order:
        z = update[n].sigmoid()
        state = states[n] = (1 - z) * state + z * candidate[n].tanh()
    return torch.stack([states[n] for n in order])


@torch.no_grad()
def test_the_scan_is_the_recurrence_phone_by_phone_in_both_directions():
    torch.manual_seed(0)
    network, phones, lengths = MinGRU(8), torch.randn(2, 21, 8), torch.tensor([21, 13])
    states = network(phones, length_mask(lengths))
    for item, n in enumerate(lengths.tolist()):
        forward = loop(network.gates_forward(phones[item : item + 1, :n])[0], is_backward=False)
        backward = loop(network.gates_backward(phones[item : item + 1, :n])[0], is_backward=True)
        torch.testing.assert_close(states[item, :n], torch.cat([forward, backward], dim=1))


@torch.no_grad()
def test_a_state_sees_the_last_128_phones():
    torch.manual_seed(0)
    network, phones = MinGRU(2), torch.randn(1, 200, 2)
    network.gates_forward.bias.copy_(torch.tensor([-5.0, 1.0]))  # forgets 0.7 % with each phone
    states = network(phones, torch.ones(1, 200, dtype=torch.bool))[0, :, :1]
    gates = network.gates_forward(phones)[0]
    torch.testing.assert_close(states[:128], loop(gates, is_backward=False)[:128])
    last = loop(gates[72:], is_backward=False)[-1]
    torch.testing.assert_close(states[-1], last)
    assert not torch.allclose(states[-1], loop(gates, is_backward=False)[-1], rtol=0.01)


@torch.no_grad()
def test_a_phone_depends_on_others_far_before_and_after_it():
    torch.manual_seed(0)
    network = ProsodyEncoder(5, SpeakerEmbedding(2, 8), size=8, kernel_size=3, dropout=0.5).eval()
    ids, mask = torch.randint(1, 5, (1, 41)), torch.ones(1, 41, dtype=torch.bool)
    plain = network(ids, mask, torch.tensor([0]))
    for changed in (0, 40):
        others = ids.clone()
        others[0, changed] = 5 - ids[0, changed]
        assert not torch.equal(network(others, mask, torch.tensor([0]))[0, 20], plain[0, 20])
    assert not torch.equal(network(ids, mask, torch.tensor([1])), plain)


def test_the_loss_of_pitch_counts_voiced_frames_and_one_more_up_to_ten():
    durations = torch.tensor([[2, 5, 20, 0]])
    f0 = torch.tensor([[0.0, 0] + [200.0] * 4 + [0] + [200.0] * 20])
    error = torch.tensor([[1.0, 0.5, 3.0, 9.0]])  # twice Huber's loss: 1, 0.25, 5
    loss = prosody_encoder.pitch_loss_sum(error, torch.zeros(1, 4), f0, durations)
    assert loss.item() == pytest.approx(1 / 5 * 1 + 5 / 5 * 0.25 + 10 / 5 * 5)


def test_the_loss_of_durations_is_least_at_their_mean():
    durations = torch.tensor([[1, 3, 11, 0]])  # mean of the first three: 5
    mask = torch.tensor([[True, True, True, False]])
    losses, slopes = [], []
    for mean in (4.0, 5.0):
        frames = torch.tensor(mean, requires_grad=True)
        log_frames = frames.log1p().expand(1, 4)
        losses.append(prosody_encoder.duration_loss_sum(log_frames, durations, mask))
        slopes += torch.autograd.grad(losses[-1], frames)
    assert slopes[0] < 0
    assert slopes[1].item() == pytest.approx(0, abs=1e-6)
    assert losses[1] < losses[0]
