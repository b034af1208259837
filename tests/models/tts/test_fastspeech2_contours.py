"""Pitch and energy of FastSpeech 2, embedded by bins and by a convolution."""

from functools import partial

import pytest
import torch

from models.tts._fastspeech2_contours import contour_targets
from modules.variance.contour import PitchTransform
from tests.models.tts.batches import N_MELS, batch_of
from tests.models.tts.test_fastspeech2 import VARIANTS, network_of


@pytest.mark.parametrize(("name", "expected"), [("default", 30 / 4), ("convolution", 30 / 2)])
def test_frames_without_energy_count_with_bins_and_not_with_a_convolution(name, expected):
    network = network_of(VARIANTS[name])
    energy = torch.tensor([[10.0, 0, 20, 0]])
    lengths, speaker = torch.tensor([4]), torch.tensor([0])
    targets = contour_targets(
        network.pitch, network.energy, energy * 9, energy, lengths[None], lengths, speaker
    )
    found = network.energy.norm.inverse(targets["energy"], speaker)
    torch.testing.assert_close(found, torch.tensor([[expected]]))


@pytest.mark.parametrize(("name", "pitch_is_read"), [("default", True), ("convolution", False)])
def test_energy_is_predicted_from_phones_with_pitch_only_with_bins(name, pitch_is_read):
    network, batch = network_of(VARIANTS[name]).eval(), batch_of()
    predict = partial(network, *batch[1:5], batch.mel_lengths)
    first, second = (predict(f0, batch.energy) for f0 in (batch.f0, batch.f0 * 1.5))
    assert not torch.equal(first.mel_hat, second.mel_hat)
    same = torch.equal(first.contours_hat["energy"], second.contours_hat["energy"])
    assert same != pitch_is_read


# an unvoiced phone has the pitch between its neighbours, or the speaker's mean
@pytest.mark.parametrize(("name", "unvoiced"), [("default", 220.0), ("convolution", 200.0)])
def test_prosody_that_is_given_is_used(name, unvoiced):
    network = network_of(VARIANTS[name]).eval()
    durations = torch.tensor([[2, 0, 3]])
    pitch, energy = torch.tensor([[210.0, 0, 230]]), torch.tensor([[10.0, 20, 30]])
    output = network.infer(
        torch.tensor([[1, 2, 3]]),
        torch.tensor([3]),
        durations=durations,
        pitch=pitch,
        energy=energy,
    )
    assert output.mel.shape == (1, N_MELS, 5)
    assert torch.equal(output.durations, durations)
    torch.testing.assert_close(output.pitch, torch.tensor([[210.0, unvoiced, 230]]))
    torch.testing.assert_close(output.energy, energy)


def test_with_a_convolution_pitch_transforms_act_on_voiced_phones():
    network = network_of(VARIANTS["convolution"]).eval()
    durations = torch.tensor([[2, 1, 3]])
    speak = partial(
        network.infer, torch.tensor([[1, 2, 3]]), torch.tensor([3]), durations=durations
    )
    plain = speak().pitch
    voiced = torch.tensor([[True, False, True]])
    shifted = speak(pitch_transform=PitchTransform(shift_hz=5), voiced=voiced).pitch
    torch.testing.assert_close(shifted - plain, torch.tensor([[5.0, 0, 5]]))
