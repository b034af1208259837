import pytest
import torch
from torch import nn
from torch.nn import functional as F

from modules.conv import (
    Linear,
    MaskedConv1d,
    RowConv2d,
    SignalConv1d,
    SignalConvTranspose1d,
    StridedConv1d,
    _convolve,
)


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
    assert _convolve(torch.ones(1, 5, 1), torch.ones(1, 1, 3), None).flatten().tolist() == [3, 3, 3]


def test_even_kernels_are_refused():
    with pytest.raises(ValueError, match="kernel_size 4 must be odd"):
        MaskedConv1d(2, 2, 4)


LAYERS = {
    "dilated": (SignalConv1d, nn.Conv1d, (6, 8, 5, 1, 6, 3)),
    "strided": (SignalConv1d, nn.Conv1d, (6, 8, 4, 2, 1)),
    "wide": (SignalConv1d, nn.Conv1d, (3, 256, 3, 1, 1)),
    "transposed": (SignalConvTranspose1d, nn.ConvTranspose1d, (6, 4, 16, 8, 4)),
    "wide and transposed": (SignalConvTranspose1d, nn.ConvTranspose1d, (2, 256, 4, 2, 1)),
}


@pytest.fixture(params=LAYERS.values(), ids=LAYERS)
def layers(request):
    """One of ours, and the ordinary one with the same weights."""
    ours, plain, sizes = request.param
    torch.manual_seed(0)
    layer, reference = ours(*sizes), plain(*sizes)
    reference.load_state_dict(layer.state_dict())
    return layer, reference


def results(layer, signal):
    """What the layer gives, and the gradients of all that takes part in it."""
    signal = signal.clone().requires_grad_()
    result = layer(signal)
    weights = torch.linspace(-1, 1, result.numel(), dtype=result.dtype).view_as(result)
    return result, *torch.autograd.grad(
        (result * weights).sum(), (signal, layer.weight, layer.bias)
    )


@pytest.mark.parametrize("channels_last", [True, False])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-4), (torch.float64, 1e-10)])
def test_signal_convolutions_and_their_gradients_are_those_of_the_ordinary_layer(
    layers, channels_last, dtype, tolerance
):
    layer, plain = (layer.to(dtype) for layer in layers)
    signal = torch.randn(2, layer.in_channels, 23, dtype=dtype)
    if channels_last:
        signal = signal.mT.contiguous().mT

    for found, wanted in zip(results(layer, signal), results(plain, signal), strict=True):
        assert found.shape == wanted.shape
        assert torch.allclose(found, wanted, rtol=tolerance, atol=tolerance)


def test_half_precision_of_signal_convolutions_is_that_of_autocast(layers):
    layer, signal = layers[0], torch.randn(2, layers[0].in_channels, 23)
    with torch.autocast("cpu", torch.bfloat16):
        half = layer(signal)

    assert half.dtype == torch.bfloat16
    assert torch.allclose(half.float(), layer(signal), atol=0.05)


def test_the_memory_format_is_passed_on():
    layers = [SignalConv1d(4, 6, 3, 1, 1), SignalConvTranspose1d(6, 4, 4, 2, 1)]
    signal = torch.randn(2, 4, 9).mT.contiguous().mT
    for layer in layers:
        signal = F.leaky_relu(layer(signal))
        assert signal.stride(1) == 1


def test_results_of_signal_convolutions_may_be_changed_in_place_without_copies():
    layer = SignalConv1d(4, 6, 3, 1, 1)
    result = layer(torch.randn(2, 4, 9))
    assert not result._is_view()
    changed = F.leaky_relu_(result, 0.1).add_(1)
    assert changed.grad_fn.name() == "AddBackward0"


# C_in, C_out, kernel, stride, groups, length: those of the discriminators, with fewer channels
SHAPES = [
    (1, 8, 15, 1, 1, 33),
    (8, 64, 41, 2, 4, 83),  # as it comes
    (16, 16, 41, 2, 4, 64),  # fewer channels than a kernel takes: groups in pairs
    (16, 16, 41, 4, 16, 101),  # all groups in one
    (9, 18, 41, 4, 9, 50),  # an odd number of groups
    (32, 64, 41, 1, 4, 20),  # the kernel longer than the signal
    (16, 32, 41, 4, 2, 3),  # one output
    (8, 8, 5, 1, 1, 12),
    (8, 1, 3, 1, 1, 7),
]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "-".join(map(str, shape)))
def test_strided_convolutions_and_their_gradients_are_those_of_the_ordinary_layer(shape):
    c_in, c_out, kernel, stride, groups, length = shape
    torch.manual_seed(0)
    conv = StridedConv1d(c_in, c_out, kernel, stride, kernel // 2, groups=groups).double()
    signal = torch.randn(2, c_in, length, dtype=torch.float64)

    expected = results_of_plain(conv, signal)
    for found, wanted in zip(results(conv, signal), expected, strict=True):
        assert found.shape == wanted.shape
        assert torch.allclose(found, wanted, rtol=1e-10, atol=1e-10)


def results_of_plain(conv, signal):
    plain = torch.nn.Conv1d(
        conv.in_channels,
        conv.out_channels,
        conv.kernel_size,
        conv.stride,
        conv.padding,
        groups=conv.groups,
    ).double()
    plain.load_state_dict(conv.state_dict())
    return results(plain, signal)


class OfColumns(torch.nn.Conv2d):
    """The ordinary layer, for an image with its axes exchanged."""

    def forward(self, image):
        return super().forward(image.mT).mT


@pytest.mark.parametrize("length", [1, 2, 3, 20, 52])
def test_rows_are_convolved_as_columns_are_by_the_ordinary_layer(length):
    torch.manual_seed(0)
    conv = RowConv2d(6, 8, (5, 1), (3, 1), (2, 0)).double()
    plain = OfColumns(6, 8, (5, 1), (3, 1), (2, 0)).double()
    plain.load_state_dict(conv.state_dict())
    rows = torch.randn(2, 6, 7, length, dtype=torch.float64)

    for found, wanted in zip(results(conv, rows), results(plain, rows), strict=True):
        assert found.shape == wanted.shape
        assert torch.allclose(found, wanted, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("groups", [1, 4])
def test_only_what_is_asked_for_gets_a_gradient(groups):
    conv = StridedConv1d(16, 64, 5, 2, 2, groups=groups).requires_grad_(False)
    signal = torch.randn(1, 16, 9, requires_grad=True)
    conv(signal).sum().backward()
    assert signal.grad is not None
    assert conv.weight.grad is conv.bias.grad is None

    conv.requires_grad_(True)
    conv(signal.detach()).sum().backward()
    assert conv.weight.grad is not None
    assert conv.bias.grad is not None


@pytest.mark.parametrize("groups", [1, 4])
def test_half_precision_of_strided_convolutions_is_that_of_autocast(groups):
    torch.manual_seed(0)
    conv = StridedConv1d(16, 64, 41, 2, 20, groups=groups)
    signal = torch.randn(2, 16, 60)
    whole = results(conv, signal)
    with torch.autocast("cpu", torch.bfloat16):
        half = results(conv, signal)

    assert half[0].dtype == torch.bfloat16
    assert [gradient.dtype for gradient in half[1:]] == [torch.float32] * 3
    for found, wanted in zip(half, whole, strict=True):
        assert F.cosine_similarity(found.float().flatten(), wanted.flatten(), dim=0) > 0.9999


def test_results_of_strided_convolutions_may_be_changed_in_place():
    conv = StridedConv1d(4, 4, 5, 1, 2)
    signal = torch.randn(1, 4, 9)
    gradients = []
    for relu in (F.leaky_relu, F.leaky_relu_):
        (gradient,) = torch.autograd.grad(relu(conv(signal), 0.1).square().sum(), [conv.weight])
        gradients.append(gradient)
    assert torch.equal(*gradients)
