"""The command `arion` finds its sub-commands, and each shows its flags on one screen."""

import importlib
import re

import pytest

from arion import __version__
from bins.arion import COMMANDS
from tests.commands import call, python
from utils.cli import UsageError


def output_of(capsys, *words):
    call("arion", *words)
    return capsys.readouterr().out


def test_the_version_is_printed(capsys):
    assert output_of(capsys, "--version") == f"arion {__version__}\n"
    code = "import sys, bins.arion; bins.arion.main(); print(*sys.modules)"
    imported = python("-c", code, "--version").stdout
    assert imported.startswith(f"arion {__version__}\n")
    assert {"torch", "numpy"}.isdisjoint(imported.split())


def test_without_a_command_it_lists_them_and_of_an_unknown_one_the_nearest(capsys):
    for words in ((), ("--help",)):
        found = output_of(capsys, *words)
        assert re.findall(r"^  (\w+) ", found, re.MULTILINE) == list(COMMANDS)
    with pytest.raises(UsageError, match="no command 'sya'; did you mean say"):
        output_of(capsys, "sya")


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "train"])
def test_the_help_of_a_command_fits_on_one_screen(monkeypatch, capsys, name):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as ended:
        output_of(capsys, name, "--help")
    found = capsys.readouterr().out
    assert ended.value.code == 0
    assert found.startswith(f"usage: arion {name} ")
    assert len(found.splitlines()) <= 40
    assert importlib.import_module(f"bins.{COMMANDS[name][0]}").__doc__


def test_train_is_the_recipe(capsys):
    listed = output_of(capsys, "train", "--help")
    assert listed.startswith("usage: arion train [-h] RECIPE FLAGS")
    assert "tts/FastSpeech2" in listed
    with pytest.raises(SystemExit) as ended:
        output_of(capsys, "train", "FastSpeech2", "--help")
    assert ended.value.code == 0
    assert "--init_from" in capsys.readouterr().out


def test_it_runs_as_a_module_and_wrong_flags_end_it_at_once():
    code = "import sys, bins.arion, bins.say, bins.serve, bins.voices; print(*sys.modules)"
    imported = python("-c", code)
    assert imported.returncode == 0
    assert not {"torch", "numpy", "fastapi"} & set(imported.stdout.split())
    wrong = python("-m", "bins.arion", "say", "Hi.", "--pace", "50")
    error = "error: --pace '50': expected a number from 0.1 to 10, such as 1.2\n"
    assert wrong == (2, "", error)
