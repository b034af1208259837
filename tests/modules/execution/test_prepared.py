import copy

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from modules.execution import prepared
from modules.execution.prepared import CompiledMethod, PackedConv1d, compile_options, packed
from modules.layers.basic import Linear, MaskedConv1d, length_mask
from modules.layers.postnet import PostNet
from modules.layers.transformer import FFTBlock, FFTStack, SelfAttention
from tests.models.compiled import set_backend

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def _eager(monkeypatch):
    set_backend(monkeypatch, "eager")


def ones(n_items, length):
    return torch.ones(n_items, length), torch.ones(n_items, length, dtype=torch.bool)


def test_sizes_are_powers_of_two_and_one_and_a_half_of_them():
    assert sorted({prepared._bucket(n) for n in range(1, 200)}) == [
        *(1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
    ]
    assert all(n <= prepared._bucket(n) <= 1.5 * n for n in range(1, 2000))


def test_items_are_repeated_and_lengths_are_filled_with_zeros():
    seen = []

    def method(values, mask, speakers, f0):
        seen.append((values, mask, speakers, f0))
        return values

    compiled = CompiledMethod(method, CPU, has_buckets=True)
    compiled._graph = method  # what it is given, outside a graph
    values, mask = ones(5, 33)
    result = compiled(values, mask, torch.arange(5), 2 * values)
    torch.testing.assert_close(result, values)
    ((values, mask, speakers, f0),) = seen
    assert (values.shape, mask.shape) == ((6, 48), (6, 48))
    torch.testing.assert_close(f0, 2 * values)
    assert mask.sum(dim=1).tolist() == [33] * 6
    assert values.sum(dim=1).tolist() == [33] * 6
    assert speakers.tolist() == [0, 1, 2, 3, 4, 4]


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_a_result_outlives_the_next_call(mode):
    """A CUDA graph always writes to the same memory."""
    memory = torch.empty(1, 32)

    def method(values, mask):
        return memory.copy_(values)

    compiled = CompiledMethod(method, CPU, has_buckets=True)
    values, mask = ones(1, 32)
    with mode():
        first, second = compiled(values, mask), compiled(2 * values, mask)
    assert first.unique().tolist() == [1]
    assert second.unique().tolist() == [2]


def test_each_network_may_have_its_graphs(monkeypatch):
    """PyTorch counts the graphs of a function, whichever network it belongs to."""
    monkeypatch.setattr(prepared, "_MAX_GRAPHS", 2)

    class Scaling(nn.Module):
        def __init__(self, factor):
            super().__init__()
            self.factor = factor

        def scale(self, values, mask):
            return self.factor * values * mask

    networks = [Scaling(factor) for factor in (2, 3)]
    with torch._dynamo.config.patch(recompile_limit=0, accumulated_recompile_limit=0):
        methods = [CompiledMethod(network.scale, CPU, has_buckets=True) for network in networks]
        for network, method in zip(networks, methods, strict=True):
            for length in (32, 48):
                assert method(*ones(1, length)).unique().tolist() == [network.factor]


def test_a_network_on_a_cpu_has_no_cuda_graphs(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch, "compile", lambda method, **options: options)
    network = nn.Sequential(nn.Linear(1, 1))
    assert packed(network, (), ["forward"], "buckets").forward._graph["mode"] is None
    options = compile_options(is_dynamic=False, has_cuda_graphs=True)
    assert options["mode"] == "reduce-overhead"


LENGTHS = torch.tensor([9, 4])
MASK = length_mask(LENGTHS)  # (2, 9)


@pytest.fixture(params=["packed", "as on other devices", "many frames"])
def way(request, monkeypatch):
    """The ways in which a packed layer computes."""
    if request.param == "as on other devices":
        monkeypatch.setattr(prepared, "_can_pack", lambda weight: False)
    else:
        monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX512")
    if request.param == "many frames":
        monkeypatch.setattr(prepared, "_MANY_FRAMES", 3)
    return request.param


@pytest.mark.parametrize("kernel_size", [1, 3, 9])
@pytest.mark.parametrize("channels", [(1, 5), (4, 1), (6, 5)])
def test_a_packed_convolution_is_conv1d(kernel_size, channels, way):
    torch.manual_seed(0)
    conv, frames = MaskedConv1d(*channels, kernel_size), torch.randn(2, 7, channels[0])
    expected = F.conv1d(frames.mT, conv.weight, conv.bias, padding=kernel_size // 2).mT
    packed = PackedConv1d(conv.weight, conv.bias, torch.float32)
    torch.testing.assert_close(packed(frames), expected, rtol=1e-5, atol=1e-6)
    bounded = PackedConv1d(conv.weight, conv.bias, torch.float32, "tanh")
    torch.testing.assert_close(bounded(frames), expected.tanh(), rtol=1e-5, atol=1e-6)
    half = PackedConv1d(conv.weight, conv.bias, torch.bfloat16)(frames)
    assert half.dtype == torch.bfloat16
    assert (half - expected).abs().max() < 0.02 * expected.abs().max()
    unbiased = PackedConv1d(torch.ones(1, 1, 3), None, torch.float32)
    assert unbiased(torch.tensor([[[1.0], [2], [3]]])).flatten().tolist() == [3, 6, 5]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_packed_convolution_does_not_read_padding(dtype, way):
    torch.manual_seed(0)
    packed = PackedConv1d(torch.randn(2, 3, 5), torch.randn(2), dtype)
    frames = torch.randn(2, 9, 3)
    together = packed(frames.masked_fill(~MASK[..., None], 1e6), MASK)
    torch.testing.assert_close(together[1, :4], packed(frames[1:, :4])[0])


def network_of() -> nn.ModuleDict:
    torch.manual_seed(0)
    stack = FFTStack([FFTBlock(SelfAttention(8, 2), 8, 16, (3, 1), 0.1) for _ in range(2)], 8)
    parts = {"stack": stack, "linear": Linear(8, 6), "postnet": PostNet(6, channels=10)}
    network = nn.ModuleDict(parts).train()
    for _ in range(3):  # moves the statistics of the normalisation
        run(network, 3 * torch.randn(2, 9, 8) + 1)
    return network.eval()


def run(network: nn.ModuleDict, frames: torch.Tensor) -> torch.Tensor:
    """(2, 9, 8) -> (2, 9, 6), padding 0."""
    mel = network["linear"](network["stack"](frames, MASK))
    return network["postnet"](mel, MASK) * MASK[..., None]


def test_a_prepared_network_computes_the_same_and_leaves_the_other_as_it_is(way):
    network, frames = network_of(), torch.randn(2, 9, 8)
    before = copy.deepcopy(network.state_dict())
    with torch.no_grad():
        expected = run(network, frames)
        torch.testing.assert_close(run(packed(network), frames), expected, rtol=0, atol=1e-5)
        assert torch.equal(run(network, frames), expected)
    torch.testing.assert_close(network.state_dict(), before, rtol=0, atol=0)
    layer, twin = (net["stack"].layers[0] for net in (network, packed(network)))
    assert twin.attention_norm.weight is layer.attention_norm.weight  # shared
    assert isinstance(twin.attention.qkv, PackedConv1d)


@torch.no_grad()
def test_only_the_named_parts_compute_in_bfloat16(way):
    network, frames = network_of(), torch.randn(2, 9, 8)
    half = packed(network, half={"postnet"})
    exact = network["stack"](frames, MASK)
    torch.testing.assert_close(half["stack"](frames, MASK), exact, rtol=0, atol=1e-5)
    mel = half["linear"](exact)
    assert mel.dtype == torch.float32
    error = (run(half, frames) - run(network, frames)).abs()
    assert 0 < error.mean() < 0.02
