"""Processes of Python in which PyTorch is imported already: importing takes each two seconds.

As a script, the process that imports; each program is a fork of it.
"""

import atexit
import gc
import importlib
import json
import os
import runpy
import socket
import subprocess
import sys
import tempfile
import traceback
import types
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

from tests.commands import ROOT, Done

_IMPORTED = (
    *("bins.train", "bins.inference", "accelerate", "torch.distributed.run"),
    *("tests.models.training.small_tasks", "tests.models.vocoder.small_hifigan"),
)
_THREADS = {"OMP_NUM_THREADS": "1"}


class Process:
    """A process as of `python *words`, in a session of its own: `-c CODE` or `-m MODULE` first.

    Attributes:
        pid: Its number.
        stdin: Where its input comes from, as text.
        stdout: Its output, as text.
    """

    def __init__(self, *words: object, folder: Path = ROOT, **environment: str) -> None:
        inputs, outputs, requests, states = (os.pipe() for _ in range(4))
        self._errors = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115
        fds = requests[0], states[1], inputs[0], outputs[1], self._errors.fileno()
        socket.send_fds(_server()[0], [b"1"], fds)
        for fd in (requests[0], states[1], inputs[0], outputs[1]):
            os.close(fd)
        self.stdin, self.stdout = os.fdopen(inputs[1], "w"), os.fdopen(outputs[0])
        self._state = os.fdopen(states[0])
        with os.fdopen(requests[1], "w") as request:
            json.dump(
                [[*map(str, words)], str(folder), os.environ | _THREADS | environment], request
            )
        self.pid = int(self._state.readline())

    def finish(self) -> Done:
        """Ends its input and waits for it; of an output that is closed, nothing is known."""
        self.stdin.close()
        with self._state, self._errors:
            output = "" if self.stdout.closed else self.stdout.read()
            self.stdout.close()
            code = int(self._state.readline())
            self._errors.seek(0)
            return Done(code, output, self._errors.read())


def run_together(n_processes: int, *words: object) -> list[Done]:
    """Runs a program in several processes of `torch.distributed`, which have to succeed."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    world = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(n_processes)}
    ranks = [{"RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(n_processes)]
    processes = [Process(*words, **(world | rank)) for rank in ranks]  # type: ignore[arg-type]
    ended = [process.finish() for process in processes]
    for done in ended:
        assert done.returncode == 0, done.stderr
    return ended


@cache
def _server() -> tuple[socket.socket, subprocess.Popen[bytes]]:
    """Starts the process that imports; it ends with this one."""
    own, other = socket.socketpair()
    with other:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.processes", str(other.fileno())],
            cwd=ROOT,
            env=os.environ | _THREADS,
            stdin=subprocess.DEVNULL,
            pass_fds=[other.fileno()],
            start_new_session=True,
        )
    return own, process


def _serve(requests: socket.socket) -> None:
    """Forks for each request, until there are none."""
    for module in _IMPORTED:
        importlib.import_module(module)
    gc.freeze()
    while True:
        _, fds, *_ = socket.recv_fds(requests, 1, 5)
        if not fds:
            return
        if not os.fork():
            requests.close()
            _watch(*fds)
        for fd in fds:
            os.close(fd)


def _watch(request: int, states: int, *streams: int) -> NoReturn:
    """Starts the program; writes its number, and the code with which it ends."""
    if not (program := os.fork()):
        os.close(states)
        _run(request, *streams)
    for fd in (request, *streams):
        os.close(fd)
    os.write(states, f"{program}\n".encode())
    _, status = os.waitpid(program, 0)
    os.write(states, f"{os.waitstatus_to_exitcode(status)}\n".encode())
    os._exit(0)


def _run(request: int, *streams: int) -> NoReturn:
    """Becomes the program."""
    os.setsid()
    for number, fd in enumerate(streams):
        os.dup2(fd, number)
        os.close(fd)
    with os.fdopen(request) as file:
        (kind, program, *words), folder, environment = json.load(file)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv[:] = [kind, *words]
    code: Any = 0
    try:
        if kind == "-m":
            runpy.run_module(program, run_name="__main__", alter_sys=True)
        else:
            sys.modules["__main__"] = main = types.ModuleType("__main__")
            exec(program, vars(main))
    except SystemExit as leaving:
        code = leaving.code or 0
    except BaseException:  # noqa: BLE001
        traceback.print_exc()
        code = 1
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(int(code))


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
