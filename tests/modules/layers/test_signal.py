import pytest
import torch
from torch import nn
from torch.nn import functional as F

from modules.layers.signal import SignalConv1d, SignalConvTranspose1d
from tests.modules.gradients import results

LAYERS = {
    "dilated": (SignalConv1d, nn.Conv1d, (6, 8, 5, 1, 6, 3)),
    "strided": (SignalConv1d, nn.Conv1d, (6, 8, 4, 2, 1)),
    "wide": (SignalConv1d, nn.Conv1d, (3, 256, 3, 1, 1)),
    "transposed": (SignalConvTranspose1d, nn.ConvTranspose1d, (6, 4, 16, 8, 4)),
    "wide and transposed": (SignalConvTranspose1d, nn.ConvTranspose1d, (2, 256, 4, 2, 1)),
}


@pytest.fixture(params=LAYERS.values(), ids=LAYERS)
def layers(request):
    """A layer of this module, and PyTorch's with the same weights."""
    kind, plain_kind, sizes = request.param
    torch.manual_seed(0)
    layer, reference = kind(*sizes), plain_kind(*sizes)
    reference.load_state_dict(layer.state_dict())
    return layer, reference


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
