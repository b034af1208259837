import pytest
import torch
from torch.nn import functional as F

from modules.execution.prepared import packed
from modules.layers import basic
from modules.layers.basic import MaskedConv1d, convolve, drop, length_mask


def test_a_mask_is_true_up_to_each_length_and_clears_the_rest():
    assert length_mask(torch.tensor([2, 0, 3])).int().tolist() == [[1, 1, 0], [0, 0, 0], [1, 1, 1]]
    longer = length_mask(torch.tensor([1, 2]), max_length=4).int()
    assert longer.tolist() == [[1, 0, 0, 0], [1, 1, 0, 0]]
    mask = torch.tensor([[True, False, True]])
    assert basic.clear_padding(torch.ones(1, 3, 2), mask).tolist() == [[[1, 1], [0, 0], [1, 1]]]


@pytest.mark.parametrize("kernel_size", [1, 3, 9])
def test_convolution_is_conv1d_on_the_other_layout(kernel_size):
    torch.manual_seed(0)
    frames = torch.randn(2, 7, 4, requires_grad=True)
    conv = MaskedConv1d(4, 5, kernel_size)
    expected = F.conv1d(frames.mT, conv.weight, conv.bias, padding=kernel_size // 2).mT
    torch.testing.assert_close(conv(frames), expected)
    weights = torch.randn_like(expected)
    inputs = (frames, conv.weight, conv.bias)
    given = torch.autograd.grad((conv(frames) * weights).sum(), inputs)
    torch.testing.assert_close(given, torch.autograd.grad((expected * weights).sum(), inputs))


def test_masked_convolution_does_not_read_padding():
    torch.manual_seed(0)
    conv, short = MaskedConv1d(3, 2, 5), torch.randn(1, 4, 3)
    padded = torch.cat([short, torch.full((1, 6, 3), 1e6)], dim=1)
    mask = torch.arange(10)[None] < 4
    torch.testing.assert_close(conv(padded, mask)[:, :4], conv(short))


def test_linear_is_nn_linear():
    linear, frames = basic.Linear(4, 6), torch.randn(2, 5, 4)
    torch.testing.assert_close(linear(frames), F.linear(frames, linear.weight, linear.bias))


def test_a_convolution_without_padding_shortens_and_one_with_needs_an_odd_kernel():
    assert convolve(torch.ones(1, 5, 1), torch.ones(1, 1, 3), None).flatten().tolist() == [3, 3, 3]
    with pytest.raises(ValueError, match="kernel_size 4 must be odd"):
        MaskedConv1d(2, 2, 4)


@pytest.mark.parametrize("share", [0.1, 0.2, 0.5, 0.9])
def test_zeroes_the_share_and_keeps_the_mean(share):
    torch.manual_seed(0)
    values = drop(torch.ones(1_000_000), share)
    assert (values == 0).float().mean().item() == pytest.approx(share, abs=0.002)
    assert values.mean().item() == pytest.approx(1, abs=0.01)
    assert values.unique().numel() == 2


@pytest.mark.parametrize("shape", [(1,), (3, 5), (2, 3, 4)])
def test_any_number_of_values_is_dropped_one_by_one(shape):
    torch.manual_seed(0)
    kept = torch.stack([drop(torch.ones(shape), 0.5) > 0 for _ in range(1500)]).float()
    assert kept.shape[1:] == shape
    assert (kept.mean(dim=0) - 0.5).abs().max() < 0.05
    correlations = torch.atleast_2d(torch.corrcoef(kept.flatten(1).T))
    assert (correlations - torch.eye(len(correlations))).abs().max() < 0.1


def test_gradients_pass_where_values_are_kept():
    torch.manual_seed(0)
    values = torch.randn(100, dtype=torch.bfloat16, requires_grad=True)
    dropped = drop(values, 0.2)
    dropped.sum().backward()
    assert dropped.dtype == torch.bfloat16
    assert torch.equal(values.grad, torch.where(dropped == 0, 0.0, 1.25).bfloat16())


def test_the_global_generator_decides_what_is_dropped_in_training_and_it_may_be_almost_all():
    state, values, layer = torch.get_rng_state(), torch.randn(100).exp(), basic.Dropout(0.5)
    first = layer(values)
    assert not torch.equal(layer(values), first)
    torch.set_rng_state(state)
    assert torch.equal(basic.Dropout(0.5)(torch.randn(100).exp()), first)
    assert not torch.equal(first, values)
    assert torch.equal(layer.eval()(values), values)
    assert torch.isfinite(drop(torch.ones(1000), 1 - 1e-9)).all()


def make_block() -> basic.ConvNeXtBlock:
    torch.manual_seed(0)
    return basic.ConvNeXtBlock(8, 12, 7, scale=0.5, eps=1e-6)


def test_a_block_computes_the_layers_of_the_paper_also_packed():
    block, frames = make_block(), torch.randn(2, 10, 8)
    conv = F.conv1d(frames.mT, block.conv.weight, block.conv.bias, padding=3, groups=8).mT
    normal = (conv - conv.mean(2, keepdim=True)) / (conv.var(2, False, keepdim=True) + 1e-6).sqrt()
    inner = F.gelu(normal @ block.up.weight.T + block.up.bias)
    expected = frames + 0.5 * (inner @ block.down.weight.T + block.down.bias)
    assert torch.allclose(block(frames), expected, atol=1e-5)
    with torch.no_grad():
        assert torch.allclose(packed(block.eval())(frames), expected, atol=1e-5)


def test_padding_of_a_block_does_not_reach_valid_frames():
    block, frames = make_block(), torch.randn(1, 10, 8)
    mask = torch.arange(10)[None] < 6
    assert torch.allclose(block(frames, mask)[:, :6], block(frames[:, :6]), atol=1e-6)
