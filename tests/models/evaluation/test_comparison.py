from pathlib import Path

import numpy as np
import pytest

from models.evaluation.comparison import compare, verdict_of, write_comparison
from models.evaluation.scores import Evaluation, Report, Score, System
from modules.mel import MelConfig
from processors.scoring.metrics import Value
from processors.scoring.utterance_scorer import ScoreColumn, UtteranceScores
from utils.files import read_json

WER = ScoreColumn("wer", "%", "lower")
MOS = ScoreColumn("dnsmos", "MOS", "higher")
RATE = ScoreColumn("rate", "", "")


def system(name: str, **values: dict[str, Value]) -> System:
    """Utterances with these values, by column."""
    ids = sorted({id for by_id in values.values() for id in by_id})
    scored = {
        id: UtteranceScores(
            id, 1.0, {name: by_id[id] for name, by_id in values.items() if id in by_id}
        )
        for id in ids
    }
    return System(name, Path(name), Report(len(ids), 1.0, "", {}, {}), scored)


def noisy(seed: int, mean: float, n: int = 50) -> dict[str, Value]:
    """Values around a mean, on top of what all find hard."""
    hard = np.random.default_rng(0).normal(0, 10, n)
    own = np.random.default_rng(seed).normal(mean, 1, n)
    return {f"{i:03d}": Value(float(value)) for i, value in enumerate(hard + own)}


def test_every_two_systems_are_compared_by_utterance():
    systems = [system(name, wer=noisy(seed, seed)) for seed, name in enumerate("abc", 1)]
    comparisons = compare(systems, [WER])
    assert [(one.first, one.second) for one in comparisons] == [("a", "b"), ("a", "c"), ("b", "c")]
    for one, other, comparison in zip((0, 0, 1), (1, 2, 2), comparisons, strict=True):
        ours, theirs = (
            np.array([scored.values["wer"].value for scored in systems[which].scored.values()])
            for which in (one, other)
        )
        difference = comparison.differences["wer"]
        assert difference.mean == pytest.approx((ours - theirs).mean(), abs=1e-6)
        margin = 1.96 * (ours - theirs).std() / np.sqrt(50)
        assert difference.low == pytest.approx(difference.mean - margin, abs=0.15)
        assert difference.high == pytest.approx(difference.mean + margin, abs=0.15)
        assert (difference.n, difference.unit, difference.better) == (50, "%", "lower")
        assert verdict_of(difference) == "better"


def test_differences_of_words_count_words():
    first = system("a", wer={"x": Value(50.0, 2), "y": Value(10.0, 10), "z": Value(0.0, 3)})
    second = system("b", wer={"x": Value(0.0, 2), "y": Value(20.0, 10)})
    (comparison,) = compare([first, second], [WER, MOS])
    assert set(comparison.differences) == {"wer"}
    difference = comparison.differences["wer"]
    assert difference.mean == pytest.approx((1 + 1) / 12 * 100 - 2 / 12 * 100, abs=1e-6)
    assert difference.n == 2


@pytest.mark.parametrize(
    ("column", "ends", "verdict"),
    [
        (WER, (-2.0, -1.0), "better"),
        (WER, (1.0, 2.0), "worse"),
        (MOS, (1.0, 2.0), "better"),
        (MOS, (-2.0, -1.0), "worse"),
        (RATE, (1.0, 2.0), "differs"),
        (WER, (-1.0, 2.0), "unclear"),
        (WER, (0.0, 0.0), "unclear"),
    ],
)
def test_a_difference_is_clear_where_its_interval_leaves_out_zero(column, ends, verdict):
    score = Score(column.unit, column.better, sum(ends) / 2, *ends, n=6)
    assert verdict_of(score) == verdict


@pytest.mark.parametrize("n", [1, 2, 5])
def test_few_utterances_that_say_the_same_say_nothing(n):
    first, second = (system(name, wer=noisy(1, mean, n)) for name, mean in (("a", 0), ("b", 50)))
    (comparison,) = compare([first, second], [WER])
    assert comparison.differences["wer"].mean == pytest.approx(-50)
    assert verdict_of(comparison.differences["wer"]) == "too few"


def test_the_file_says_which_folders_and_how_sure_it_is(tmp_path):
    systems = [system(name, wer=noisy(seed, 5 * seed)) for seed, name in enumerate("ba", 1)]
    evaluation = Evaluation(tuple(systems), (), MelConfig(), compare(systems, [WER]))
    write_comparison(tmp_path, evaluation)
    written = read_json(tmp_path / "comparison.json")
    assert written["confidence"] == 0.95
    assert written["systems"]["b"] == {"folder": "b", "means": {}}
    (pair,) = written["comparisons"]
    assert (pair["first"], pair["second"]) == ("b", "a")
    assert pair["differences"]["wer"]["first_is"] == "better"
    assert pair["differences"]["wer"]["n"] == 50
    assert pair["differences"]["wer"]["high"] < -4
