"""run.sh under each POSIX shell that is here, with a Python that only listens."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

REPOSITORY = Path(__file__).parents[2]
SHELLS = {
    "dash": ["dash"],
    "busybox": ["busybox", "sh"],
    "bash": ["bash"],
    "bash-posix": ["bash", "--posix"],
}
LISTENER = """#!{python} -IS
import json, os, signal, sys

if sys.argv[1] == "-c":
    print(os.environ.get("FAKE_GPUS", "0"))
    raise SystemExit

with open(os.environ["RECORD"], "a") as file:
    file.write(json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]) + "\\n")

if "READY" in os.environ:  # works until it is stopped, saves, and leaves

    def leave(*_):
        with open(os.environ["RECORD"], "w") as file:
            file.write("saved")
        raise SystemExit(143)

    signal.signal(signal.SIGTERM, leave)
    with open(os.environ["READY"], "w") as ready:
        ready.write("ready")
    while True:
        signal.pause()

raise SystemExit(int(os.environ.get("FAKE_EXIT", "0")))
"""


class Call(NamedTuple):
    """What the listening Python was called with."""

    arguments: list[str]
    folder: str
    environment: dict[str, str]

    @property
    def module(self):
        modules = [a for a in self.arguments if a.startswith("bins.")]
        return modules[0] if modules else None


class Result(NamedTuple):
    code: int
    output: str
    calls: list[Call]


@pytest.fixture(params=SHELLS)
def shell(request):
    if shutil.which(SHELLS[request.param][0]) is None:
        pytest.skip(f"{request.param} is not installed")
    return SHELLS[request.param]


@pytest.fixture
def clone(tmp_path):
    """A clone in a folder with spaces and quotes in its name."""
    root = tmp_path / "my clone's $HOME *"
    scorers = ("processors/scoring/metrics", "processors/scoring/checks")
    for folder in ("egs/_shared", "egs/tts", "egs/vocoder", *scorers):
        shutil.copytree(REPOSITORY / folder, root / folder)
    return root


@pytest.fixture
def listening(tmp_path):
    """Environment in which run.sh finds the listening Python."""
    python = tmp_path / "python"
    python.write_text(LISTENER.format(python=sys.executable))
    python.chmod(0o755)
    ignored = {"CUDA_VISIBLE_DEVICES", "PYTHONPATH", "OMP_NUM_THREADS", "ACCELERATE_USE_CPU"}
    kept = {name: value for name, value in os.environ.items() if name not in ignored}
    return kept | {"PYTHON": str(python), "RECORD": str(tmp_path / "calls.jsonl")}


@pytest.fixture
def run_sh(clone, shell, listening):
    """Runs the script of a recipe, given as its folder in the clone."""

    def run(recipe, *flags, folder=clone, **environment):
        record = Path(listening["RECORD"])
        record.write_text("")
        result = subprocess.run(
            [*shell, str(clone / recipe / "run.sh"), *flags],
            cwd=folder,
            env=listening | environment,
            capture_output=True,
            check=False,
            timeout=20,
            stdin=subprocess.DEVNULL,
        )
        calls = [Call(*json.loads(line)) for line in record.read_text().splitlines()]
        return Result(result.returncode, (result.stderr + result.stdout).decode(), calls)

    return run
