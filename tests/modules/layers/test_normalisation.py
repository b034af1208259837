import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations
from torch.nn.utils.parametrizations import weight_norm

from modules.layers.normalisation import adapt_weight_norm, fold, refine_norms, spectral_norm

STORED = ("parametrizations.weight.original0", "parametrizations.weight.original1")
OLD = ("weight_g", "weight_v")


@pytest.fixture(params=["conv", "transposed"])
def layer(request):
    torch.manual_seed(0)
    conv = nn.Conv1d(4, 6, 3) if request.param == "conv" else nn.ConvTranspose1d(4, 6, 3)
    conv = weight_norm(conv)
    with torch.no_grad():
        conv.parametrizations.weight.original0.uniform_(0.5, 2)
    return nn.ModuleDict({"up": conv})


def pair(layer, names):
    state = layer.state_dict()
    tensors = {f"up.{new}": state[f"up.{own}"] for own, new in zip(STORED, names, strict=True)}
    return tensors | {"up.bias": state["up.bias"]}


@pytest.mark.parametrize("names", [STORED, OLD])
def test_a_pair_becomes_the_weight_that_torch_computes_or_stays_where_the_network_stores_it(
    layer, names
):
    found = adapt_weight_norm(pair(layer, names), {"up.weight", "up.bias"})
    assert found.keys() == {"up.weight", "up.bias"}
    assert torch.equal(found["up.weight"], layer["up"].weight)
    found = adapt_weight_norm(pair(layer, names), layer.state_dict().keys())
    assert found.keys() == layer.state_dict().keys()
    assert all(torch.equal(found[n], t) for n, t in layer.state_dict().items())


def test_a_weight_becomes_a_pair_where_the_network_stores_one(layer):
    weight = layer["up"].weight.detach()
    wanted = layer.state_dict().keys()
    found = adapt_weight_norm({"up.weight": weight, "up.bias": layer["up"].bias}, wanted)
    assert found.keys() == wanted
    assert torch.allclose(fold(*(found[f"up.{name}"] for name in STORED)), weight, atol=1e-6)


@pytest.mark.parametrize("names", [STORED, OLD])
@pytest.mark.parametrize("half", [0, 1])
def test_half_of_a_pair_is_not_lost(layer, names, half):
    tensors = pair(layer, names)
    del tensors[f"up.{names[half]}"]
    found = adapt_weight_norm(tensors | {"up.weight": torch.ones(1)}, {"up.weight", "up.bias"})
    assert found.keys() == {"up.weight", "up.bias", f"up.{names[1 - half]}"}


@pytest.mark.parametrize("types", [(torch.int8, torch.int8), (torch.float32, torch.float64)])
def test_a_pair_of_other_types_is_refused(types):
    magnitude, direction = (torch.ones(6, 1, dtype=types[0]), torch.ones(6, 4, dtype=types[1]))
    with pytest.raises(ValueError, match=r"magnitudes of torch\.\w+ and directions of torch\.\w+;"):
        fold(magnitude, direction)


@pytest.mark.parametrize(
    ("magnitude", "direction"),
    [((3,), (6, 4, 3)), ((5, 1, 1), (6, 4, 3)), ((), ()), ((0, 1), (0, 3)), ((6, 1, 1), (6, 0, 3))],
)
def test_a_pair_of_other_shapes_never_reaches_the_kernel(magnitude, direction):
    tensors = {"up.weight_g": torch.ones(magnitude), "up.weight_v": torch.ones(direction)}
    with pytest.raises(ValueError, match=r"^up: magnitudes \(.*expected \(C, 1, \.\.\.\) and"):
        adapt_weight_norm(tensors, {"up.weight"})


def conv() -> nn.Conv1d:
    torch.manual_seed(1)
    return nn.Conv1d(4, 6, 5, groups=2)


def largest_singular_value(weight):
    return torch.linalg.svdvals(weight.detach().flatten(1))[0].item()


def test_the_largest_singular_value_becomes_one_and_follows_an_update():
    layer = spectral_norm(conv())
    original = layer.parametrizations.weight.original
    assert abs(largest_singular_value(layer.weight) - 1) < 0.01  # from the start
    for _ in range(200):
        refine_norms(layer)
    assert abs(largest_singular_value(layer.weight) - 1) < 1e-6
    assert largest_singular_value(original) < 0.9
    original.data.mul_(3).add_(0.1)
    off = abs(largest_singular_value(layer.weight) - 1)
    for _ in range(20):
        refine_norms(layer)
    assert abs(largest_singular_value(layer.weight) - 1) < 1e-3 < off


def test_it_is_that_of_torch_between_updates_and_in_its_iterations_with_the_same_names():
    ours, theirs = spectral_norm(conv()), parametrizations.spectral_norm(conv()).eval()
    ours.load_state_dict(theirs.state_dict())
    wav = torch.randn(2, 4, 20)
    gradients = [
        torch.autograd.grad(layer(wav).square().sum(), list(layer.parameters()))
        for layer in (ours, theirs)
    ]
    assert torch.allclose(ours(wav), theirs(wav), atol=1e-6)
    for own, other in zip(*gradients, strict=True):
        assert torch.allclose(own, other, rtol=1e-4, atol=1e-6)
    refine_norms(ours)
    theirs.train().weight  # noqa: B018  (reading it iterates once)
    for name, buffer in theirs.named_buffers():
        assert torch.allclose(ours.get_buffer(name), buffer, atol=1e-6), name


def test_an_iteration_before_the_backward_pass_does_not_change_its_gradients():
    layer, wav = spectral_norm(conv()), torch.randn(1, 4, 20)
    weight = layer.parametrizations.weight.original
    (expected,) = torch.autograd.grad(layer(wav).square().sum(), [weight])
    loss = layer(wav).square().sum()
    for _ in range(5):
        refine_norms(layer)
    assert torch.equal(torch.autograd.grad(loss, [weight])[0], expected)


def test_a_forward_pass_and_half_precision_leave_the_norm_alone():
    layer = spectral_norm(conv()).train()
    before = {name: buffer.clone() for name, buffer in layer.named_buffers()}
    layer(torch.randn(1, 4, 20))
    assert len(before) == 2
    assert all(torch.equal(layer.get_buffer(name), buffer) for name, buffer in before.items())
    with torch.autocast("cpu", torch.bfloat16):
        weight = layer.weight
    assert weight.dtype == torch.float32
    assert torch.equal(weight, layer.weight)
