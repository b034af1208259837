import json
from pathlib import Path

from models.evaluation.output import tables_of, write_results
from models.evaluation.results import (
    Comparison,
    Evaluation,
    MeanScore,
    System,
    SystemReport,
    mean_scores,
)
from modules.mel import MelConfig
from processors.metrics.records import CheckFlag, MetricValue
from processors.metrics.utterance_scorer import ScoreColumn, UtteranceScores
from utils.files import read_json

MCD = MeanScore("dB", "lower", 5.25, 5.0, 5.5, 20)
WER = MeanScore("%", "lower", 20.0, None, None, 1)


def report(**changes) -> SystemReport:
    return SystemReport(20, 60.0, "", **({"scores": {"mcd": MCD}, "skipped": {}} | changes))


def system(name: str, **changes) -> System:
    return System(name, Path(name), report(**changes), {})


def test_references_have_columns_of_their_own_with_scores_that_only_they_have():
    floor = MeanScore("dB", "lower", 4.5, 4.0, 5.0, 12)
    nats = MeanScore("nats", "lower", 0.25, 0.2, 0.3, 20)
    references = {"copy": {"mel_l1": nats}, "natural": {"mcd": floor}}
    one = system("a", scores={"mcd": MCD, "wer": WER}, references=references)
    assert tables_of(Evaluation((one,), (), MelConfig())).splitlines() == [
        "metric  unit  better  a                copy               natural",
        "mcd     dB    lower   5.25 (5 .. 5.5)  -                  4.5 (4 .. 5, n 12)",
        "wer     %     lower   20 (n 1)         -                  -",
        "mel_l1  nats  lower   -                0.25 (0.2 .. 0.3)  -",
    ]


def test_n_is_shown_where_not_all_utterances_have_a_score():
    silent = system(
        "silent", scores={"mcd": MeanScore("dB", "lower", 0.0, 0.0, 0.0, 2), "wer": WER}
    )
    text = tables_of(Evaluation((silent, system("rec")), (), MelConfig()))
    assert text.splitlines() == [
        "metric  unit  better  silent           rec",
        "mcd     dB    lower   0 (0 .. 0, n 2)  5.25 (5 .. 5.5)",
        "wer     %     lower   20 (n 1)         -",
    ]


def test_no_recordings_have_no_failures():
    one = system("a", flags={"dc": 1})
    assert tables_of(Evaluation((one,), (), MelConfig())).splitlines()[-2:] == [
        "failures  a",
        "dc        1 of 20",
    ]


def test_unchecked_utterances_are_not_counted_as_good():
    skipped_check = UtteranceScores("u", 1.0, {}, unchecked=(CheckFlag("words", "no text"),))
    one = System("a", Path("a"), report(flags={"words": 0, "dc": 1}), {"u": skipped_check})
    assert tables_of(Evaluation((one,), (), MelConfig())).splitlines()[-2:] == [
        "words     0 of 19",
        "dc        1 of 20",
    ]


def test_a_single_system_has_a_table_and_its_failures():
    one = system("a", flags={"silence": 2, "dc": 0}, recorded_flags={"silence": 1, "dc": 0})
    natural = System("natural", Path("n"), report(), {}, is_reference=True)
    evaluation = Evaluation((one,), (), MelConfig(), references=(natural,))
    assert tables_of(evaluation).splitlines() == [
        "metric  unit  better  a",
        "mcd     dB    lower   5.25 (5 .. 5.5)",
        "",
        "failures  a        recordings",
        "silence   2 of 20  1 of 20",
        "dc        0 of 20  0 of 20",
    ]


def test_systems_are_compared_in_plain_words():
    differences = {
        "mcd": MeanScore("dB", "lower", -0.5, -0.75, -0.25, 20),
        "mstft": MeanScore("", "lower", 0.5, -0.5, 1.5, 20),
        "rate": MeanScore("", "", 0.25, 0.2, 0.3, 20),
        "stoi": MeanScore("", "higher", 0.25, 0.2, 0.3, 5),
    }
    natural = {"natural": {"mcd": MeanScore("dB", "lower", 4.5, 4.0, 5.0, 12)}}
    first = system("a", references=natural)
    second = system("b", scores={"mcd": MCD, "wer": WER}, references=natural)
    comparisons = (Comparison("a", "b", differences),)
    text = tables_of(Evaluation((first, second), (), MelConfig(), comparisons))
    assert text.splitlines() == [
        "metric  unit  better  a                b                natural",
        "mcd     dB    lower   5.25 (5 .. 5.5)  5.25 (5 .. 5.5)  4.5 (4 .. 5, n 12)",
        "wer     %     lower   -                20 (n 1)         -",
        "",
        "a minus b, by utterance",
        "metric  difference  95% interval    unit  n   a is",
        "mcd     -0.5        -0.75 .. -0.25  dB    20  better",
        "mstft   +0.5        -0.5 .. 1.5           20  no clear difference",
        "rate    +0.25       0.2 .. 0.3            20  differs",
        "stoi    +0.25       0.2 .. 0.3            5   too few utterances to say",
    ]


def test_files_say_what_the_table_says_and_more(tmp_path):
    value = {"mel_l1": MetricValue(0.12345678, 7), "wer": MetricValue(50.0, 2, "hello word")}
    flags = (CheckFlag("silence", "2 s of it"),), (CheckFlag("dc", "an offset"),)
    skipped_check = (CheckFlag("words", "no text"),)
    failed = (CheckFlag("pesq", "ValueError: no"),)
    scored = [UtteranceScores("a", 1.23456, value, *flags, skipped_check, failed)]
    nats, percent = ScoreColumn("mel_l1", "nats", "lower"), ScoreColumn("wer", "%", "lower")
    scores = mean_scores([nats, percent], scored)
    report = SystemReport(
        1,
        1.235,
        "org/hifigan",
        scores,
        {"pesq": "no"},
        {"silence": 1},
        {"silence": 0},
        {"natural": {"wer": scores["wer"]}},
    )
    one = System("a", tmp_path, report, {"a": scored[0]})
    write_results(Evaluation((one,), (), MelConfig()))
    assert [json.loads(row) for row in (tmp_path / "scores.jsonl").read_text().splitlines()] == [
        {
            "id": "a",
            "seconds": 1.2346,
            "mel_l1": 0.123457,
            "wer": 50.0,
            "weights": {"mel_l1": 7, "wer": 2},
            "notes": {"wer": "hello word"},
            "flags": {"silence": "2 s of it"},
            "recorded_flags": {"dc": "an offset"},
            "unchecked": {"words": "no text"},
            "failed": {"pesq": "ValueError: no"},
        }
    ]
    whole = json.loads((tmp_path / "scores.json").read_text())
    assert whole["scores"]["wer"] == {
        "unit": "%", "better": "lower", "mean": 50.0, "low": None, "high": None, "n": 1,
    }  # fmt: skip
    assert whole["references"]["natural"]["wer"] == whole["scores"]["wer"]
    assert whole | {"scores": {}, "references": {}} == {
        "confidence": 0.95,
        "utterances": 1,
        "seconds": 1.235,
        "vocoder": "org/hifigan",
        "scores": {},
        "skipped": {"pesq": "no"},
        "flags": {"silence": 1},
        "recorded_flags": {"silence": 0},
        "references": {},
    }


def test_the_file_of_a_comparison_has_folders_and_verdicts(tmp_path):
    differences = {"wer": MeanScore("%", "lower", -5.0, -6.0, -4.5, 50)}
    systems = tuple(System(name, tmp_path / name, report(scores={}), {}) for name in ("b", "a"))
    comparisons = (Comparison("b", "a", differences),)
    write_results(Evaluation(systems, (), MelConfig(), comparisons, tmp_path))
    written = read_json(tmp_path / "comparison.json")
    assert written["confidence"] == 0.95
    assert written["systems"]["b"] == {"folder": str(tmp_path / "b"), "means": {}}
    (pair,) = written["comparisons"]
    assert (pair["first"], pair["second"]) == ("b", "a")
    assert pair["differences"] == {
        "wer": {
            "unit": "%", "better": "lower", "mean": -5.0, "low": -6.0, "high": -4.5, "n": 50,
            "first_is": "better",
        }
    }  # fmt: skip
