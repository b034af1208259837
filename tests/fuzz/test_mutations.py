"""No damaged input ends in a traceback, takes long, or changes a model silently; errors name it.

Every case is a function of its target and its number, which a failure names.
"""

import logging
import random
import shutil
import signal
from contextlib import contextmanager
from pathlib import Path

import pytest
from accelerate.state import AcceleratorState

from tests.fuzz.targets import TARGETS, Target
from utils.errors import InputError

LIMIT_S = 20  # of one case; most take some milliseconds
PER_SHARD = 100
SHARDS = [(name, shard) for name, target in TARGETS.items() for shard in range(target.shards)]


class TooSlowError(Exception):
    """A case that passes the time limit."""


@pytest.fixture(autouse=True)
def _accelerate():
    AcceleratorState._reset_state(reset_partial_state=True)


@contextmanager
def time_limit(seconds):
    def stop(*_):
        raise TooSlowError(f"still running after {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class Case:
    """The whole files of a target, and copies of them to damage.

    Args:
        name: Of the target.
        root: An empty folder.
    """

    def __init__(self, name: str, root: Path) -> None:
        self.target: Target = TARGETS[name]
        self.name, self.root = name, root
        self.whole = root / "whole"
        self.whole.mkdir()
        self.target.write(self.whole)
        found = {path for one in self.target.damaged for path in self.whole.glob(one)}
        self.files = sorted(path.relative_to(self.whole) for path in found if path.is_file())
        self.expected = self.target.read(self.copy("expected"))

    def copy(self, name: str) -> Path:
        shutil.rmtree(self.root / name, ignore_errors=True)
        return shutil.copytree(self.whole, self.root / name, symlinks=True)

    def fault(self, number: int) -> str:
        """What is wrong with the answer to one mutation; empty if nothing is."""
        generator = random.Random(f"{self.name}:{number}")
        file = generator.choice(self.files)
        content = self.target.mutate((self.whole / file).read_bytes(), generator)
        folder = self.copy("damaged")
        (folder / file).write_bytes(content)
        lines: list[str] = []  # that a user would read
        logger, handler = logging.getLogger("arion"), logging.Handler()
        handler.emit = lambda record: lines.append(record.getMessage())
        level = logger.level
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
        try:
            with time_limit(LIMIT_S):
                result = self.target.read(folder)
        except self.target.rejects as error:
            return "" if str(error).strip() else f"{file}: {error!r} explains nothing"
        except (InputError, OSError) as error:
            # of files that contradict one another, any may be named
            named = file.name in str(error) or str(folder) in str(error)
            return "" if named else f"{file}: {error!r} does not name it"
        except Exception as error:  # noqa: BLE001  (a traceback of any type is the fault)
            return f"{file}: {type(error).__name__}: {error}"
        finally:
            logger.removeHandler(handler)
            logger.setLevel(level)
        named = any(file.name in line for line in lines)
        if self.target.exact and result != self.expected and not named:
            return f"{file}: accepted, and gives another result"
        return ""


def faults_of(name, root, numbers):
    case = Case(name, root)
    found = {f"{name}:{number}": case.fault(number) for number in numbers}
    return {seed: fault for seed, fault in found.items() if fault}


@pytest.mark.parametrize("name", TARGETS)
def test_a_few_damaged_files_of_each_kind_are_refused_or_read(name, tmp_path):
    assert faults_of(name, tmp_path, range(-3, 0)) == {}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "shard"), SHARDS)
def test_damaged_files_are_refused_or_read(name, shard, tmp_path):
    numbers = range(shard * PER_SHARD, (shard + 1) * PER_SHARD)
    assert faults_of(name, tmp_path, numbers) == {}
