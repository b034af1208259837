import math

import pytest
import torch

from modules.harmonics import F0Residual, HarmonicComb, HarmonicHead, comb_ripples
from modules.mel import MelConfig, MelSpectrogram, mel_band_edges
from modules.variance.adaptor import regulate

MELS = {
    "22 kHz": MelConfig(),
    "24 kHz": MelConfig(24000, 2048, 1200, 300, n_mels=100, f_max=12000),
    "16 kHz, 60 bands": MelConfig(16000, n_mels=60, f_min=80, f_max=7600),
}


def comb_mel(mel: MelConfig, f0: float) -> torch.Tensor:
    """The log-mel (M,) of a second of equal cosines at k * f0 with random phases, mean of frames.

    Between the harmonics its magnitude is at least 0.02 of theirs.
    """
    numbers = torch.arange(1, math.ceil(mel.sample_rate / 2 / f0))[:, None]
    phases = 2 * math.pi * torch.rand(len(numbers), 1, generator=torch.Generator().manual_seed(1))
    seconds = torch.arange(mel.sample_rate) / mel.sample_rate
    wav = torch.cos(2 * math.pi * f0 * numbers * seconds + phases).sum(dim=0) / len(numbers)
    spectrogram = MelSpectrogram(mel)
    magnitude = spectrogram.magnitude(wav[None])[..., 5:-5]  # (1, F, T)
    peak = mel.win_length / 4 / len(numbers)  # of a cosine in a Hann window
    return spectrogram.log_mel(magnitude.clamp(min=0.02 * peak)).mean(dim=2).squeeze(0)


def less_envelope(log_mel: torch.Tensor, mel: MelConfig, f0: float) -> torch.Tensor:
    """Subtracts from each band the Gaussian mean of its neighbours."""
    centres = mel_band_edges(mel)
    rest = torch.empty(mel.n_mels)
    for band in range(mel.n_mels):
        per_harmonic = f0 / float(centres[band + 2] - centres[band]) * 2
        deviation = max(1.0, 0.55 * per_harmonic)
        weights = torch.exp(-((torch.arange(mel.n_mels) - band) ** 2) / (2 * deviation**2))
        rest[band] = log_mel[band] - (weights * log_mel).sum() / weights.sum()
    return rest


@pytest.mark.parametrize("f0", [61.3, 97.0, 141.7, 203.1, 287.0, 433.0])
@pytest.mark.parametrize("mel", MELS.values(), ids=MELS)
def test_the_ripple_is_that_of_the_mel_of_a_comb(mel, f0):
    ripple = HarmonicComb(mel)(torch.tensor([[f0]]))[0, 0]
    expected = less_envelope(comb_mel(mel, f0), mel, f0)
    assert (ripple - expected).abs().mean() < 0.01
    assert ripple.std() > 0.3 or f0 < 100  # low harmonics share bands


def test_harmonics_of_a_higher_pitch_are_higher_between_60_and_500_hz():
    """The strongest band below 500 Hz is the one around F0."""
    mel = MelConfig()
    f0 = torch.tensor([[150.0, 220, 330, 440]])
    bands = mel_band_edges(mel)[1:-1]
    low = HarmonicComb(mel)(f0)[0, :, bands < 500]  # (4, bands)
    torch.testing.assert_close(bands[low.argmax(dim=1)].float(), f0[0], rtol=0, atol=25)
    # beyond 60 and 500 Hz they stay
    ripples = HarmonicComb(MelConfig())(torch.tensor([[0.0, 31, 60, 500, 731, float("nan")]]))[0]
    table = comb_ripples(MelConfig())
    for frame, row in enumerate((0, 0, 0, -1, -1)):
        torch.testing.assert_close(ripples[frame], table[row], atol=1e-4, rtol=0)


def test_before_training_nothing_is_added_and_everything_but_the_table_is_saved_and_trained():
    torch.manual_seed(0)
    head, frames, f0 = HarmonicHead(4, MelConfig()), torch.randn(2, 3, 4), torch.full((2, 3), 150.0)
    added = head(frames, f0)
    assert torch.equal(added, torch.zeros(2, 3, 80))
    (added * torch.randn_like(added)).sum().backward()
    assert all((part.grad != 0).all() for part in head.depth.parameters())
    assert set(head.state_dict()) == {"depth.weight", "depth.bias"}
    assert head.to("meta").comb.ripples.device.type == "meta"


H = 8


def batch():
    """Two utterances of two and three phones; each phone rises by 2 semitones, as its number."""
    durations = torch.tensor([[10, 6, 0], [4, 8, 12]])
    mask = torch.arange(24) < durations.sum(dim=1, keepdim=True)
    generator = torch.Generator().manual_seed(0)
    frames = regulate(torch.randn(2, 3, H, generator=generator), durations, 24)
    starts = regulate((durations.cumsum(1) - durations)[..., None].float(), durations, 24)
    lengths = regulate(durations[..., None].float(), durations, 24).clamp(min=1)
    position = ((torch.arange(24)[None] + 0.5 - starts[..., 0]) / lengths[..., 0] - 0.5) * mask
    f0 = 200 * (2 * position / 12).exp2() * mask
    return frames, f0, durations, mask


def test_it_changes_nothing_before_training_and_learns_how_f0_moves_within_phones():
    torch.manual_seed(0)
    frames, f0, durations, mask = batch()
    network = F0Residual(H).eval()  # without dropout
    assert torch.equal(network.applied(frames, f0, durations, mask), f0)
    # unvoiced frames and padding do not count
    assert network.l1_sum(frames, torch.zeros_like(f0), durations, mask).item() == 0
    optimizer = torch.optim.Adam(network.parameters(), 2e-2)
    before = network.l1_sum(frames, f0, durations, mask).item()
    assert before == pytest.approx(0.5 * int(mask.sum()), rel=0.1)
    for _ in range(100):
        optimizer.zero_grad()
        network.l1_sum(frames, f0, durations, mask).backward()
        optimizer.step()
    assert network.l1_sum(frames, f0, durations, mask).item() < 0.2 * before
    flat = torch.full_like(f0, 200) * mask
    assert (network.applied(frames, flat, durations, mask) / f0 - 1)[mask].abs().mean() < 0.02


def test_the_network_that_gives_the_frames_learns_nothing_from_it():
    frames, f0, durations, mask = batch()
    network = F0Residual(H)
    torch.nn.init.normal_(network.predictor.linear.weight)
    network.l1_sum(frames.requires_grad_(), f0, durations, mask).backward()
    assert frames.grad is None
    assert network.given.weight.grad is not None


def test_it_is_the_same_for_high_voices_alone_and_in_a_batch():
    frames, f0, durations, mask = batch()
    network = F0Residual(H).eval()
    torch.nn.init.normal_(network.predictor.linear.weight)
    together, high = (network(frames, factor * f0, durations, mask) for factor in (1, 2))
    assert torch.allclose(together, high, atol=1e-4)
    alone = network(frames[:1, :16], f0[:1, :16], durations[:1, :2], mask[:1, :16])
    assert torch.allclose(together[:1, :16], alone, atol=1e-5)
    assert (together[~mask] == 0).all()
