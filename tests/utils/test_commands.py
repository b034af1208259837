import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from utils.commands import run_command

# runs another Python, which works until it is stopped, says by which signal, and exits with 7
PARENT = """
import os, sys
from utils.commands import run_command

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
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(ready)],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        text=True,
        **options,
    )
    ready.read_text()  # until the child is ready
    return parent


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_reaches_the_command_and_its_exit_code_is_returned(tmp_path, number):
    parent = started(tmp_path / "ready")
    parent.send_signal(number)
    output, _ = parent.communicate(timeout=20)
    assert (output, parent.returncode) == ("SIGTERM\n", 7)


def test_ctrl_c_of_a_terminal_reaches_the_command_once(tmp_path):
    parent = started(tmp_path / "ready", start_new_session=True)
    os.killpg(parent.pid, signal.SIGINT)
    output, _ = parent.communicate(timeout=20)
    assert (output, parent.returncode) == ("SIGINT\n", 7)


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


def test_a_command_that_a_signal_ended_has_a_code_of_its_own():
    die = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    assert run_command([sys.executable, "-c", die], os.environ) == 137


def test_handlers_are_those_of_before():
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    assert run_command([sys.executable, "-c", "raise SystemExit(3)"], os.environ) == 3
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
