"""run.sh under each POSIX shell that is here, with a Python that only listens."""

import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr
from pathlib import Path
from typing import NamedTuple

import pytest

from bins import recipe as program
from bins._flags.parsers import recipe_arguments
from utils.cli import UsageError

REPOSITORY = Path(__file__).parents[2]
SHELLS = {"sh": ["sh"], "dash": ["dash"], "busybox": ["busybox", "sh"], "bash": ["bash"]}
SHELLS["bash-posix"] = ["bash", "--posix"]
# In place of the command of each stage, and of what starts processes: it only records its call.
STAGE = """
import json, os, signal, sys, time

def main(words=None):
    words = sys.argv[1:] if words is None else words
    with open(os.environ["RECORD"], "a") as file:
        call = ["bins.{name}", words, os.getcwd(), dict(os.environ), os.getpid(), sys.orig_argv]
        file.write(json.dumps(call) + "\\n")

    if "READY" in os.environ:  # works until it is stopped, saves, and leaves

        def leave(*_):
            with open(os.environ["RECORD"], "w") as file:
                file.write("saved")
            raise SystemExit(143)

        signal.signal(signal.SIGTERM, leave)
        signal.signal(signal.SIGHUP, leave)
        signal.signal(signal.SIGINT, leave)
        with open(os.environ["READY"], "w") as ready:
            ready.write("ready")
        while True:
            time.sleep(0.1)  # pause() would miss a signal that comes just before it

    if code := int(os.environ.get("FAKE_EXIT", "0")):
        raise SystemExit(code)

if __name__ == "__main__":
    main()
"""
LAUNCHER = """
import runpy, sys

module = sys.argv.index("bins.train")
sys.argv = ["train", *sys.argv[module + 1 :]]
runpy.run_module("bins.train", run_name="__main__")
"""
TORCH = """
import os

class cuda:
    device_count = staticmethod(lambda: int(os.environ.get("FAKE_GPUS", "0")))
"""
COPIED = (
    *("egs/_shared", "egs/tts", "egs/vocoder", "bins", "utils", "config"),
    *("processors/__init__.py", "processors/durations/__init__.py", "processors/metrics"),
)
STAGES = ("fetch", "preprocess", "train", "inference", "vocode", "evaluate")
FAKES = {
    **{f"bins/{name}.py": STAGE.replace("{name}", name) for name in STAGES},
    "accelerate/__init__.py": "",
    "accelerate/commands/__init__.py": "",
    "accelerate/commands/launch.py": LAUNCHER,
    "torch.py": TORCH,
    "json5.py": "",
}


IGNORED = {
    *("CUDA_VISIBLE_DEVICES", "PYTHONPATH", "ACCELERATE_USE_CPU"),
    *("OMP_NUM_THREADS", "OMP_WAIT_POLICY", "GOMP_SPINCOUNT"),
}


class Call(NamedTuple):
    """How a stage was called."""

    module: str
    arguments: list[str]
    folder: str
    environment: dict[str, str]
    process: int = 0
    command: Sequence[str] = ()  # of that process


class Result(NamedTuple):
    code: int
    output: str
    calls: list[Call]


@pytest.fixture
def shell(request):
    """`sh`, or the one that the test asks for."""
    command = SHELLS[getattr(request, "param", "sh")]
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    return command


@pytest.fixture
def clone(tmp_path):
    """A clone in a folder with spaces and quotes in its name, whose stages only record."""
    root = tmp_path / "my clone's $HOME *"
    for name in COPIED:
        copy = shutil.copytree if (REPOSITORY / name).is_dir() else shutil.copy
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        copy(REPOSITORY / name, root / name)
    for name, text in FAKES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.fixture
def listening(tmp_path):
    """Environment of a clone whose stages only record."""
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if name not in IGNORED}
    return kept | {"PYTHON": str(python), "RECORD": str(tmp_path / "calls.jsonl")}


@pytest.fixture
def planned(clone):
    """Plans what the script of a recipe would run, in this process, on a CPU."""

    def plan(recipe, *flags, folder=clone, **environment):
        output = io.StringIO()
        with pytest.MonkeyPatch.context() as patch, redirect_stderr(output):
            patch.setattr(os, "environ", {n: v for n, v in os.environ.items() if n not in IGNORED})
            patch.setattr(sys, "path", sys.path[:])
            patch.setattr(program, "ROOT", clone)
            patch.setattr(program, "count_gpus", lambda _names: 0)
            patch.chdir(clone)
            os.environ.update(environment)
            try:
                place = program.find_recipe("/".join(Path(recipe).parts[-2:]), str(folder))
                steps = program.plan(place, recipe_arguments(place.kind, flags))
            except UsageError as error:
                return Result(2, f"error: {error}", [])
            except SystemExit as error:
                return Result(int(error.code or 0), output.getvalue(), [])
            calls = []
            for step in steps:
                variables = os.environ | step.environment
                calls.append(Call(f"bins.{step.command.name}", step.argv, str(clone), variables))
        return Result(0, output.getvalue(), calls)

    return plan


@pytest.fixture
def run_sh(clone, shell, listening):
    """Runs the script of a recipe, given as its folder in the clone."""

    def run(recipe, *flags, folder=clone, **environment):
        record = Path(listening["RECORD"])
        record.write_text("")
        words = [*shell, str(clone / recipe / "run.sh"), *flags]
        options = {"cwd": folder, "env": listening | environment, "timeout": 20}
        options["stdin"] = subprocess.DEVNULL
        result = subprocess.run(words, capture_output=True, check=False, **options)
        calls = [Call(*json.loads(line)) for line in record.read_text().splitlines()]
        return Result(result.returncode, (result.stderr + result.stdout).decode(), calls)

    return run
