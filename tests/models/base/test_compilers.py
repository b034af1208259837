import pytest
import torch

from models.base import compilers
from models.base.compilers import require_compiler
from utils.errors import InputError


def test_a_compiler_that_is_there_is_accepted(monkeypatch, tmp_path):
    (tmp_path / "mine").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CXX", "mine")
    require_compiler("train.compile", torch.device("cpu"))
    monkeypatch.setenv("CXX", "another")
    with pytest.raises(InputError, match="no compiler"):
        require_compiler("train.compile", torch.device("cpu"))


def test_without_a_compiler_the_key_and_the_way_out_are_named(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(InputError, match=r"^train\.compile: no compiler .*\+\+; .* set off$"):
        require_compiler("train.compile", torch.device("cpu"))


def test_a_gpu_needs_triton(monkeypatch):
    monkeypatch.setattr(compilers, "has_triton", lambda: False)
    with pytest.raises(InputError, match=r"^inference\.compile: no Triton for this GPU; .* off$"):
        require_compiler("inference.compile", torch.device("cuda"))
