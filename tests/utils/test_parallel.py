"""Work in processes, with items that really kill them."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from joblib.externals.loky import get_reusable_executor

from tests.utils import work
from utils import parallel
from utils.errors import InputError
from utils.parallel import run_chunks

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.processes


def test_a_daemonic_process_does_the_work_itself():
    process = multiprocessing.get_context("fork").Process(target=sum_chunks, daemon=True)
    process.start()
    process.join(30)
    assert process.exitcode == 0


def sum_chunks() -> None:
    done = list(run_chunks(work.add_slowly, {"a": [1, 2], "b": [3]}, 2))
    assert [item.result for item in done] == [3, 3]


def test_every_chunk_gives_one_result():
    chunks = {"a": [1, 2], "b": [3], "c": []}
    for backend in ("loky", "sequential"):
        results = {done.key: done.result for done in run_chunks(work.add, chunks, 2, backend)}
        assert results == {"a": 3, "b": 3, "c": 0}


@pytest.mark.parametrize("n_jobs", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_items_that_kill_their_process_are_reported_and_all_others_are_done(n_jobs):
    chunks = {"a": [1, 2, 3], "b": [10, 13, 20], "c": [17], "d": [40, 50]}
    done = {item.key: item for item in run_chunks(work.add_unless_deadly, chunks, n_jobs)}
    found = {key: (item.result, item.lost) for key, item in done.items()}
    assert found == {"a": (6, ()), "b": (30, (13,)), "c": (0, (17,)), "d": (90, ())}


def test_a_single_crash_costs_no_item(tmp_path):
    chunks = {"a": [tmp_path / "crashed"], "b": []}
    done = {item.key: item for item in run_chunks(work.add_after_one_crash, chunks, 2)}
    found = {key: (item.result, item.lost) for key, item in done.items()}
    assert found == {"a": (1, ()), "b": (0, ())}


def test_crashes_without_a_guilty_item_end_with_advice_and_errors_end_the_run(monkeypatch):
    monkeypatch.setattr(parallel, "_UNEXPLAINED_DEATHS", 1)
    with pytest.raises(InputError, match="--num_workers"):
        list(run_chunks(work.die_in_company, {"a": [1, 2, 3]}, 1))
    with pytest.raises(OSError, match="No space left"):
        list(run_chunks(work.fail, {"a": [1]}, 2))


def test_a_caller_that_stops_early_waits_for_no_worker_and_gets_no_warning(recwarn):
    start = time.monotonic()
    for _ in run_chunks(work.sleep_unless_first, {"a": [0], "b": [1], "c": [1]}, 2):
        break
    assert time.monotonic() - start < 50
    assert len(recwarn) == 0


def test_workers_and_sequential_work_have_one_thread_and_restore_their_number():
    import torch

    (done,) = run_chunks(work.limits_and_process, {"a": []}, 1)
    limit, threads, process = done.result
    assert (limit, threads) == ("1", 1)
    assert process != os.getpid()
    before = torch.get_num_threads()
    (done,) = run_chunks(work.limits_and_process, {"a": []}, 4, "sequential")
    assert done.result[1:] == (1, os.getpid())
    assert torch.get_num_threads() == before


def test_workers_ignore_the_ctrl_c_of_a_terminal_and_their_parent_does_not():
    before = signal.getsignal(signal.SIGINT)
    get_reusable_executor().shutdown()  # processes of another test
    assert [done.result for done in run_chunks(work.ignores_ctrl_c, {"a": [1]}, 2)] == [True]
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize(("backend", "module"), [("dask", "distributed"), ("ray", "ray")])
def test_a_backend_that_is_not_installed_is_named(backend, module, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputError, match=f"pip install {module}"):
        list(run_chunks(work.add, {"a": [1]}, 1, backend))


@pytest.mark.slow
@pytest.mark.parametrize(("backend", "module"), [("dask", "distributed"), ("ray", "ray")])
def test_clusters_too_lose_only_the_items_that_kill_their_process(backend, module, monkeypatch):
    pytest.importorskip(module)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))  # for the cluster's processes
    chunks = {"a": [1, 2, 3], "b": [10, 13, 20], "d": [40, 50]}
    done = {item.key: item for item in run_chunks(work.add_unless_deadly, chunks, 2, backend)}
    assert {key: item.result for key, item in done.items()} == {"a": 6, "b": 30, "d": 90}
    assert done["b"].lost == (13,)


SLOW = """
import os, pathlib, time
def work(key, items):
    pathlib.Path(items[0]).write_text(str(os.getpid()))
    time.sleep(60)
"""


@pytest.mark.parametrize(
    ("number", "code", "said", "names"),
    [
        (signal.SIGTERM, 143, "error: stopped by SIGTERM\n", "ab"),
        (signal.SIGKILL, -9, None, "ab"),
        (signal.SIGKILL, -9, None, "a"),  # the other worker has nothing to do yet
    ],
)
def test_a_command_that_is_ended_leaves_no_workers(number, code, said, names, tmp_path):
    (tmp_path / "slow.py").write_text(SLOW)
    pids = [tmp_path / name for name in names]
    chunks = {str(path): [str(path)] for path in pids}
    script = (
        "import slow; from utils.cli import run; from utils.parallel import run_chunks\n"
        f"run(lambda: list(run_chunks(slow.work, {chunks}, 2)))"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(tmp_path)])}
    words = [sys.executable, "-c", script]
    command = subprocess.Popen(words, env=environment, stderr=subprocess.PIPE, text=True)
    while not all(path.exists() and path.read_text() for path in pids):
        time.sleep(0.05)
    command.send_signal(number)
    _, errors = command.communicate(timeout=30)  # the workers hold the pipe as well
    assert (command.returncode, errors) == (code, said or errors)
