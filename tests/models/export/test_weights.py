import numpy as np
import onnxruntime
import pytest
import torch
from onnx import numpy_helper
from torch import nn

from models.base.model import Graph
from models.export.onnx_file import to_onnx
from utils.errors import InputError


class Convolutions(nn.Module):
    """Both kinds of convolution: they have output channels in different dimensions."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.down = nn.Conv1d(4, 64, 5, padding=2)
        self.up = nn.ConvTranspose1d(64, 4, 8, stride=4)

    def forward(self, signal: torch.Tensor) -> torch.Tensor:
        return self.up(self.down(signal))


@pytest.fixture
def graph():
    module = Convolutions().eval()
    with torch.no_grad():  # channels of very different sizes
        module.down.weight *= torch.logspace(-3, 1, 64)[:, None, None]
        module.up.weight *= torch.logspace(-3, 1, 4)[:, None]
    return Graph(module, {"signal": torch.randn(1, 4, 50)}, ("wav",), {"signal": {2: "n"}})


@pytest.mark.parametrize(("kind", "bytes_each", "error"), [("fp16", 2, 1e-3), ("int8", 1, 1e-2)])
def test_weights_take_fewer_bits_and_compute_nearly_the_same(graph, kind, bytes_each, error):
    model = to_onnx(graph, kind)
    sizes = {t.name: numpy_helper.to_array(t).nbytes for t in model.graph.initializer}
    assert sizes[f"module.down.weight_{kind}"] == 4 * 64 * 5 * bytes_each
    assert sizes[f"module.up.weight_{kind}"] == 4 * 64 * 8 * bytes_each
    assert sizes["module.down.bias"] == 4 * 64
    session = onnxruntime.InferenceSession(model.SerializeToString())
    (found,) = session.run(None, {"signal": graph.inputs["signal"].numpy()})
    expected = graph.module(graph.inputs["signal"]).detach().numpy()
    loudness = np.abs(expected).mean(axis=2, keepdims=True)  # of each channel
    assert (np.abs(found - expected) / loudness).mean() < error
    assert not np.array_equal(found, expected)


def test_a_weight_too_large_for_16_bits_is_named(graph):
    with torch.no_grad():
        graph.module.down.weight[0, 0, 0] = 1e5
    with pytest.raises(InputError, match=r"module\.down\.weight holds numbers too large"):
        to_onnx(graph, "fp16")
