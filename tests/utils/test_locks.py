"""Locks between processes: a second process is a real one here."""

import errno
import fcntl
import os
import signal
import subprocess
import sys

import pytest

from tests.commands import ROOT
from utils.errors import InputError
from utils.locks import locked

HOLDER = """
import sys
from pathlib import Path
from utils.locks import locked
with locked(Path(sys.argv[1]), "wait"):
    print("taken", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path):
    """A process that holds the lock of a folder until its input ends."""
    command = [sys.executable, "-c", HOLDER, str(tmp_path / "data")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=ROOT, **pipes) as process:
        assert process.stdout.readline() == "taken\n"
        yield process
        process.kill()


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_a_lock_names_its_process_and_dies_with_it(end, holder, tmp_path):
    fault = rf"data: process {holder.pid} on .*using it; wait for it"
    with pytest.raises(InputError, match=fault), locked(tmp_path / "data", "wait for it"):
        pass
    os.kill(holder.pid, end)
    holder.wait()
    with locked(tmp_path / "data", "wait"):
        said = (tmp_path / "data/.lock").read_text()
        assert said.startswith(f"process {os.getpid()} on ")
        assert said.count("\n") == 1


def test_a_new_folder_goes_with_an_error_unless_something_was_written(tmp_path):
    folder = tmp_path / "new"
    with pytest.raises(KeyError), locked(folder, "wait"):
        raise KeyError
    assert not folder.exists()

    def fail() -> None:
        with locked(folder, "wait"):
            (folder / "some").touch()
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert {path.name for path in folder.iterdir()} == {".lock", "some"}
    with locked(folder, "wait"):  # again after an error
        pass


def test_work_goes_on_with_a_warning_where_there_are_no_locks(tmp_path, monkeypatch, caplog):
    def refuse(file, how):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with locked(tmp_path, "wait"):
        assert "cannot be locked" in caplog.text
