import errno
import logging
from types import SimpleNamespace

import pytest

from models.base.task import Sample
from models.checkpoint.history import Position
from models.training.observing.backends import Backend
from models.training.observing.tracker import Meter, Tracker, Validation, WindowReport
from utils.errors import InputError


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


def test_a_log_that_cannot_be_written_is_an_error_that_names_the_experiment(tmp_path):
    backend = SimpleNamespace(kind="tensorboard", log=failing)
    tracker = Tracker(tmp_path, [backend])

    message = r"the log of train\.tracker tensorboard .* No space left on device"
    with pytest.raises(InputError, match=message):
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

    speed = {"steps_per_s": 0.5, "frames_per_s": 50.0}
    assert meter.read() == {"mel": 2.0, "grad_norm/model": 2.0, **speed}
    meter.add(WindowReport({"frames": 7}, losses={"mel": 5.0}))
    assert meter.read() == {"mel": 5.0, "steps_per_s": 1.0, "frames_per_s": 7.0}


def test_skipped_updates_do_not_enter_the_means():
    meter = Meter(iter(range(9)).__next__)
    meter.add(WindowReport({}, losses={"mel": 1.0}))
    meter.add(WindowReport({}, losses={"mel": float("nan")}, faults={"model": "loss mel"}))
    values = meter.read()

    assert (values["mel"], values["skipped"]) == (1.0, 1.0)
