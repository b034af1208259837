import json
import math

import numpy as np
import pytest

from models.evaluation.scores import Report, Score, summarise, write_report
from models.evaluation.tables import table_of
from processors.scoring.checks import Flag
from processors.scoring.metrics import Value
from processors.scoring.utterance_scorer import ScoreColumn, UtteranceScores

NATS = ScoreColumn("mel_l1", "nats", "lower")
WER = ScoreColumn("wer", "%", "lower")


def mean_of(column: ScoreColumn, values: list[Value]) -> Score:
    scored = [UtteranceScores(str(n), 1.0, {column.name: value}) for n, value in enumerate(values)]
    return summarise([column], scored)[column.name]


def test_the_interval_of_many_values_is_that_of_their_mean():
    generator = np.random.default_rng(1)
    values = [Value(x) for x in generator.normal(5, 2, size=400)]
    score = mean_of(NATS, values)
    numbers = [value.value for value in values]
    assert score.mean == pytest.approx(np.mean(numbers), abs=1e-6)
    margin = 1.96 * np.std(numbers) / math.sqrt(400)
    assert score.low == pytest.approx(score.mean - margin, abs=0.03)
    assert score.high == pytest.approx(score.mean + margin, abs=0.03)
    assert (score.n, score.unit, score.better) == (400, "nats", "lower")
    assert mean_of(NATS, values) == score


def test_a_word_error_counts_words_and_not_utterances():
    errors_and_words = [(0, 10), (3, 4), (1, 30)]
    values = [Value(100 * errors / words, words) for errors, words in errors_and_words]
    score = mean_of(WER, values)
    assert score.mean == pytest.approx(100 * 4 / 44, abs=1e-5)
    assert 0 <= score.low < score.mean < score.high <= 75


def test_equal_values_are_certain_and_one_says_nothing_of_others():
    certain = mean_of(WER, [Value(20.0, 3), Value(20.0, 5)])
    assert (certain.low, certain.mean, certain.high) == (20.0, 20.0, 20.0)
    alone = mean_of(WER, [Value(20.0)])
    assert (alone.low, alone.mean, alone.high, alone.n) == (None, 20.0, None, 1)


def test_what_has_no_value_is_not_counted():
    scored = [
        UtteranceScores("a", 1.0, {"mel_l1": Value(1.0)}),
        UtteranceScores("b", 1.0, {"mel_l1": Value(2.0), "wer": Value(50.0, 2)}),
    ]
    scores = summarise([NATS, WER, ScoreColumn("pesq", "MOS", "higher")], scored)
    assert [(name, score.mean, score.n) for name, score in scores.items()] == [
        ("mel_l1", 1.5, 2),
        ("wer", 50.0, 1),
    ]


def test_the_table_has_a_line_for_each_score():
    scores = {
        "mel_l1": mean_of(NATS, [Value(0.25), Value(0.25)]),
        "wer_recorded": mean_of(ScoreColumn("wer_recorded", "%", ""), [Value(20.0)]),
    }
    assert table_of(scores).splitlines() == [
        "metric        mean  95% interval  unit  n  better",
        "mel_l1        0.25  0.25 .. 0.25  nats  2  lower",
        "wer_recorded  20                  %     1",
    ]


def test_files_say_what_the_table_says_and_more(tmp_path):
    value = {"mel_l1": Value(0.12345678, 7), "wer": Value(50.0, 2, "hello word")}
    flags = (Flag("silence", "2 s of it"),), (Flag("dc", "an offset"),)
    unjudged = (Flag("words", "no text"),)
    failed = (Flag("pesq", "ValueError: no"),)
    scored = [UtteranceScores("a", 1.23456, value, *flags, unjudged, failed)]
    scores = summarise([NATS, WER], scored)
    report = Report(
        1,
        1.235,
        "org/hifigan",
        scores,
        {"pesq": "no"},
        {"silence": 1},
        {"silence": 0},
        {"natural": {"wer": scores["wer"]}},
    )
    write_report(tmp_path, report, scored)
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
            "unjudged": {"words": "no text"},
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
