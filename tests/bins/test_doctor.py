"""`arion doctor` tells what works; its exit code is that of the bundled voice."""

import sys
from pathlib import Path

import pytest

from bins import doctor
from models import voices
from tests.commands import call
from tests.models.synthesizer.test_synthesizer import make_voice


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Voices of this test, in place of those of this machine."""
    monkeypatch.setattr(voices, "FOLDERS", (tmp_path,))
    return tmp_path


def test_it_names_versions_devices_extras_and_voices(folder, capsys, monkeypatch):
    make_voice(folder / "choir")
    make_voice(folder / "broken")
    (folder / "broken" / "model.safetensors").write_bytes(b"damaged")
    monkeypatch.setitem(doctor._OPTIONAL, "extra", (("no_such_module",), "a feature"))
    call("doctor")
    found = capsys.readouterr().out
    assert f"Python {sys.version.split()[0]}" in found
    assert "arion serve: yes" in found
    assert "a feature: missing no_such_module (pip install -e '.[extra]')" in found
    assert "\nGPU: " in found
    assert "sound device: " in found
    assert "voice choir: speaks, after " in found
    assert "voice broken: does not speak: InputError: " in found


def test_the_exit_code_is_1_if_the_bundled_voice_does_not_speak(folder, capsys, monkeypatch):
    make_voice(folder / "other")
    with pytest.raises(SystemExit) as ended:
        call("doctor")
    assert ended.value.code == 1
    assert "voice other: speaks" in capsys.readouterr().out
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(SystemExit):
        call("doctor")
    assert "cannot be imported: ModuleNotFoundError: import of torch" in capsys.readouterr().out


def test_the_extras_are_those_of_setup():
    setup = (Path(__file__).parents[2] / "setup.py").read_text()
    extras = setup.split("extras_require={")[1]
    names = {name for name in doctor._OPTIONAL if f'        "{name}": [' in extras}
    assert names == set(doctor._OPTIONAL)
    assert extras.count('": [') == len(names) + 2  # dev, programs
