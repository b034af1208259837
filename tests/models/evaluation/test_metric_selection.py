from pathlib import Path

import pytest

from models.evaluation import evaluate
from models.evaluation.evaluate import check_applicable, refuse_without_result, without_result
from models.evaluation.inputs.options import EvaluationOptions
from processors.metrics import registry
from processors.metrics.recognition.user_models import UserModels
from processors.metrics.records import Check, Metric, MetricValue
from processors.metrics.utterance_scorer import EvaluatedUtterance, SpeechFile, UtteranceScores
from utils.errors import InputError


def unscored(_: object) -> None:
    raise AssertionError("scored")


METRICS = (
    Metric("copied", unscored, "lower", "nats", "a whole frame", family="copies"),
    Metric("paired", unscored, "lower", "dB", "sound", family="pairs"),
    Metric("spoken", unscored, "lower", "%", "a text", family="speech"),
    Metric("distant", unscored, "lower", packages=("no-such-package",), family="speech"),
    Metric("encoded", unscored, "higher", "", "", ("no-such-encoder",), True, family="pairs"),
)
CHECKS = (Check(name="quiet", finds="quiet speech", score=lambda *_: None),)


@pytest.fixture(autouse=True)
def _records(monkeypatch):
    metrics, checks = ({record.name: record for record in row} for row in (METRICS, CHECKS))
    for module in (registry, evaluate):
        monkeypatch.setattr(module, "METRICS", metrics)
        monkeypatch.setattr(module, "CHECKS", checks)


def selection_of(*wanted, checks=None):
    return evaluate.select_metrics(EvaluationOptions(wanted or ("all",), checks=checks))


def utterance(*, recorded: bool = True, **is_copy: bool) -> EvaluatedUtterance:
    """An utterance of systems, some of which are copies."""
    spoken = {name: SpeechFile(Path(name), is_copy=value) for name, value in is_copy.items()}
    return EvaluatedUtterance("u", (lambda: None) if recorded else None, "", "", tuple, spoken)


def scored(id: str, *names: str, **missing: str) -> UtteranceScores:
    return UtteranceScores(id, 1.0, {name: MetricValue(1.0) for name in names}, {}, missing)


@pytest.mark.parametrize(
    ("wanted", "checks", "metrics", "selected"),
    [
        ((), None, ("copied", "paired", "spoken", "distant", "encoded"), ("quiet",)),
        (("paired", "copied", "paired"), None, ("paired", "copied"), ()),
        (("paired",), ("all",), ("paired",), ("quiet",)),
        (("paired",), ("quiet",), ("paired",), ("quiet",)),
        ((), (), ("copied", "paired", "spoken", "distant", "encoded"), ()),
    ],
)
def test_checks_come_with_all_metrics_or_where_they_are_named(wanted, checks, metrics, selected):
    assert selection_of(*wanted, checks=checks)[:2] == (metrics, selected)


@pytest.mark.parametrize(
    ("metric", "recorded", "message"),
    [
        ("distant", True, r"--metrics distant: not installed \(pip install no-such-package\)"),
        ("copied", True, "--metrics copied: compares copies with their recordings"),
        ("encoded", True, "--metrics encoded: not installed .pip install no-such-encoder"),
        ("paired", False, "--metrics paired: there are no recordings to compare with"),
    ],
)
def test_a_metric_that_was_asked_for_must_be_possible_for_one_system(metric, recorded, message):
    item = utterance(recorded=recorded, a=False, b=False)
    with pytest.raises(InputError, match=message):
        check_applicable(selection_of("spoken", metric), item, UserModels())


def test_what_one_of_several_systems_can_have_is_computed():
    check_applicable(selection_of("copied"), utterance(a=False, b=True), UserModels())
    check_applicable(selection_of(), utterance(recorded=False, a=False), UserModels())
    with_encoder = UserModels(encoder=lambda wav, rate: wav)
    check_applicable(selection_of("encoded"), utterance(a=False), with_encoder)


def test_what_has_no_result_is_left_out_with_the_reason_of_the_first_utterance(caplog):
    rows = {
        "one": [scored("a", "spoken"), scored("b", spoken="lacks a text", quiet="fails: OSError")],
        "two": [scored("a", spoken="fails: KeyError: 7"), scored("b", spoken="lacks a text")],
    }
    reasons = without_result(rows)
    assert reasons == {"one": {}, "two": {"spoken": "fails: KeyError: 7"}}
    assert "one: no spoken of 1 of 2 (lacks a text): b" in caplog.text
    assert "one: no quiet of 1 of 2 (fails: OSError): b" in caplog.text
    assert "two: no" not in caplog.text


def test_reasons_are_logged_once_for_all_that_share_them(caplog):
    reasons = {"one": {"mcd": "no sound", "fpc": "no sound", "wer": "no text"}, "two": {}}
    with caplog.at_level("INFO", "arion"):
        evaluate.log_skipped(selection_of(), reasons)
    assert [record.getMessage() for record in caplog.records] == [
        "one: without mcd, fpc: no sound",
        "one: without wer: no text",
    ]


def test_a_metric_that_was_asked_for_must_have_a_result_of_one_system():
    lacking = {"one": {"spoken": "lacks a text"}, "two": {}}
    refuse_without_result(selection_of("spoken", "paired"), lacking)
    lacking["two"] = {"spoken": "fails: OSError"}
    with pytest.raises(InputError, match=r"^--metrics spoken: lacks a text; fails: OSError$"):
        refuse_without_result(selection_of("spoken", "paired"), lacking)


def test_no_score_at_all_is_an_error():
    lacking = {"one": {metric.name: "lacks sound" for metric in METRICS}}
    with pytest.raises(InputError, match="no metric can be computed:\n  copied: lacks sound"):
        refuse_without_result(selection_of(), lacking)
    del lacking["one"]["spoken"]
    refuse_without_result(selection_of(), lacking)
