"""F0 within phones: learnt, masked, and no part of the network's own training."""

import pytest
import torch

from modules.variance.adaptor import regulate
from modules.variance.f0_residual import F0Residual

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


def test_it_changes_nothing_before_training():
    frames, f0, durations, mask = batch()
    network = F0Residual(H).eval()
    assert torch.equal(network.applied(frames, f0, durations, mask), f0)


def test_it_learns_how_f0_moves_within_phones():
    torch.manual_seed(0)
    frames, f0, durations, mask = batch()
    network = F0Residual(H).eval()  # without dropout
    optimizer = torch.optim.Adam(network.parameters(), 1e-2)
    before = network.l1_sum(frames, f0, durations, mask).item()
    assert before == pytest.approx(0.5 * int(mask.sum()), rel=0.1)
    for _ in range(200):
        optimizer.zero_grad()
        network.l1_sum(frames, f0, durations, mask).backward()
        optimizer.step()
    assert network.l1_sum(frames, f0, durations, mask).item() < 0.2 * before
    flat = torch.full_like(f0, 200) * mask
    assert (network.applied(frames, flat, durations, mask) / f0 - 1)[mask].abs().mean() < 0.02


def test_unvoiced_frames_and_padding_do_not_count():
    frames, f0, durations, mask = batch()
    network = F0Residual(H).eval()
    unvoiced = torch.zeros_like(f0)
    assert network.l1_sum(frames, unvoiced, durations, mask).item() == 0


def test_the_network_that_gives_the_frames_learns_nothing_from_it():
    frames, f0, durations, mask = batch()
    frames.requires_grad_()
    network = F0Residual(H)
    torch.nn.init.normal_(network.predictor.linear.weight)
    network.l1_sum(frames, f0, durations, mask).backward()
    assert frames.grad is None
    assert network.given.weight.grad is not None


def test_it_is_the_same_alone_and_in_a_batch():
    frames, f0, durations, mask = batch()
    network = F0Residual(H).eval()
    torch.nn.init.normal_(network.predictor.linear.weight)
    together = network(frames, f0, durations, mask)
    alone = network(frames[:1, :16], f0[:1, :16], durations[:1, :2], mask[:1, :16])
    assert torch.allclose(together[:1, :16], alone, atol=1e-5)
    assert (together[~mask] == 0).all()


def test_it_does_not_depend_on_how_high_the_voice_is():
    frames, f0, durations, mask = batch()
    network = F0Residual(H).eval()
    torch.nn.init.normal_(network.predictor.linear.weight)
    low, high = (network(frames, factor * f0, durations, mask) for factor in (1, 2))
    assert torch.allclose(low, high, atol=1e-4)
