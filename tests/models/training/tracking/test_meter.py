from models.training.optimizers.updates import WindowReport
from models.training.tracking.meter import Meter


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
