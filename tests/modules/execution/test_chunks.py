import pytest
import torch
from torch import nn
from torch.nn import functional as F

from modules.execution.chunks import Context, SignalConv1d, SignalConvTranspose1d, windows
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


def test_the_memory_format_is_passed_on_and_results_may_be_changed_in_place_without_copies():
    signal = torch.randn(2, 4, 9).mT.contiguous().mT
    for layer in (SignalConv1d(4, 6, 3, 1, 1), SignalConvTranspose1d(6, 4, 4, 2, 1)):
        signal = F.leaky_relu(layer(signal))
        assert signal.stride(1) == 1
    result = SignalConv1d(4, 6, 3, 1, 1)(torch.randn(2, 4, 9))
    assert not result._is_view()
    changed = F.leaky_relu_(result, 0.1).add_(1)
    assert changed.grad_fn.name() == "AddBackward0"


def insides(signal, n, reach):
    """What is within the windows, and the windows."""
    cut = list(windows([signal], n, reach))
    return [window.context.trim(window.signal, 0)[0] for window in cut], cut


@pytest.mark.parametrize("length", [1, 3, 4, 5, 8, 9, 13, 50])
@pytest.mark.parametrize(("n", "reach"), [(4, 3), (2, 5), (1, 0), (100, 3)])
def test_insides_of_windows_join_up_to_the_signal(length, n, reach):
    signal = torch.arange(2.0 * length).view(2, 1, length)
    parts, cut = insides(signal, n, reach)
    assert torch.equal(torch.cat(parts, 2), signal)
    assert all(part.shape[2] == n for part in parts[:-1])
    assert 1 <= parts[-1].shape[2] <= n + reach
    assert cut[0].context.left == cut[-1].context.right == 0


def test_windows_have_all_the_context_that_there_is():
    parts, cut = insides(torch.arange(20.0).view(1, 1, 20), n=4, reach=6)
    position = 0
    for (start, signal, context), part in zip(cut, parts, strict=True):
        assert start == position
        assert context.left == min(6, position)
        position += part.shape[2]
        assert context.right == min(6, 20 - position)
        assert signal.shape[2] == context.left + part.shape[2] + context.right


@pytest.mark.parametrize("sizes", [[1] * 30, [7, 1, 22], [30], [0, 30, 0]])
def test_windows_of_pieces_are_those_of_the_whole(sizes):
    signal = torch.randn(1, 2, 30)
    of_whole = list(windows([signal], 4, 3))
    of_pieces = list(windows(signal.split(sizes, dim=2), 4, 3))
    for ours, expected in zip(of_pieces, of_whole, strict=True):
        assert (ours.start, ours.context) == (expected.start, expected.context)
        assert torch.equal(ours.signal, expected.signal)


def test_a_window_comes_as_soon_as_its_context_is_there():
    taken = []

    def pieces():
        for number in range(20):
            taken.append(number)
            yield torch.full((1, 1, 1), float(number))

    first = next(windows(pieces(), n=4, reach=3))
    assert first.context == (0, 3)
    assert len(taken) == 4 + 3 + 1  # one more tells that it is not the last


def test_of_a_long_signal_little_is_kept_and_one_without_positions_has_no_window():
    kept = []
    for _, signal, _ in windows((torch.zeros(1, 1, 5) for _ in range(1000)), n=10, reach=3):
        kept.append(signal.untyped_storage().nbytes() // 4)
    assert max(kept) <= 3 + 10 + 3 + 5
    assert list(windows([], 4, 3)) == list(windows([torch.zeros(1, 2, 0)], 4, 3)) == []


def test_convolutions_in_windows_give_what_they_give_at_once():
    signal, kernel, parts = torch.randn(1, 1, 40), torch.randn(1, 1, 7), []
    for _, part, context in windows([signal], 9, 3):
        parts.append(context.trim(F.conv1d(part, kernel, padding=3), 0)[0])
    whole = F.conv1d(signal, kernel, padding=3)
    assert torch.allclose(torch.cat(parts, 2), whole, atol=1e-6)


def test_context_is_dropped_beyond_the_reach():
    signal = torch.arange(10.0)
    kept, context = Context(left=3, right=4).trim(signal, reach=1)
    assert kept.tolist() == [2, 3, 4, 5, 6]
    assert context == (1, 1)
    kept, context = Context(left=0, right=4).trim(signal, reach=5)
    assert kept.tolist() == signal.tolist()
    assert context == (0, 4)
    assert Context(2, 3).upsampled(8) == (16, 24)  # as long in time
