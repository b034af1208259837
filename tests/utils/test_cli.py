import errno
import io
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands import ROOT, python
from utils.cli import Parser, UsageError, print_text, run, run_command
from utils.errors import InputError

FULL = OSError(errno.ENOSPC, "full", "x.pt")


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (InputError("a.wav: 0 samples"), 1, "error: a.wav: 0 samples\n"),
        (UsageError("give --name"), 2, "error: give --name\n"),
        (FULL, 1, "error: x.pt: full; free some space, then run the same command again\n"),
        (OSError("cannot write"), 1, "error: cannot write\n"),
        (InputError("a\x1b[2J\x07: no\n  audio\t"), 1, "error: a\\x1b[2J\\x07: no\n  audio\t\n"),
        (KeyboardInterrupt(), 130, "error: interrupted\n"),
    ],
)
def test_a_fault_in_the_input_is_one_line_and_an_exit_code(capsys, error, code, said):
    def main():
        raise error

    with pytest.raises(SystemExit) as caught:
        run(main)
    assert caught.value.code == code
    assert capsys.readouterr() == ("", said)


def test_text_that_a_terminal_cannot_show_is_escaped(monkeypatch):
    for encoding, shown in (("utf-8", "caf\\udce9 ü"), ("ascii", "caf\\udce9 \\xfc")):
        written = io.BytesIO()
        monkeypatch.setattr("sys.stdout", io.TextIOWrapper(written, encoding=encoding))
        print_text("caf\udce9 ü")
        assert written.getvalue().decode() == shown


@pytest.mark.parametrize("words", ["print_text('a' * 90000)", "print_bytes(bytes(90000))"])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_is_named_and_nothing_goes_unnoticed(tmp_path, words, unbuffered):
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))"
    program = f"{limit}\nfrom utils.cli import *\nrun(lambda: {words})"
    options = {"env": {**os.environ, "PYTHONUNBUFFERED": unbuffered}, "cwd": ROOT, "text": True}
    with (tmp_path / "out").open("wb") as file:
        command = [sys.executable, "-c", program]
        done = subprocess.run(command, stdout=file, stderr=subprocess.PIPE, **options)
    assert (done.returncode, done.stderr) == (1, "error: standard output: File too large\n")


def test_a_bug_keeps_its_traceback_and_a_command_that_ends_well_returns(capsys):
    def main():
        raise ValueError("a bug of ours")

    with pytest.raises(ValueError, match="a bug of ours"):
        run(main)
    run(lambda: None)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("flags", [[], ["--conf", "x"], ["--config", "x", "--what"]])
def test_wrong_flags_and_abbreviations_are_one_line_and_exit_code_2(capsys, flags):
    parser = Parser("A command.")
    parser.add_argument("--config", required=True)
    with pytest.raises(SystemExit) as caught:
        parser.parse_args(flags)
    assert caught.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--txt", "x"], "error: unknown flag --txt; did you mean --text? (x --help lists"),
        (["--text", "x", "--st=a=1"], "error: unknown flag --st; did you mean --set? (x --help"),
        (["--text", "x", "--soft"], "error: unknown flag --soft (x --help lists the flags)\n"),
        (["--tex", "x"], "error: unknown flag --tex; did you mean --text?"),
        (["--fast=1"], "error: --fast takes no value"),
        (["--text"], "error: --text needs a value"),
        (["--text", "--fast"], "error: --text needs a value, found the flag --fast"),
        (["--text=--"], "error: --text needs a value, found --"),
        (["--text", "a", "b c"], "error: unexpected argument 'b c'; quote a value that holds"),
        (["--text", "a", "b\nc"], r"error: unexpected argument 'b\nc'; quote"),
        (["--text", "a", "--"], "error: unknown flag -- ("),
        (["--text", "a", "--other"], "error: --other is of another command ("),
        (["-n", "3"], "error: unknown flag -n ("),
    ],
)
def test_words_that_do_not_fit_are_one_line(capsys, words, said):
    parser = Parser("A command.")
    parser.prog = "x"
    parser.add_argument("--text")
    parser.add_argument("--set")
    parser.add_argument("--fast", action="store_true")
    parser.elsewhere = {"--other": "--other is of another command"}
    with pytest.raises(SystemExit) as caught:
        parser.parse_args(words)
    assert caught.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith(said)
    assert error.count("\n") == 1


@pytest.mark.parametrize("text", ["-", "--text", "-1", "", "a=b", "two\nlines", " "])
def test_a_value_arrives_as_it_was_typed(text):
    parser = Parser("A command.")
    parser.free_text = {"--text"}
    parser.add_argument("place")
    parser.add_argument("-t", "--text")
    parser.add_argument("--repeated", action="append")
    parser.add_argument("--many", nargs="+", action="extend")
    for words in ([f"--text={text}", "p"], ["p", "--text", text]):
        given = parser.parse_args([*words, f"--repeated={text}", f"--many={text}"])
        assert (given.place, given.text) == ("p", text)
        assert given.repeated == given.many == [text]
    # with a space it is no flag
    assert parser.parse_args(["p", "--repeated", "-- so it goes"]).repeated == ["-- so it goes"]
    assert parser.parse_args(["p", "--repeated=--so"]).repeated == ["--so"]


def test_ctrl_c_works_in_a_command_that_a_shell_started_in_the_background():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with pytest.raises(SystemExit) as caught:
            run(lambda: signal.raise_signal(signal.SIGINT))
    finally:
        signal.signal(signal.SIGINT, before)
    assert caught.value.code == 130


def test_ctrl_c_while_a_command_exits_changes_its_exit_code_and_interrupts_nothing():
    script = """
import atexit, signal, sys
from utils.cli import run

run(lambda: None)

@atexit.register
def clean_up():
    signal.raise_signal(signal.SIGINT)
    print("cleaned up")
"""
    assert python("-c", script) == (130, "cleaned up\n", "")


def test_leaving_runs_exit_handlers_and_writes_what_was_printed():
    script = """
import atexit
from utils.cli import leave

class Bomb:
    def __del__(self):
        print("the interpreter was taken down")

bomb = Bomb()
atexit.register(print, "handled")
print("last words")
leave(7)
"""
    assert python("-c", script) == (7, "last words\nhandled\n", "")


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_termination_is_one_line_and_the_exit_code_of_the_signal(capsys, name):
    number = signal.Signals[name]
    before = signal.getsignal(number)
    with pytest.raises(SystemExit) as caught:
        run(lambda: signal.raise_signal(number))
    assert caught.value.code == 128 + number
    assert capsys.readouterr().err == f"error: stopped by {name}\n"
    assert signal.getsignal(number) == before


def test_a_command_that_nohup_started_outlives_its_terminal():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        lived = []
        run(lambda: lived.append(signal.raise_signal(signal.SIGHUP)))
        assert lived == [None]
    finally:
        signal.signal(signal.SIGHUP, before)


# runs another Python, which works until it is stopped, says by which signal, and exits with 7
PARENT = """
import os, sys
from utils.cli import run_command

child = '''
import os, signal, sys, time

def stop(number, frame):
    print(signal.Signals(number).name, flush=True)
    sys.exit(7)

for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
    if signal.getsignal(number) != signal.SIG_IGN:
        signal.signal(number, stop)
open(sys.argv[1], "w").close()
while True:
    time.sleep(0.1)  # pause() would miss a signal that comes just before it
'''
sys.exit(run_command([sys.executable, "-c", child, sys.argv[1]], os.environ))
"""


def started(ready: Path, **options) -> subprocess.Popen:
    os.mkfifo(ready)
    options |= {"cwd": ROOT, "stdout": subprocess.PIPE, "text": True}
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(ready)], **options)
    ready.read_text()  # until the child is ready
    return parent


@pytest.mark.parametrize(
    ("number", "send", "said"),
    [
        (signal.SIGTERM, os.kill, "SIGTERM\n"),
        (signal.SIGHUP, os.kill, "SIGTERM\n"),
        (signal.SIGINT, os.killpg, "SIGINT\n"),  # Ctrl-C of a terminal
    ],
)
def test_a_signal_reaches_the_command_once_and_its_exit_code_is_returned(
    tmp_path, number, send, said
):
    parent = started(tmp_path / "ready", start_new_session=True)
    send(parent.pid, number)
    output, _ = parent.communicate(timeout=20)
    assert (output, parent.returncode) == (said, 7)


def test_a_hangup_that_nohup_ignores_ends_nothing(tmp_path):
    ignore = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        parent = started(tmp_path / "ready")
    finally:
        signal.signal(signal.SIGHUP, ignore)
    parent.send_signal(signal.SIGHUP)
    parent.send_signal(signal.SIGTERM)
    output, _ = parent.communicate(timeout=20)
    assert (output, parent.returncode) == ("SIGTERM\n", 7)


def test_a_command_has_its_code_or_one_of_its_signal_and_handlers_are_those_of_before():
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    assert run_command([sys.executable, "-c", "raise SystemExit(3)"], os.environ) == 3
    die = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    assert run_command([sys.executable, "-c", die], os.environ) == 137
    assert before == (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT))


def test_a_command_that_ends_as_it_is_stopped_counts_as_stopped(monkeypatch):
    class Child:
        """Ends by itself while the signal is on its way."""

        def __init__(self, *_: object, **__: object) -> None:
            self.terminate = lambda: None

        def wait(self) -> int:
            os.kill(os.getpid(), signal.SIGTERM)
            return 0

    monkeypatch.setattr(subprocess, "Popen", Child)
    assert run_command(["any"], {}) == 128 + signal.SIGTERM
