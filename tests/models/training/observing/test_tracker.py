import errno
import json
import logging
import sys
from types import SimpleNamespace

import pytest
import torch
from matplotlib.figure import Figure
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from models.base.task import Sample
from models.checkpoint.history import Position
from models.training.observing import tracker as tracking
from models.training.observing.scoring import Validation
from models.training.observing.tracker import Backend, Tracker, open_backends
from tests.processes import Process
from utils.errors import InputError

CONFIG = {"train.adam.lr": 0.01, "dataset": ["a", "b"]}


def test_a_log_line_has_progress_losses_and_remaining_time(tmp_path, caplog):
    tracker = Tracker(tmp_path)
    values = {"mel": 0.51234, "steps_per_s": 2.0, "frames_per_s": 1234.4, "lr": 0.001}
    with caplog.at_level(logging.INFO):
        tracker.log_training(values, Position(step=800, epoch=3), 8000)
    speed = "lr 0.001, 2.00 updates/s, 1234 frames/s"
    assert caplog.messages == [f"update 800/8000, epoch 4: mel 0.5123, {speed}, 1:00:00 left"]


def test_metrics_are_listed_after_the_losses_that_add_up(tmp_path, caplog):
    tracker = Tracker(tmp_path)
    with caplog.at_level(logging.INFO):
        tracker.log_validation(Validation(0.5, {"mel": 0.4, "stft": 0.1}, {"pesq": 3.21}), 7)
        tracker.log_validation(Validation(0.5, {"mel": 0.5}, {}), 8)
    assert caplog.messages == [
        "update 7: validation loss 0.5 (mel 0.4, stft 0.1); pesq 3.21",
        "update 8: validation loss 0.5 (mel 0.5)",
    ]


def recorder(curves, shown=None):
    """A backend that keeps what it gets; without `shown`, it takes no samples."""

    def show(sample, step):
        shown.append((sample.id, step))

    def log(values, step):
        curves.append((values, step))

    return Backend("recorder", log, None if shown is None else show, lambda: None)


def test_every_backend_gets_curves_and_those_that_take_them_samples(tmp_path):
    full, numbers, shown = [], [], []
    tracker = Tracker(tmp_path, [recorder(full, shown), recorder(numbers)])
    tracker.log_validation(Validation(0.5, {"mel": 0.4}, {"pesq": 3.0}), 7)
    tracker.log_samples([Sample("a", {}, {}), Sample("b", {}, {})], 7)
    curves = {"valid/mel": 0.4, "valid/pesq": 3.0, "valid/loss": 0.5}
    assert full == numbers == [(curves, 7)]
    assert shown == [("a", 7), ("b", 7)]


@pytest.mark.parametrize("backends", [(), (recorder([]),)])
def test_samples_that_no_backend_takes_are_not_generated(tmp_path, backends):
    samples = iter([Sample("a", {}, {})])
    Tracker(tmp_path, backends).log_samples(samples, 1)
    assert next(samples).id == "a"


def failing(*_arguments, **_named):
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_log_that_cannot_be_written_or_opened_is_an_error_that_names_the_experiment(
    tmp_path, monkeypatch
):
    tracker = Tracker(tmp_path, [SimpleNamespace(kind="tensorboard", log=failing)])
    message = r"the log of train\.tracker tensorboard cannot be written: No space left on device"
    with pytest.raises(InputError, match=message):
        tracker.log_validation(Validation(1.0, {}, {}), 3)
    monkeypatch.setitem(tracking._OPENING, "tensorboard", failing)
    with pytest.raises(InputError, match=message), open_backends(["tensorboard"], run_in(tmp_path)):
        pass


def test_a_line_is_overdue_a_minute_after_the_last():
    times = iter([0.0, 60.0, 61.0, 61.0, 61.0, 62.0])
    meter = tracking.Meter(lambda: next(times))
    assert [meter.is_overdue(), meter.is_overdue()] == [False, True]
    meter.read()
    assert not meter.is_overdue()


def test_a_meter_gives_means_per_update_and_speed():
    times = iter([0.0, 4.0, 4.0, 5.0, 5.0])
    meter = tracking.Meter(lambda: next(times))
    for loss in (1.0, 3.0):
        meter.add(
            tracking.WindowReport({"frames": 100}, losses={"mel": loss}, norms={"model": 2.0})
        )
    speed = {"steps_per_s": 0.5, "frames_per_s": 50.0}
    assert meter.read() == {"mel": 2.0, "grad_norm/model": 2.0, **speed}
    meter.add(tracking.WindowReport({"frames": 7}, losses={"mel": 5.0}))
    assert meter.read() == {"mel": 5.0, "steps_per_s": 1.0, "frames_per_s": 7.0}


def test_skipped_updates_do_not_enter_the_means():
    meter = tracking.Meter(iter(range(9)).__next__)
    meter.add(tracking.WindowReport({}, losses={"mel": 1.0}))
    meter.add(tracking.WindowReport({}, losses={"mel": float("nan")}, faults={"model": "loss mel"}))
    values = meter.read()
    assert (values["mel"], values["skipped"]) == (1.0, 1.0)


def run_in(folder, step=0):
    return tracking.TrackedRun(folder / "voice", CONFIG, 8000, step)


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
    with open_backends(["tensorboard", "jsonl"], run_in(tmp_path)) as both:
        for backend in both:
            backend.log({"valid/loss": 0.5}, 1)
    events = EventAccumulator(str(tmp_path / "voice" / "log")).Reload()
    assert metrics_of(tmp_path)[1] == {"step": 1, "valid/loss": 0.5}
    assert events.Scalars("valid/loss")[0].value == 0.5
    (text,) = events.Tensors("config/text_summary")
    table = text.tensor_proto.string_val[0].decode()
    assert table.startswith("# voice\n")
    assert "| train.adam.lr | 0.01 |" in table


def test_curves_beyond_the_resumed_update_are_dropped(tmp_path):
    for done, steps in ((0, range(1, 6)), (3, range(4, 5))):
        with open_backends(["tensorboard"], run_in(tmp_path, done)) as (backend,):
            for step in steps:
                backend.log({"valid/loss": 10.0 * done + step}, step)
    events = EventAccumulator(str(tmp_path / "voice" / "log")).Reload()
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
    monkeypatch.setitem(tracking._OPENING, "tensorboard", lambda run: board)
    fake_wandb(monkeypatch, [], [])
    run = tracking.TrackedRun(tmp_path / "stranger", CONFIG, 8000)
    with (
        pytest.raises(InputError, match=r"api_key not configured; .* WANDB_MODE=offline"),
        open_backends(["tensorboard", "wandb"], run),
    ):
        pass
    assert closed == ["tensorboard"]


ON_A_FULL_DISK = """
import resource, sys
from pathlib import Path
from models.training.observing.scoring import Validation
from models.training.observing.tracker import TrackedRun, Tracker, open_backends
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


def test_all_logs_are_closed_if_one_raises_another_error(tmp_path, monkeypatch):
    def crash():
        raise RuntimeError("writer")

    closed = []
    for name in ("tensorboard", "jsonl"):
        other = Backend(name, failing, None, lambda name=name: closed.append(name))
        monkeypatch.setitem(tracking._OPENING, name, lambda run, other=other: other)
    crashing = Backend("wandb", failing, None, crash)
    monkeypatch.setitem(tracking._OPENING, "wandb", lambda run: crashing)
    with (
        pytest.raises(RuntimeError, match="writer"),
        open_backends(["tensorboard", "wandb", "jsonl"], run_in(tmp_path)),
    ):
        pass
    assert sorted(closed) == ["jsonl", "tensorboard"]


def test_a_missing_package_is_named_with_its_remedy(monkeypatch):
    known = {"tensorboard"}
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name if name in known else None)
    tracking.check_backends(["tensorboard"], n_samples=0)
    tracking.check_backends(["jsonl"], n_samples=3)
    tracking.check_backends([], n_samples=3)
    with pytest.raises(InputError, match=r"matplotlib is not installed: .*train\.valid_samples=0"):
        tracking.check_backends(["jsonl", "tensorboard"], n_samples=3)
    with pytest.raises(InputError, match=r"wandb is not installed: pip install wandb, or set"):
        tracking.check_backends(["tensorboard", "wandb"], n_samples=0)
