from models.base.registry import load_config
from models.training.optimizers.updates import WindowReport
from models.training.tracking.speed import ROOT, Meter, smaller_config


def test_a_line_is_overdue_a_minute_after_the_last():
    times = iter([0.0, 60.0, 61.0, 61.0, 61.0, 62.0])
    meter = Meter(lambda: next(times))

    assert [meter.is_overdue(), meter.is_overdue()] == [False, True]
    meter.read()
    assert not meter.is_overdue()


def test_a_small_configuration_is_that_of_the_recipe_and_not_of_itself():
    recipe = ROOT / "egs" / "tts" / "FastPitch"
    small = smaller_config(load_config(recipe / "exp_config.json"))

    assert small is not None
    assert ROOT / small == recipe / "exp_config_small.json"
    assert smaller_config(load_config(ROOT / small)) is None
    hifigan = load_config(ROOT / "egs" / "vocoder" / "HiFiGAN" / "exp_config.json")
    assert smaller_config(hifigan) is None


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
