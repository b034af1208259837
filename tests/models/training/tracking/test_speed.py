from models.base.registry import load_config
from models.training.optimizers.updates import WindowReport
from models.training.tracking.speed import ROOT, Meter, Pace, smaller_config


def lines(seconds, log_steps, n=12):
    """Updates with a line and their seconds per update; the first update takes 1000 s."""
    times = iter([1000 + seconds * update for update in range(n)])
    pace = Pace(log_steps, lambda: next(times))
    found = {update: pace.add(logged=update % log_steps == 0) for update in range(1, n + 1)}
    return {update: each for update, each in found.items() if each is not None}


def test_a_slow_run_shows_its_pace_from_the_third_update_on_and_once_a_minute():
    assert lines(20, log_steps=50) == {3: 20, 6: 20, 9: 20, 12: 20}
    assert lines(61, log_steps=50, n=5) == {3: 61, 4: 61, 5: 61}


def test_a_log_line_counts():
    assert lines(20, log_steps=5) == {3: 20, 8: 20}


def test_a_run_with_a_log_line_each_minute_shows_nothing_more():
    assert lines(1.1, log_steps=50, n=49) == {}


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
