import json

import pytest

from models.checkpoint.history import History, Position, history_of
from utils.errors import InputError

FOUND = History(
    hours={"mini": 0.5},
    initialised_from="org/name@0123",
    not_imported=("a", "b"),
    step=4,
    losses={"mel": 0.25},
    best=0.3,
    best_step=2,
)


def test_a_history_comes_back(tmp_path):
    FOUND.save(tmp_path)
    assert History.load(tmp_path) == FOUND
    assert History.load(tmp_path / "none") == History()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"stop": 3}', r"unknown key stop; did you mean step\?; or remove it"),
        ('{"step": "many"}', 'step is "many", expected a whole number; or remove it'),
        ('{"hours": {"mini": null}}', r"hours\.mini is null, expected a number; or"),
        ('{"not_imported": "a"}', r'not_imported is "a", expected a list \[ ... \]; or'),
        ("[3]", "not a history; remove it to continue without"),
        ("", "not JSON"),
    ],
)
def test_something_else_of_that_name_is_refused(tmp_path, text, message):
    (tmp_path / "history.json").write_text(text)
    with pytest.raises(InputError, match=rf"history\.json: {message}"):
        History.load(tmp_path)


def test_training_goes_on_from_what_was_known():
    later = FOUND.trained(Position(step=6, epoch=1, best=0.2, best_step=6), {})
    assert (later.step, later.epoch, later.best, later.best_step) == (6, 2, 0.2, 6)
    assert later.losses == {"mel": 0.25}
    assert later.initialised_from == "org/name@0123"
    measured = FOUND.trained(Position(step=6), {"mel": 0.1, "pesq": float("nan")})
    assert measured.losses == {"mel": 0.1}
    scored = FOUND.trained(Position(step=6), {"score/mcd": 7.5})
    assert scored.losses == {"mel": 0.25, "score/mcd": 7.5}
    assert FOUND.trained(Position(step=6), {"mel": float("nan")}).losses == {}


def test_other_weights_do_not_get_what_was_measured_on_these():
    assert FOUND.at(4) == FOUND.at(None) == FOUND
    other = FOUND.at(2)
    assert (other.step, other.epoch, other.losses, other.best) == (2, None, {}, None)
    assert other.hours == FOUND.hours


def test_hours_and_the_origin_of_mels_are_from_the_report_of_stage_1(tmp_path, config):
    (tmp_path / "a").mkdir()
    report = {"hours": 23.9, "utterances": 3}
    (tmp_path / "a" / "report.json").write_text(json.dumps(report))
    folders = [tmp_path / "a", tmp_path / "b"]
    assert history_of(config, folders) == History(hours={"a": 23.9})
    (tmp_path / "a" / "report.json").write_text(json.dumps({**report, "mels_from": "my_voice"}))
    assert history_of(config, folders) == History(hours={"a": 23.9}, mels_from="my_voice")


@pytest.fixture
def config():
    class TwoDatasets:
        dataset = ("a", "b")

    return TwoDatasets()
