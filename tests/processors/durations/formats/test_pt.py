"""Durations as PyTorch tensors."""

from pathlib import Path

import pytest
import torch

from processors.alignment import AlignmentError
from tests.processors.durations.formats.examples import read


def test_code_in_a_tensor_file_is_refused(tmp_path):
    torch.save(Path("anything"), tmp_path / "u1.pt")
    with pytest.raises(AlignmentError, match=r"u1.pt: not a complete tensor file"):
        read(tmp_path, "pt")
    torch.save({"durations": torch.tensor([1])}, tmp_path / "u1.pt")
    with pytest.raises(AlignmentError, match=r"u1.pt: it holds a dict, expected one tensor"):
        read(tmp_path, "pt")


def test_a_tensor_that_was_trained_is_read(tmp_path):
    torch.save(torch.tensor([3.0, 2.0], requires_grad=True), tmp_path / "u1.pt")
    assert read(tmp_path, "pt").frames.tolist() == [3, 2]


def test_a_sparse_tensor_is_refused(tmp_path):
    torch.save(torch.tensor([3, 0]).to_sparse(), tmp_path / "u1.pt")
    with pytest.raises(AlignmentError, match=r"u1.pt: it holds a torch.sparse_coo tensor"):
        read(tmp_path, "pt")
