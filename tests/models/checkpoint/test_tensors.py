import copy
import hashlib
import pickle
from collections import OrderedDict

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from models.checkpoint.tensors import (
    in_8_bits,
    misfits,
    named_tensors,
    not_finite,
    read_tensors,
    weights_digest,
)
from tests.models.checkpoint.importers.reading import Command
from utils.arrays import read_pickled
from utils.errors import InputError


def old_format(value, path):
    torch.save(value, path, _use_new_zipfile_serialization=False)


@pytest.mark.parametrize("save", [torch.save, old_format])
def test_tensors_in_containers_come_back(tmp_path, save):
    value = {"generator": OrderedDict(a=torch.arange(3.0)), "steps": 7, "betas": [0.5, (1, "x")]}
    save(value, tmp_path / "g")
    found = read_pickled(tmp_path / "g")
    assert torch.equal(found["generator"].pop("a"), torch.arange(3.0))
    assert found == {"generator": {}, "steps": 7, "betas": [0.5, (1, "x")]}


def pickled(value, path):
    path.write_bytes(pickle.dumps(value, protocol=2))


@pytest.mark.parametrize("save", [torch.save, old_format, pickled])
def test_a_file_that_would_run_a_command_is_refused_and_runs_nothing(tmp_path, save):
    marker, path = tmp_path / "marker", tmp_path / "g"
    save({"generator": {"a": [1.0]}, "extra": Command(marker)}, path)
    message = r"g: refused: it names \w+\.system, which is no tensor and might run code; nothing of"
    with pytest.raises(InputError, match=rf"{message} it was run; ask its author"):
        read_pickled(path)
    assert not marker.exists()


def test_a_number_of_numpy_is_read_where_it_is_allowed(tmp_path):
    path = tmp_path / "x.pth.tar"
    torch.save({"model": {"a": torch.ones(1)}, "lr": np.float64(0.5)}, path)
    with pytest.raises(InputError, match=r"refused: it names numpy\.\S*multiarray\.scalar"):
        read_pickled(path)
    scalar = np.float64(0.5).__reduce__()[0]
    allowed = [scalar, np.dtype, type(np.dtype("float64"))]
    assert read_pickled(path, allowed)["lr"] == 0.5
    with pytest.raises(InputError, match="refused"):  # nor is it allowed from then on
        read_pickled(path)


def test_what_is_no_file_of_tensors_is_refused(tmp_path):
    whole = tmp_path / "whole"
    torch.save({"a": torch.ones(1000)}, whole)
    for name, content in {
        "text": b"step-0560000.pt",
        "cut": whole.read_bytes()[:900],
        "empty": b"",
        "lfs": b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n",
    }.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match=rf"{name}: not a file of tensors that torch can read"):
            read_pickled(tmp_path / name)
    with pytest.raises(InputError, match="No such file"):
        read_pickled(tmp_path / "missing")


def test_half_precision_is_widened(tmp_path):
    values = torch.tensor([0.1, 2.0])
    path = tmp_path / "model.safetensors"
    save_file({"a": values.half(), "b": values.bfloat16(), "c": values, "d": values.double()}, path)
    found = read_tensors(path)
    assert torch.equal(found["a"], values.half().float())
    assert torch.equal(found["b"], values.bfloat16().float())
    assert [found[name].dtype for name in "abcd"] == [torch.float32] * 3 + [torch.float64]


def test_the_prefix_of_a_parallel_run_is_dropped_where_all_have_it():
    one = torch.ones(1)
    assert named_tensors({"module.a": one, "module.b": one}, "x").keys() == {"a", "b"}
    assert named_tensors({"module.a": one, "b": one}, "x").keys() == {"module.a", "b"}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([torch.ones(1)], "expected tensors by name, found list"),
        ({}, "expected tensors by name, found dict"),
        ({"a": 1}, "'a' is of type int, expected a tensor by name"),
        ({1: torch.ones(1)}, "1 is of type Tensor, expected a tensor by name"),
    ],
)
def test_what_is_not_tensors_by_name_is_refused(value, message):
    with pytest.raises(InputError, match=f"^g: generator: {message}"):
        named_tensors(value, "g: generator")


def test_what_does_not_fill_a_network_is_listed_by_kind():
    own = {name: torch.ones(2) for name in "abcde"} | {"n": torch.ones((), dtype=torch.int64)}
    stored = {
        "a": torch.ones(2).double(),
        "b": torch.ones(3),
        "c": torch.ones(2, dtype=torch.int32),
        "d": torch.tensor([1.0, torch.nan]),
        "n": torch.ones((), dtype=torch.int32),
        "x": torch.ones(1),
    }
    assert misfits(own, own) == ""
    assert misfits(own, stored) == (
        "missing: e; left over: x; of another shape: b (3,) instead of (2,); "
        "of another type: c torch.int32 instead of torch.float32; with infinity or NaN: d"
    )
    many = {f"a{n}": torch.ones(1) for n in range(9)}
    assert misfits(many, {}) == "missing: a0, a1, a2, a3, a4 and 4 more"


def test_infinity_and_nan_are_found_at_any_place():
    tensors = {"fine": torch.tensor([-3e38, 3e38]), "none": torch.ones(0), "n": torch.tensor(1)}
    for name, value in (("nan", torch.nan), ("inf", torch.inf), ("minus", -torch.inf)):
        tensors[name] = torch.ones(3, 5)
        tensors[name][1, 3] = value
    assert not_finite(tensors) == ["nan", "inf", "minus"]


def test_a_digest_depends_on_every_tensor_its_name_and_its_type():
    network = nn.Linear(2, 2)
    before = weights_digest(network)
    weights = ((name, getattr(network, name).detach()) for name in ("bias", "weight"))
    content = b"".join(name.encode() + tensor.numpy().tobytes() for name, tensor in weights)
    assert before == hashlib.sha256(content).hexdigest()
    assert weights_digest(copy.deepcopy(network)) == before
    assert weights_digest(network.bfloat16()) != before
    other = nn.Linear(2, 2)
    other.load_state_dict(network.state_dict())
    other.bias.data[1] += 1
    assert weights_digest(other) != before
    assert weights_digest(nn.Sequential(other)) != weights_digest(other)
    assert weights_digest() != weights_digest(nn.BatchNorm1d(1))  # with a tensor of one number


def test_rows_in_8_bits_come_back_within_half_a_step(tmp_path):
    torch.manual_seed(0)
    rows = torch.randn(64, 40, 3) * torch.logspace(-6, 3, 64)[:, None, None]
    rows[5] = 0
    tensors = {"rows": rows, "bias": torch.randn(5000), "small": torch.randn(8, 8)}
    save_file(in_8_bits(tensors | {"steps": torch.tensor([7])}), tmp_path / "w.safetensors")
    assert (tmp_path / "w.safetensors").stat().st_size < rows.numel() + 2 * 5064 + 1000
    found = read_tensors(tmp_path / "w.safetensors")
    assert found.keys() == {*tensors, "steps"}
    assert found["steps"].dtype == torch.int64
    steps = rows.abs().amax(dim=(1, 2), keepdim=True) / 127
    assert ((found["rows"] - rows).abs() <= 0.5001 * steps).all()
    for name in ("bias", "small"):
        torch.testing.assert_close(found[name], tensors[name], atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("shape", [None, (7, 1), (80,), (1, 80)])
def test_scales_that_fit_no_rows_are_refused(tmp_path, shape):
    packed = in_8_bits({"rows": torch.randn(64, 80)})
    if shape is None:
        del packed["rows"]
    else:
        packed["rows.int8_scales"] = torch.ones(shape)
    save_file(packed, tmp_path / "w.safetensors")
    message = r"w\.safetensors: rows\.int8_scales does not fit its weights"
    with pytest.raises(InputError, match=message):
        read_tensors(tmp_path / "w.safetensors")
