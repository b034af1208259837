import pytest

from models.evaluation import metric_selection
from models.evaluation.inputs.evaluation_set import SystemTraits
from models.evaluation.metric_selection import MetricSelection
from processors.metrics import registry
from processors.metrics.recognition.user_models import UserModels
from processors.metrics.records import (
    Check,
    CheckFlag,
    CopyMetric,
    MetricValue,
    PairMetric,
    SpeechMetric,
)
from processors.metrics.utterance_scorer import UtteranceScores
from utils.errors import InputError


def unscored(_: object) -> None:
    raise AssertionError("scored")


METRICS = (
    CopyMetric(name="copied", unit="nats", better="lower", needs="a whole frame", score=unscored),
    PairMetric(name="paired", unit="dB", better="lower", needs="sound", score=unscored),
    SpeechMetric(name="spoken", unit="%", better="lower", needs="a text", score=unscored),
    SpeechMetric(name="distant", better="lower", packages=("no-such-package",), score=unscored),
    PairMetric(name="encoded", better="higher", needs_encoder=True, score=unscored),
)
CHECKS = (Check(name="quiet", finds="quiet speech", check=lambda *_: None),)
SPEECH, COPIES = SystemTraits(copies=False, recorded=True), SystemTraits(copies=True, recorded=True)


@pytest.fixture(autouse=True)
def _records(monkeypatch):
    metrics, checks = ({record.name: record for record in row} for row in (METRICS, CHECKS))
    for module in (registry, metric_selection):
        monkeypatch.setattr(module, "METRICS", metrics)
        monkeypatch.setattr(module, "CHECKS", checks)


def selection_of(
    *wanted, checks=None, user_models=None, **systems: SystemTraits
) -> MetricSelection:
    return MetricSelection(wanted or ("all",), checks, systems, user_models or UserModels())


def scored(id: str, *names: str, **changes) -> UtteranceScores:
    return UtteranceScores(id, 1.0, {name: MetricValue(1.0) for name in names}, **changes)


def test_each_system_has_what_can_be_computed_of_it_and_reasons_for_the_rest(caplog):
    with caplog.at_level("INFO", "arion"):
        found = selection_of(
            speech=SPEECH, copies=COPIES, alone=SystemTraits(copies=False, recorded=False)
        )
        found.log_skipped()
    assert found.metrics == ("copied", "paired", "spoken")
    assert {system: sorted(reasons) for system, reasons in found.skipped.items()} == {
        "speech": ["copied", "distant", "encoded"],
        "copies": ["distant", "encoded"],
        "alone": ["copied", "distant", "encoded", "paired"],
    }
    assert "without distant: not installed (pip install no-such-package)" in caplog.text
    assert "without encoded: needs your own function: --speaker_encoder" in caplog.text
    assert "without copied of speech, alone: compares copies with their" in caplog.text
    assert "without paired of alone: there are no recordings to compare with" in caplog.text
    assert [column.name for column in found.columns("alone")] == [
        "spoken", "spoken_recorded", "spoken_difference",
    ]  # fmt: skip
    assert [column.name for column in found.compared_columns] == ["copied", "paired", "spoken"]


def test_the_users_encoder_is_used():
    found = selection_of(speech=SPEECH, user_models=UserModels(encoder=lambda wav, rate: wav))
    assert "encoded" in found.metrics


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        ("distant", "--metrics distant: not installed"),
        ("copied", "--metrics copied: compares copies with their recordings"),
        ("encoded", "--metrics encoded: needs your own function"),
    ],
)
def test_a_metric_that_was_asked_for_must_be_possible(metric, message):
    with pytest.raises(InputError, match=message):
        selection_of("paired", metric, speech=SPEECH)


def test_references_need_not_have_what_was_asked_for(caplog):
    with caplog.at_level("INFO", "arion"):
        found = selection_of("copied", mine=COPIES, natural=SPEECH._replace(is_reference=True))
        found.log_skipped()
    assert found.metrics == ("copied",)
    assert "copied" in found.skipped["natural"]
    assert caplog.text == ""


def test_what_only_a_reference_has_is_computed_of_it():
    found = selection_of(mine=SPEECH, copy=COPIES._replace(is_reference=True))
    assert "copied" in found.metrics
    assert "copied" in found.skipped["mine"]


def test_what_had_nothing_to_score_is_logged(caplog):
    found = selection_of(one=SPEECH, two=SPEECH)
    with caplog.at_level("INFO", "arion"):
        found.skip_unscored(
            {
                "one": [scored("a", "paired", "spoken"), scored("b", "spoken")],
                "two": [scored("a", "paired"), scored("b", "paired")],
            }
        )
        found.log_skipped()
    assert "paired of one: 1 of 2 have no score, for lack of sound: b" in caplog.text
    assert "without spoken of two: no utterance has a text" in caplog.text
    assert found.skipped["two"]["spoken"] == "no utterance has a text"
    assert [column.name for column in found.columns("two")] == ["paired"]


def test_a_metric_that_was_asked_for_must_have_something_to_score():
    found = selection_of("spoken", "paired", one=SPEECH)
    with pytest.raises(InputError, match="--metrics spoken: no utterance has a text"):
        found.skip_unscored({"one": [scored("a", "paired")]})


def test_a_metric_that_was_asked_for_may_be_missing_in_one_of_several_systems(caplog):
    found = selection_of("spoken", "copied", one=SPEECH, two=COPIES)
    found.log_skipped()
    assert "without copied of one: compares copies with their recordings" in caplog.text
    found.skip_unscored({"one": [scored("a")], "two": [scored("a", "copied", "spoken")]})
    found.log_skipped()
    assert "without spoken of one: no utterance has a text" in caplog.text
    assert found.columns("one") == []
    with pytest.raises(InputError, match="--metrics spoken: no utterance has a text"):
        found.skip_unscored({"one": [scored("a")], "two": [scored("a", "copied")]})


def test_texts_are_asked_for_where_none_is_known():
    unknown = selection_of("spoken", speech=SPEECH._replace(texts=False))
    with pytest.raises(InputError, match=r"--metrics spoken: no utterance has a text; give --te"):
        unknown.skip_unscored({"speech": [scored("a")]})
    known = selection_of("spoken", speech=SPEECH)
    with pytest.raises(InputError, match=r"--metrics spoken: no utterance has a text$"):
        known.skip_unscored({"speech": [scored("a")]})


def test_no_score_at_all_is_an_error():
    with pytest.raises(InputError, match="no metric is left that could be computed"):
        selection_of(one=SPEECH).skip_unscored({"one": [scored("a")]})


def test_checks_are_made_with_all_metrics_or_where_they_are_chosen():
    assert selection_of(one=SPEECH).checks == ("quiet",)
    assert selection_of("paired", one=SPEECH).checks == ()
    assert selection_of("paired", checks=("all",), one=SPEECH).checks == ("quiet",)
    assert selection_of(checks=(), one=SPEECH).checks == ()


def test_failures_are_counted_by_check_and_by_utterance():
    found = selection_of(one=SPEECH)
    utterances = [
        scored("a", "paired", flags=(CheckFlag("quiet", "-60 dB"),)),
        scored("b", "paired", flags=(CheckFlag("quiet", "-70 dB"),)),
        scored("c", "paired", unchecked=(CheckFlag("quiet", "it is empty"),)),
    ]
    found.skip_unscored({"one": utterances})
    assert found.count_flags("one", [one.flags for one in utterances]) == {"quiet": 2}
    assert found.count_flags("one", [(), ()]) == {"quiet": 0}


def test_what_fails_is_logged_with_its_utterances_and_left_out_where_it_always_does(caplog):
    broken = {"failed": (CheckFlag("spoken", "KeyError: 7"), CheckFlag("quiet", "OSError: 5"))}
    found = selection_of(one=SPEECH, two=SPEECH)
    with caplog.at_level("INFO", "arion"):
        found.skip_unscored(
            {
                "one": [scored("a", "spoken", "paired"), scored("b", "paired", **broken)],
                "two": [scored("a", "paired", **broken), scored("b", "paired", **broken)],
            }
        )
    assert "spoken of one: 1 of 2 failed (KeyError: 7): b" in caplog.text
    assert "spoken of one: 1 of 2 have no score" not in caplog.text
    assert "spoken of two: 2 of 2 failed" not in caplog.text
    assert found.skipped["two"]["spoken"] == "it fails: KeyError: 7"
    assert "quiet of one: 1 of 2 failed (OSError: 5): b" in caplog.text
    assert found.skipped["two"]["check quiet"] == "it fails: OSError: 5"
    assert found.count_flags("two", [(), ()]) == {}
    assert found.count_flags("one", [(), ()]) == {"quiet": 0}


def test_a_check_that_applied_to_no_utterance_counts_no_failures(caplog):
    found = selection_of(one=SPEECH)
    with caplog.at_level("INFO", "arion"):
        found.skip_unscored(
            {"one": [scored("a", "paired", unchecked=(CheckFlag("quiet", "needs sound"),))]}
        )
        found.log_skipped()
    assert found.count_flags("one", [()]) == {}
    assert found.skipped["one"]["check quiet"] == "needs sound"
    assert "without check quiet: needs sound" in caplog.text
