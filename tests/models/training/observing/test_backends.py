import errno
import json
import sys
from types import SimpleNamespace

import pytest
import torch
from matplotlib.figure import Figure

from models.base.task import Sample
from models.training.observing import backends as backends_module
from models.training.observing.backends import Backend, TrackedRun, check_backends, open_backends
from tests.processes import Process
from utils.errors import InputError

CONFIG = {"train.adam.lr": 0.01, "dataset": ["a", "b"]}


def run_in(folder, step=0):
    return TrackedRun(folder / "voice", CONFIG, 8000, step)


def metrics_of(folder):
    path = folder / "voice" / "log" / "metrics.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_json_lines_hold_the_run_and_its_curves(tmp_path):
    with open_backends(["jsonl"], run_in(tmp_path)) as (backend,):
        backend.log({"train/mel": 0.5, "train/norm": float("nan")}, 3)

    assert metrics_of(tmp_path) == [
        {"run": "voice", "config": CONFIG, "step": 0},
        {"step": 3, "train/mel": 0.5, "train/norm": None},
    ]


def test_a_resumed_run_drops_the_lines_that_it_repeats(tmp_path):
    with open_backends(["jsonl"], run_in(tmp_path)) as (backend,):
        for step in (2, 4, 6):
            backend.log({"valid/loss": step}, step)
    with (tmp_path / "voice" / "log" / "metrics.jsonl").open("a") as file:
        file.write('{"step": 7, "valid/lo')  # killed while it wrote
    with open_backends(["jsonl"], run_in(tmp_path, step=4)) as (resumed,):
        resumed.log({"valid/loss": 60}, 6)

    rows = [(row["step"], row.get("valid/loss")) for row in metrics_of(tmp_path)]
    assert rows == [(0, None), (2, 2), (4, 4), (4, None), (6, 60)]
    with open_backends(["jsonl"], run_in(tmp_path)):
        pass
    assert len(metrics_of(tmp_path)) == 1


def test_several_backends_record_one_run(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    with open_backends(["tensorboard", "jsonl"], run_in(tmp_path)) as both:
        for backend in both:
            backend.log({"valid/loss": 0.5}, 1)
    events = EventAccumulator(str(tmp_path / "voice" / "log"))
    events.Reload()

    assert metrics_of(tmp_path)[1] == {"step": 1, "valid/loss": 0.5}
    assert events.Scalars("valid/loss")[0].value == 0.5
    (text,) = events.Tensors("config/text_summary")
    table = text.tensor_proto.string_val[0].decode()
    assert table.startswith("# voice\n")
    assert "| train.adam.lr | 0.01 |" in table


def test_curves_beyond_the_resumed_update_are_dropped(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    for done, steps in ((0, range(1, 6)), (3, range(4, 5))):
        with open_backends(["tensorboard"], run_in(tmp_path, done)) as (backend,):
            for step in steps:
                backend.log({"valid/loss": 10.0 * done + step}, step)
    events = EventAccumulator(str(tmp_path / "voice" / "log"))
    events.Reload()

    curve = [(event.step, event.value) for event in events.Scalars("valid/loss")]
    assert curve == [(1, 1.0), (2, 2.0), (3, 3.0), (4, 34.0)]


class LoginError(Exception):
    """Of the fake below."""


def fake_wandb(monkeypatch, started, sent):
    def init(**options):
        started.append(options)
        if options["name"] == "stranger":
            raise LoginError("api_key not configured")
        return SimpleNamespace(
            log=lambda values, step: sent.append((values, step)), finish=lambda: sent.append("end")
        )

    module = SimpleNamespace(
        init=init,
        errors=SimpleNamespace(Error=LoginError),
        Audio=lambda wav, sample_rate: ("audio", wav.tolist(), sample_rate),
        Image=lambda pixels: ("image", pixels.shape, pixels.mean()),
    )
    monkeypatch.setitem(sys.modules, "wandb", module)


def test_weights_and_biases_gets_the_run_and_a_sample_in_one_message(tmp_path, monkeypatch):
    started, sent = [], []
    fake_wandb(monkeypatch, started, sent)
    white = Figure(figsize=(3, 2), dpi=10)
    sample = Sample("a", {"recorded": torch.tensor([0.5, 2.0])}, {"mels": lambda: white})
    with open_backends(["wandb"], run_in(tmp_path)) as (backend,):
        backend.log({"valid/loss": 0.5}, 6)
        backend.show(sample, 7)

    folder = str(tmp_path / "voice")
    assert started == [{"project": "arion", "name": "voice", "dir": folder, "config": CONFIG}]
    image = ("image", (20, 30, 4), 255.0)
    values = {"samples/a/recorded": ("audio", [0.5, 1.0], 8000), "samples/a/mels": image}
    assert sent == [({"valid/loss": 0.5}, 6), (values, 7), "end"]


def test_a_run_that_weights_and_biases_refuses_is_an_error_and_closes_the_other_log(
    tmp_path, monkeypatch
):
    closed = []
    board = Backend("tensorboard", failing, None, lambda: closed.append("tensorboard"))
    monkeypatch.setitem(backends_module._OPENING, "tensorboard", lambda run: board)
    fake_wandb(monkeypatch, [], [])
    run = TrackedRun(tmp_path / "stranger", CONFIG, 8000)
    with (
        pytest.raises(InputError, match=r"api_key not configured; .* WANDB_MODE=offline"),
        open_backends(["tensorboard", "wandb"], run),
    ):
        pass
    assert closed == ["tensorboard"]


def failing(*_arguments, **_named):
    raise OSError(errno.ENOSPC, "No space left on device")


ON_A_FULL_DISK = """
import resource, sys
from pathlib import Path
from models.training.observing.backends import TrackedRun, open_backends
from models.training.observing.tracker import Tracker, Validation
from utils.cli import run

folder = Path(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
def main():
    with open_backends(["tensorboard"], TrackedRun(folder, {}, 8000)) as backends:
        tracker = Tracker(folder, backends)
        for step in range(1000):
            tracker.log_validation(Validation(1.0, {}, {}), step)

run(main)
"""


def test_a_full_disk_ends_training_with_one_error_and_no_traceback_of_another_thread(tmp_path):
    done = Process("-c", ON_A_FULL_DISK, str(tmp_path)).finish()
    assert done.returncode == 1
    lines = [line for line in done.stderr.splitlines() if " INFO " not in line]
    assert [line.split(" WARNING ")[-1] for line in lines] == [
        "the log of tensorboard is incomplete: [Errno 27] File too large",
        f"error: {tmp_path}: the log of train.tracker tensorboard cannot be written: File too"
        " large; free disk space, then continue with --resume",
    ]


def test_a_log_that_cannot_be_opened_is_an_error_that_names_the_experiment(tmp_path, monkeypatch):
    monkeypatch.setitem(backends_module._OPENING, "jsonl", failing)
    message = r"the log of train\.tracker jsonl cannot be written: No space left on device"
    with pytest.raises(InputError, match=message), open_backends(["jsonl"], run_in(tmp_path)):
        pass


def test_all_logs_are_closed_if_one_raises_another_error(tmp_path, monkeypatch):
    def crash():
        raise RuntimeError("writer")

    closed = []
    for name in ("tensorboard", "jsonl"):
        other = Backend(name, failing, None, lambda name=name: closed.append(name))
        monkeypatch.setitem(backends_module._OPENING, name, lambda run, other=other: other)
    crashing = Backend("wandb", failing, None, crash)
    monkeypatch.setitem(backends_module._OPENING, "wandb", lambda run: crashing)
    with (
        pytest.raises(RuntimeError, match="writer"),
        open_backends(["tensorboard", "wandb", "jsonl"], run_in(tmp_path)),
    ):
        pass
    assert sorted(closed) == ["jsonl", "tensorboard"]


def test_a_missing_package_is_named_with_its_remedy(monkeypatch):
    known = {"tensorboard"}
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name if name in known else None)

    check_backends(["tensorboard"], n_samples=0)
    check_backends(["jsonl"], n_samples=3)
    check_backends([], n_samples=3)
    with pytest.raises(InputError, match=r"matplotlib is not installed: .*train\.valid_samples=0"):
        check_backends(["jsonl", "tensorboard"], n_samples=3)
    with pytest.raises(InputError, match=r"wandb is not installed: pip install wandb, or set"):
        check_backends(["tensorboard", "wandb"], n_samples=0)
