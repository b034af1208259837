import errno
import json
import logging
from types import SimpleNamespace

import pytest
import torch

from config.train import ProfileConfig
from models.base.task import Sample
from models.checkpoint.history import Position
from models.training.optimizers.updates import WindowReport
from models.training.scoring.validation import Validation
from models.training.tracking.backends import Backend
from models.training.tracking.tracker import Meter, Tracker, UpdateProfiler
from tests.models.training.small_tasks import make_processed, make_trainer, train_config
from utils.errors import InputError

CPU = torch.device("cpu")


def test_a_log_line_has_progress_losses_and_remaining_time(tmp_path, caplog):
    tracker = Tracker(tmp_path)
    values = {"mel": 0.51234, "steps_per_s": 2.0, "frames_per_s": 1234.4, "lr": 0.001}
    with caplog.at_level(logging.INFO):
        tracker.log_training(values, Position(step=800, epoch=3), 8000)

    assert caplog.messages == [
        "update 800/8000, epoch 4: mel 0.5123, lr 0.001, 2.00 updates/s, 1234 frames/s, "
        "1:00:00 left"
    ]


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


def test_a_log_that_cannot_be_written_is_an_error_that_names_the_experiment(tmp_path):
    backend = SimpleNamespace(kind="tensorboard", log=failing)
    tracker = Tracker(tmp_path, [backend])

    with pytest.raises(
        InputError, match=r"the log of train\.tracker tensorboard .* No space left on device"
    ):
        tracker.log_validation(Validation(1.0, {}, {}), 3)


def test_a_line_is_overdue_a_minute_after_the_last():
    times = iter([0.0, 60.0, 61.0, 61.0, 61.0, 62.0])
    meter = Meter(lambda: next(times))

    assert [meter.is_overdue(), meter.is_overdue()] == [False, True]
    meter.read()
    assert not meter.is_overdue()


def test_a_meter_gives_means_per_update_and_speed():
    times = iter([0.0, 4.0, 4.0, 5.0, 5.0])
    meter = Meter(lambda: next(times))
    for loss in (1.0, 3.0):
        meter.add(WindowReport({"frames": 100}, losses={"mel": loss}, norms={"model": 2.0}))

    assert meter.read() == {
        "mel": 2.0,
        "grad_norm/model": 2.0,
        "steps_per_s": 0.5,
        "frames_per_s": 50.0,
    }
    meter.add(WindowReport({"frames": 7}, losses={"mel": 5.0}))
    assert meter.read() == {"mel": 5.0, "steps_per_s": 1.0, "frames_per_s": 7.0}


def test_skipped_updates_do_not_enter_the_means():
    meter = Meter(iter(range(9)).__next__)
    meter.add(WindowReport({}, losses={"mel": 1.0}))
    meter.add(WindowReport({}, losses={"mel": float("nan")}, faults={"model": "loss mel"}))
    values = meter.read()

    assert (values["mel"], values["skipped"]) == (1.0, 1.0)


def train_profiled(folder, steps, max_steps=4):
    store = make_processed(folder / "data")
    config = train_config(max_steps=max_steps, profile=ProfileConfig(steps))
    trainer = make_trainer(store, folder / "run" / "checkpoints", config)
    trainer.fit()
    weights = trainer._task.networks["model"].state_dict()
    return folder / "run" / "profile", weights


def test_a_profiled_run_has_a_trace_and_a_table_and_the_same_weights(tmp_path, caplog):
    with caplog.at_level(logging.INFO):
        folder, weights = train_profiled(tmp_path / "a", (2, 3))
    other, plain = train_profiled(tmp_path / "b", ())
    trace = json.loads((folder / "trace.json").read_text())
    names = [event.get("name") for event in trace["traceEvents"]]
    table = (folder / "operations.txt").read_text()

    assert all(torch.equal(weights[name], plain[name]) for name in plain)
    assert not other.exists()
    assert names.count("update") == 2
    assert "aten::addmm" in names
    assert "Self CPU" in table
    assert table.count("aten::") > 3
    assert table in caplog.text
    assert "profile of updates 2 to 3 of this run" in caplog.text
    assert not (folder / "memory.pickle").exists()


def test_a_run_that_ends_early_writes_what_it_has(tmp_path, caplog):
    with caplog.at_level(logging.INFO):
        folder, _ = train_profiled(tmp_path, (3, 9))

    assert (folder / "trace.json").exists()
    assert "profile of updates 3 to 4" in caplog.text


def test_a_run_that_will_end_before_the_profile_is_a_warning(tmp_path, caplog):
    folder, _ = train_profiled(tmp_path, (9, 12), max_steps=2)

    assert "no profile: train.profile.steps begins at 9, and 2 updates are left" in caplog.text
    assert not folder.exists()


def test_without_steps_nothing_is_recorded(tmp_path):
    with UpdateProfiler((), tmp_path, CPU) as profiler, profiler.update():
        pass

    assert list(tmp_path.iterdir()) == []
