import numpy as np
import pytest
import torch

from utils.arrays import parse_number, read_array, read_numbers
from utils.errors import InputError


def test_arrays_and_tensors_are_read(tmp_path):
    np.save(tmp_path / "a.npy", np.array([[1.5, 2.5]]))
    torch.save(torch.tensor([3, 4]), tmp_path / "b.pt")
    torch.save(torch.tensor([0.5], dtype=torch.bfloat16, requires_grad=True), tmp_path / "c.PTH")
    assert read_array(tmp_path / "a.npy").tolist() == [[1.5, 2.5]]
    assert read_array(tmp_path / "b.pt").tolist() == [3, 4]
    assert read_array(tmp_path / "c.PTH").tolist() == [0.5]


class Harmful:
    def __reduce__(self):
        return exec, ("open('ran', 'w')",)


def test_files_that_would_run_code_are_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("a.npy", np.array([Harmful()], dtype=object), allow_pickle=True)
    torch.save(Harmful(), "a.pt")
    with pytest.raises(InputError, match=r"not a complete .npy file of numbers"):
        read_array(tmp_path / "a.npy")
    with pytest.raises(InputError, match="refused: it names exec, which is no tensor"):
        read_array(tmp_path / "a.pt")
    assert not (tmp_path / "ran").exists()


def test_what_is_missing_broken_or_no_single_array_is_refused(tmp_path):
    for name in ("a.npy", "a.pt"):
        with pytest.raises(InputError, match=rf"{name}: No such file"):
            read_array(tmp_path / name)
        (tmp_path / name).write_bytes(b"broken")
        with pytest.raises(InputError, match=rf"{name}: not a (complete|file of tensors) .*"):
            read_array(tmp_path / name)
    torch.save({"a": torch.ones(2)}, tmp_path / "a.pt")
    with pytest.raises(InputError, match="holds a dict, expected one tensor"):
        read_array(tmp_path / "a.pt")
    for tensor in (torch.eye(3), torch.arange(3)):
        torch.save(tensor.to_sparse(), tmp_path / "a.pt")
        fault = rf"a\.pt: a tensor of {tensor.dtype} with layout torch.sparse_coo.*to_dense"
        with pytest.raises(InputError, match=fault):
            read_array(tmp_path / "a.pt")


NO_NUMBERS = ("nan", "inf", "1e999", "1,5", "1 2", "1_0", "0x1", "٣", "", "__import__('os')", "1+1")


def test_what_is_no_finite_number_is_refused_with_its_place():
    for text in NO_NUMBERS:
        fault = r"^a.txt, line 7: .*; expected a finite number such as"
        with pytest.raises(InputError, match=fault):
            parse_number(text, "a.txt, line 7")


def test_numbers_are_read_by_line_and_text_among_them_is_named(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbf1\r\n\n -2.5e1 \n.5")
    assert read_numbers(tmp_path / "a.txt") == {1: 1.0, 3: -25.0, 4: 0.5}
    (tmp_path / "a.txt").write_text("1\nhigh\n")
    with pytest.raises(InputError, match=r"a.txt, line 2: 'high'; expected a finite number"):
        read_numbers(tmp_path / "a.txt")
    (tmp_path / "a.txt").write_text("\n")
    with pytest.raises(InputError, match=r"a.txt: empty; expected one number a line"):
        read_numbers(tmp_path / "a.txt")
