import pytest
import torch
from torch.nn import functional as F

from modules.conv import Linear, MaskedConv1d, clear_padding, convolve


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
    conv = MaskedConv1d(3, 2, 5)
    short = torch.randn(1, 4, 3)
    padded = torch.cat([short, torch.full((1, 6, 3), 1e6)], dim=1)
    mask = torch.arange(10)[None] < 4
    torch.testing.assert_close(conv(padded, mask)[:, :4], conv(short))


def test_linear_is_nn_linear():
    torch.manual_seed(0)
    linear = Linear(4, 6)
    frames = torch.randn(2, 5, 4)
    torch.testing.assert_close(linear(frames), F.linear(frames, linear.weight, linear.bias))


def test_convolution_without_padding_shortens():
    assert convolve(torch.ones(1, 5, 1), torch.ones(1, 1, 3), None).flatten().tolist() == [3, 3, 3]


def test_clear_padding_zeroes_only_what_is_masked():
    frames = torch.ones(1, 3, 2)
    mask = torch.tensor([[True, False, True]])
    assert clear_padding(frames, mask).sum(dim=2).tolist() == [[2, 0, 2]]


def test_even_kernels_are_refused():
    with pytest.raises(ValueError, match="kernel_size 4 must be odd"):
        MaskedConv1d(2, 2, 4)
