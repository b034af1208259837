import pytest
import torch
from torch import nn

from modules.execution import graphs
from modules.execution.graphs import CompiledMethod, compile_options
from modules.execution.packed import packed
from tests.models.compiled import set_backend

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def _eager(monkeypatch):
    set_backend(monkeypatch, "eager")


def ones(n_items, length):
    return torch.ones(n_items, length), torch.ones(n_items, length, dtype=torch.bool)


def test_sizes_are_powers_of_two_and_one_and_a_half_of_them():
    assert sorted({graphs._bucket(n) for n in range(1, 200)}) == [
        *(1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
    ]
    assert all(n <= graphs._bucket(n) <= 1.5 * n for n in range(1, 2000))


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
    monkeypatch.setattr(graphs, "_MOST_GRAPHS", 2)

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
