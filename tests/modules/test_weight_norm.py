import pytest
import torch
from torch import nn
from torch.nn.utils.parametrizations import weight_norm

from modules.weight_norm import adapt_weight_norm, fold

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
def test_a_pair_becomes_the_weight_that_torch_computes(layer, names):
    found = adapt_weight_norm(pair(layer, names), {"up.weight", "up.bias"})

    assert found.keys() == {"up.weight", "up.bias"}
    assert torch.equal(found["up.weight"], layer["up"].weight)


@pytest.mark.parametrize("names", [STORED, OLD])
def test_a_pair_stays_one_where_the_network_stores_it(layer, names):
    found = adapt_weight_norm(pair(layer, names), layer.state_dict().keys())

    assert all(torch.equal(found[n], t) for n, t in layer.state_dict().items())
    assert found.keys() == layer.state_dict().keys()


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
