import errno
import logging
import sys
import threading
from types import SimpleNamespace

import pytest
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from accelerate.utils import ProjectConfiguration

from models.base.task import Sample
from models.checkpoint.history import Position
from models.training.optimizers.updates import WindowReport
from models.training.scoring.validation import Validation
from models.training.tracking.tracker import Meter, Tracker, check_tracker, ending_trackers
from utils.errors import InputError


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


def test_a_log_line_has_progress_losses_and_remaining_time(tmp_path, caplog):
    AcceleratorState._reset_state(reset_partial_state=True)
    tracker = Tracker(Accelerator(cpu=True), "none", tmp_path, 8000)
    values = {"mel": 0.51234, "steps_per_s": 2.0, "frames_per_s": 1234.4, "lr": 0.001}
    with caplog.at_level(logging.INFO):
        tracker.log_training(values, Position(step=800, epoch=3), 8000)

    assert caplog.messages == [
        "update 800/8000, epoch 4: mel 0.5123, lr 0.001, 2.00 updates/s, 1234 frames/s, "
        "1:00:00 left"
    ]


def test_metrics_are_listed_after_the_losses_that_add_up(tmp_path, caplog):
    AcceleratorState._reset_state(reset_partial_state=True)
    tracker = Tracker(Accelerator(cpu=True), "none", tmp_path, 8000)
    with caplog.at_level(logging.INFO):
        tracker.log_validation(Validation(0.5, {"mel": 0.4, "stft": 0.1}, {"pesq": 3.21}), 7)
        tracker.log_validation(Validation(0.5, {"mel": 0.5}, {}), 8)

    assert caplog.messages == [
        "update 7: validation loss 0.5 (mel 0.4, stft 0.1); pesq 3.21",
        "update 8: validation loss 0.5 (mel 0.5)",
    ]


def test_weights_and_biases_gets_a_sample_in_one_message(tmp_path, monkeypatch):
    sent = []
    run = SimpleNamespace(log=lambda values, step: sent.append((values, step)))
    accelerator = SimpleNamespace(
        init_trackers=lambda *_, **__: None, get_tracker=lambda kind, unwrap: run
    )
    wandb = SimpleNamespace(
        Audio=lambda wav, sample_rate: ("audio", wav.tolist(), sample_rate),
        Image=lambda figure: ("image", figure),
    )
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    sample = Sample("a", {"recorded": torch.tensor([0.5, 2.0])}, {"mels": lambda: "figure"})
    Tracker(accelerator, "wandb", tmp_path, 8000).log_samples([sample], 7)

    values = {
        "samples/a/recorded": ("audio", [0.5, 1.0], 8000),
        "samples/a/mels": ("image", "figure"),
    }
    assert sent == [(values, 7)]


def test_curves_beyond_the_resumed_update_are_dropped(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    for done, steps in ((0, range(1, 6)), (3, range(4, 5))):
        AcceleratorState._reset_state(reset_partial_state=True)
        folders = ProjectConfiguration(str(tmp_path), logging_dir=str(tmp_path))
        accelerator = Accelerator(cpu=True, log_with="tensorboard", project_config=folders)
        tracker = Tracker(accelerator, "tensorboard", tmp_path, 8000, done)
        for step in steps:
            tracker.log_validation(Validation(10.0 * done + step, {}, {}), step)
        accelerator.end_training()
    events = EventAccumulator(str(tmp_path / "log"))
    events.Reload()

    curve = [(event.step, event.value) for event in events.Scalars("valid/loss")]
    assert curve == [(1, 1.0), (2, 2.0), (3, 3.0), (4, 34.0)]


def test_without_a_tracker_samples_are_not_generated(tmp_path):
    AcceleratorState._reset_state(reset_partial_state=True)
    samples = iter([Sample("a", {}, {})])
    Tracker(Accelerator(cpu=True), "none", tmp_path, 8000).log_samples(samples, 1)

    assert next(samples).id == "a"


def test_without_matplotlib_figures_are_refused_and_curves_are_not(monkeypatch):
    known = {"tensorboard"}
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name if name in known else None)

    check_tracker("tensorboard", n_samples=0)
    check_tracker("none", n_samples=3)
    with pytest.raises(InputError, match=r"matplotlib is not installed: .*train\.valid_samples=0"):
        check_tracker("tensorboard", n_samples=3)


def failing(*_arguments, **_named):
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_log_that_cannot_be_written_is_an_error_that_names_the_experiment(tmp_path):
    AcceleratorState._reset_state(reset_partial_state=True)
    accelerator = Accelerator(cpu=True)
    tracker = Tracker(accelerator, "none", tmp_path, 8000)
    accelerator.log = failing

    found = Validation(1.0, {}, {})
    with pytest.raises(InputError, match=r"the log of train\.tracker .* No space left on device"):
        tracker.log_validation(found, 3)


def test_a_log_that_cannot_be_completed_hides_no_other_error(caplog, capsys):
    class _AsyncWriterThread(threading.Thread):
        """Has the name of TensorBoard's writer, whose errors come again in the main thread."""

    def train():
        thread = _AsyncWriterThread(target=failing)
        thread.start()
        thread.join()
        raise InputError("the disk is full")

    accelerator = SimpleNamespace(end_training=failing)
    with pytest.raises(InputError, match="the disk is full"), ending_trackers(accelerator):
        train()
    assert "the log of the tracker is incomplete: [Errno 28] No space" in caplog.text
    assert capsys.readouterr().err == ""
