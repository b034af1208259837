import pytest
import torch
from torch.nn import functional as F

from modules.execution.convolutions import RowConv2d, StridedConv1d
from tests.modules.gradients import results

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
    conv, plain = (
        layer(c_in, c_out, kernel, stride, kernel // 2, groups=groups).double()
        for layer in (StridedConv1d, torch.nn.Conv1d)
    )
    plain.load_state_dict(conv.state_dict())
    signal = torch.randn(2, c_in, length, dtype=torch.float64)
    for found, wanted in zip(results(conv, signal), results(plain, signal), strict=True):
        assert found.shape == wanted.shape
        assert torch.allclose(found, wanted, rtol=1e-10, atol=1e-10)


class OfColumns(torch.nn.Conv2d):
    """The ordinary layer, for an image with its axes exchanged."""

    def forward(self, image):
        return super().forward(image.mT).mT


@pytest.mark.parametrize("length", [1, 2, 3, 20, 52])
def test_rows_are_convolved_as_columns_are_by_the_ordinary_layer(length):
    torch.manual_seed(0)
    conv, plain = (one(6, 8, (5, 1), (3, 1), (2, 0)).double() for one in (RowConv2d, OfColumns))
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
    conv, signal = StridedConv1d(16, 64, 41, 2, 20, groups=groups), torch.randn(2, 16, 60)
    whole = results(conv, signal)
    with torch.autocast("cpu", torch.bfloat16):
        half = results(conv, signal)
    assert half[0].dtype == torch.bfloat16
    assert [gradient.dtype for gradient in half[1:]] == [torch.float32] * 3
    for found, wanted in zip(half, whole, strict=True):
        assert F.cosine_similarity(found.float().flatten(), wanted.flatten(), dim=0) > 0.9999


def test_results_of_strided_convolutions_may_be_changed_in_place():
    conv, signal, gradients = StridedConv1d(4, 4, 5, 1, 2), torch.randn(1, 4, 9), []
    for relu in (F.leaky_relu, F.leaky_relu_):
        (gradient,) = torch.autograd.grad(relu(conv(signal), 0.1).square().sum(), [conv.weight])
        gradients.append(gradient)
    assert torch.equal(*gradients)
