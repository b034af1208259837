import pytest
import torch

from models.base.devices import resolved_device
from utils.errors import InputError


@pytest.mark.parametrize("name", ["cpu", torch.device("cpu")])
def test_a_device_is_returned_by_its_name(name):
    assert resolved_device(name) == "cpu"


def test_a_number_is_that_of_a_gpu(monkeypatch):
    gpu = torch.device("cuda:0")
    monkeypatch.setattr(torch, "device", {0: gpu}.get)  # as on a machine with one
    monkeypatch.setattr(torch, "empty", lambda *_, device: None)
    assert resolved_device(0) == "cuda:0"  # type: ignore[arg-type]  # as users write it


@pytest.mark.parametrize("name", ["gpu", None, 1.5])
def test_what_is_no_device_is_refused(name):
    with pytest.raises(InputError, match=r"^device is .*; expected 'auto', 'cpu', 'cuda' or"):
        resolved_device(name)
