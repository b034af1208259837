"""The public face: what programs import, and from where."""

from pathlib import Path

import pytest

import arion
from models.checkpoint import load_model
from models.synthesizer import Speech, Synthesizer
from tests.commands import ROOT, python


def test_the_face_is_what_the_rooms_define_and_its_version_that_of_the_source():
    assert arion.Synthesizer is Synthesizer
    assert arion.Speech is Speech
    assert arion.load_model is load_model
    setup = python("setup.py", "--version")
    assert setup.stdout.splitlines()[-1] == arion.__version__


def import_from(folder: Path, first: str = "") -> str:
    """Imports arion in a program that starts in a folder; gives the last line of its errors."""
    program = folder / "program.py"
    program.write_text(f"{first}\nimport arion\n")
    done = python(program, folder=folder, PYTHONPATH=str(ROOT), PATH="")
    return (done.stderr.splitlines() or [""])[-1]


@pytest.mark.parametrize("file", ["utils.py", "models/__init__.py", "config/__init__.py"])
def test_a_foreign_package_of_a_common_name_is_named_with_the_remedy(tmp_path, file):
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text("")
    name = file.split("/")[0].removesuffix(".py")
    error = import_from(tmp_path)
    assert error.startswith(f"ImportError: Arion needs its own package '{name}', and Python finds")
    assert str(tmp_path) in error
    assert f"sys.path.insert(0, '{ROOT}')" in error


def test_the_remedy_helps_and_other_folders_do_not_matter(tmp_path):
    (tmp_path / "utils.py").write_text("")
    (tmp_path / "data").mkdir()
    assert import_from(tmp_path, f"import sys; sys.path.insert(0, {str(ROOT)!r})") == ""
