import pytest
import torch

from models.vocoder.waveglow.config import WaveGlowConfig
from models.vocoder.waveglow.flows import CouplingNetwork, FlowStep, Mixing

SIZES = WaveGlowConfig(channels=4, n_layers=3, kernel_size=5)


def random_matrix(sign):
    """A matrix whose determinant has this sign."""
    torch.manual_seed(0)
    weight = torch.randn(6, 6)
    weight[0] *= torch.linalg.det(weight).sign() * sign
    return weight


@pytest.mark.parametrize("channels", [2, 4, 8])
def test_a_mixing_starts_as_a_rotation(channels):
    for seed in range(4):
        torch.manual_seed(seed)
        weight = Mixing(channels).weight.detach()
        assert torch.allclose(weight @ weight.T, torch.eye(channels), atol=1e-5)
        assert torch.linalg.det(weight) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("sign", [1, -1])
def test_the_log_determinant_is_that_of_the_absolute_value(sign):
    mixing = Mixing(6)
    mixing.weight.data.copy_(random_matrix(sign))
    _, log_det = mixing(torch.zeros(1, 6, 1))
    expected = torch.linalg.det(mixing.weight).abs().log()
    assert log_det.item() == pytest.approx(expected.item(), abs=1e-5)


def test_a_mixing_is_undone_also_when_its_inverse_is_kept():
    mixing, signal = Mixing(6), torch.randn(2, 6, 5)
    mixing.weight.data.copy_(random_matrix(1))
    mixed, _ = mixing(signal)
    assert torch.allclose(mixing.inverse(mixed), signal, atol=1e-5)
    mixing.inverse_weight = mixing.inverted().detach()
    assert torch.allclose(mixing.inverse(mixed), signal, atol=1e-5)
    assert list(mixing.state_dict()) == ["weight"]
    mixing.weight.data.zero_()
    assert torch.allclose(mixing.inverse(mixed), signal, atol=1e-5)


def make_coupling():
    torch.manual_seed(0)
    coupling = CouplingNetwork(SIZES, 2, 6)
    coupling.end.weight.data.normal_()
    return coupling


def test_a_coupling_starts_as_the_identity_and_reads_as_far_as_its_reach_and_no_farther():
    unknown = CouplingNetwork(SIZES, 2, 6)(torch.randn(1, 2, 9), torch.randn(1, 6, 9))
    assert not any(part.any() for part in unknown)
    coupling = make_coupling()
    assert SIZES.coupling_reach == 14
    half = torch.randn(1, 2, 61).requires_grad_()
    shift, _ = coupling(half, torch.randn(1, 6, 61))
    (gradient,) = torch.autograd.grad(shift[0, :, 30].sum(), half)
    heard = gradient[0].abs().sum(dim=0).nonzero().flatten()
    assert (heard.min().item(), heard.max().item()) == (30 - 14, 30 + 14)


def test_the_conditioning_of_each_layer_is_its_own_part_of_one_convolution():
    """Layer 1 of three gets zeros: then its part of the mel has no effect."""
    coupling = make_coupling()
    half, mel = torch.randn(1, 2, 9), torch.randn(1, 6, 9)
    coupling.output_convs[1].weight.data.zero_()
    before = coupling(half, mel)
    coupling.mel_conv.weight.data[8:16] += 1
    assert all(torch.equal(*pair) for pair in zip(before, coupling(half, mel), strict=True))
    coupling.mel_conv.weight.data[16:] += 1
    assert not torch.equal(before[0], coupling(half, mel)[0])


def test_the_log_determinant_of_a_step_is_that_of_its_jacobian_and_it_is_undone():
    torch.manual_seed(0)
    step = FlowStep(WaveGlowConfig(channels=4, n_layers=2), 4, 6)
    step.coupling.end.weight.data.normal_(0, 0.3)
    step.mixing.weight.data.copy_(torch.randn(4, 4))
    signal, mel = torch.randn(1, 4, 5), torch.randn(1, 6, 5)
    jacobian = torch.autograd.functional.jacobian(
        lambda flat: step(flat.view(1, 4, 5), mel).signal.flatten(), signal.flatten()
    )
    result = step(signal, mel)
    expected = torch.linalg.slogdet(jacobian).logabsdet
    found = result.log_scales.sum() + 5 * result.log_det
    assert found.item() == pytest.approx(expected.item(), abs=1e-3)
    step = FlowStep(WaveGlowConfig(channels=4, n_layers=2), 4, 6)  # with its first mixing
    step.coupling.end.weight.data.normal_(0, 0.3)
    signal, mel = torch.randn(2, 4, 5), torch.randn(2, 6, 5)
    assert torch.allclose(step.inverse(step(signal, mel).signal, mel), signal, atol=1e-5)
