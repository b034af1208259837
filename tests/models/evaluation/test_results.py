import math
import time
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from models.evaluation import results
from models.evaluation.results import MeanScore, System, compare, estimate, mean_scores, verdict_of
from processors.metrics.records import MetricValue
from processors.metrics.utterance_scorer import ScoreColumn, UtteranceScores

NATS = ScoreColumn("mel_l1", "nats", "lower")
WER = ScoreColumn("wer", "%", "lower")
MOS = ScoreColumn("dnsmos", "MOS", "higher")
RATE = ScoreColumn("rate", "", "")


def mean_of(column: ScoreColumn, values: list[MetricValue]) -> MeanScore:
    scored = [UtteranceScores(str(n), 1.0, {column.name: value}) for n, value in enumerate(values)]
    return mean_scores([column], scored)[column.name]


def test_the_interval_of_many_values_is_that_of_their_mean():
    generator = np.random.default_rng(1)
    values = [MetricValue(x) for x in generator.normal(5, 2, size=400)]
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
    values = [MetricValue(100 * errors / words, words) for errors, words in errors_and_words]
    score = mean_of(WER, values)
    assert score.mean == pytest.approx(100 * 4 / 44, abs=1e-5)
    assert 0 <= score.low < score.mean < score.high <= 75


def test_equal_values_are_certain_and_one_says_nothing_of_others():
    certain = mean_of(WER, [MetricValue(20.0, 3), MetricValue(20.0, 5)])
    assert (certain.low, certain.mean, certain.high) == (20.0, 20.0, 20.0)
    alone = mean_of(WER, [MetricValue(20.0)])
    assert (alone.low, alone.mean, alone.high, alone.n) == (None, 20.0, None, 1)


def test_what_has_no_value_is_not_counted():
    scored = [
        UtteranceScores("a", 1.0, {"mel_l1": MetricValue(1.0)}),
        UtteranceScores("b", 1.0, {"mel_l1": MetricValue(2.0), "wer": MetricValue(50.0, 2)}),
    ]
    scores = mean_scores([NATS, WER, ScoreColumn("pesq", "MOS", "higher")], scored)
    means = [(name, score.mean, score.n) for name, score in scores.items()]
    assert means == [("mel_l1", 1.5, 2), ("wer", 50.0, 1)]


def system(name: str, **values: dict[str, MetricValue]) -> System:
    """Utterances with these values, by column."""
    ids = sorted({id for by_id in values.values() for id in by_id})
    scored = {
        id: UtteranceScores(
            id, 1.0, {name: by_id[id] for name, by_id in values.items() if id in by_id}
        )
        for id in ids
    }
    return System(name, Path(name), results.SystemReport(len(ids), 1.0, "", {}, {}), scored)


def noisy(seed: int, mean: float, n: int = 50) -> dict[str, MetricValue]:
    """Values around a mean, on top of what all find hard."""
    hard = np.random.default_rng(0).normal(0, 10, n)
    own = np.random.default_rng(seed).normal(mean, 1, n)
    return {f"{i:03d}": MetricValue(float(value)) for i, value in enumerate(hard + own)}


def test_every_two_systems_are_compared_by_utterance():
    systems = [system(name, wer=noisy(seed, seed)) for seed, name in enumerate("abc", 1)]
    comparisons = compare(systems, [WER])
    assert [(one.first, one.second) for one in comparisons] == [("a", "b"), ("a", "c"), ("b", "c")]
    for one, other, comparison in zip((0, 0, 1), (1, 2, 2), comparisons, strict=True):
        first_values, second_values = (
            np.array([scored.values["wer"].value for scored in systems[which].scored.values()])
            for which in (one, other)
        )
        difference = comparison.differences["wer"]
        assert difference.mean == pytest.approx((first_values - second_values).mean(), abs=1e-6)
        margin = 1.96 * (first_values - second_values).std() / np.sqrt(50)
        assert difference.low == pytest.approx(difference.mean - margin, abs=0.15)
        assert difference.high == pytest.approx(difference.mean + margin, abs=0.15)
        assert (difference.n, difference.unit, difference.better) == (50, "%", "lower")
        assert verdict_of(difference) == "better"


def test_differences_of_words_count_words():
    values = {"x": MetricValue(50.0, 2), "y": MetricValue(10.0, 10), "z": MetricValue(0.0, 3)}
    first = system("a", wer=values)
    second = system("b", wer={"x": MetricValue(0.0, 2), "y": MetricValue(20.0, 10)})
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
    score = MeanScore(column.unit, column.better, sum(ends) / 2, *ends, n=6)
    assert verdict_of(score) == verdict


@pytest.mark.parametrize("n", [1, 2, 5])
def test_few_utterances_that_say_the_same_say_nothing(n):
    first, second = (system(name, wer=noisy(1, mean, n)) for name, mean in (("a", 0), ("b", 50)))
    (comparison,) = compare([first, second], [WER])
    assert comparison.differences["wer"].mean == pytest.approx(-50)
    assert verdict_of(comparison.differences["wer"]) == "too few"


def one(values, weights=None):
    """The estimate of these values, by default with equal weights."""
    values = np.array(values, dtype=float)
    return estimate((values, np.ones_like(values) if weights is None else np.array(weights)))


def test_a_mean_is_weighted_and_leaves_out_what_is_missing():
    score = one([1.0, np.nan, 4.0], [1, 50, 2])
    assert (score.mean, score.n) == (pytest.approx(3.0), 2)
    assert one([np.nan, np.nan]) is None
    assert one([2.0, np.nan]) == MeanScore("", "", 2.0, None, None, 1)


def test_the_interval_is_that_of_scipy():
    values = np.random.default_rng(2).gamma(2.0, size=200)
    reference = stats.bootstrap(
        (values,), np.mean, n_resamples=20000, method="percentile", random_state=1
    ).confidence_interval
    score = one(values)
    width = reference.high - reference.low
    assert score.low == pytest.approx(reference.low, abs=0.05 * width)
    assert score.high == pytest.approx(reference.high, abs=0.05 * width)


@pytest.mark.slow
def test_intervals_hold_the_true_mean_as_often_as_they_say():
    generator = np.random.default_rng(3)
    values = generator.exponential(size=(400, 100))  # 400 experiments with 100 utterances
    weights = generator.uniform(1, 5, size=values.shape)
    estimates = [estimate(row) for row in zip(values, weights, strict=True)]
    held = np.mean([score.low <= 1.0 <= score.high for score in estimates])
    assert 0.92 <= held <= 0.97


@pytest.mark.parametrize("n", [12, *(pytest.param(n, marks=pytest.mark.slow) for n in (20, 50))])
def test_intervals_of_few_utterances_are_not_too_narrow(n):
    values = np.random.default_rng(9).normal(size=(250, n))
    held = np.mean([score.low <= 0 <= score.high for score in map(one, values)])
    assert 0.92 <= held <= 0.97


@pytest.mark.parametrize("n", [3, 12, 100])
def test_the_interval_is_as_wide_as_students(n):
    """Of many resamples of normal values; with three, the extremes are all there is."""
    values = stats.norm.ppf((np.arange(n) + 0.5) / n)
    score = one(values)
    half = stats.t.ppf(0.975, n - 1) * values.std(ddof=1) / np.sqrt(n)
    expected = min(half, values.max())
    assert score.high == pytest.approx(expected, rel=0.12)
    assert score.low == pytest.approx(-expected, rel=0.12)


@pytest.mark.parametrize("n", [100, pytest.param(400, marks=pytest.mark.slow)])
def test_intervals_of_differences_hold_the_true_one_as_often_as_they_say(n):
    generator = np.random.default_rng(4)
    shape = (n, 100)
    hard = 5 * generator.exponential(size=shape)  # what both find hard
    first_values = hard + generator.normal(0.5, 1, size=shape)
    second_values = hard + generator.normal(0.0, 1, size=shape)
    weights = np.ones(shape)
    rows = zip(first_values, weights, second_values, weights, strict=True)
    estimates = [estimate(row[:2], row[2:]) for row in rows]
    held = np.mean([score.low <= 0.5 <= score.high for score in estimates])
    assert 0.92 <= held <= 0.97
    found = np.mean([score.low > 0 for score in estimates])
    assert found > 0.9  # though either mean alone is uncertain by 1


def test_a_paired_interval_is_that_of_the_differences():
    generator = np.random.default_rng(5)
    first_values, second_values = generator.normal(size=(2, 60))
    weights = generator.integers(1, 20, size=60).astype(float)
    paired = estimate((first_values, weights), (second_values, weights))
    of_differences = estimate((first_values - second_values, weights))
    assert vars(paired) == pytest.approx(vars(of_differences), abs=1e-12)


def test_a_difference_is_that_of_the_means_also_where_weights_differ():
    first_values, second_values = np.array([1.0, 5.0, 9.0]), np.array([2.0, 2.0, np.nan])
    first, second = np.array([3.0, 1.0, 1.0]), np.array([1.0, 1.0, 1.0])
    score = estimate((first_values, first), (second_values, second))
    assert score.n == 2  # the third has no partner
    assert score.mean == pytest.approx((3 * 1 + 5) / 4 - 2)


def test_one_that_is_always_better_is_surely_better():
    values, ones = np.random.default_rng(6).normal(size=20), np.ones(20)
    score = estimate((values + 0.25, ones), (values, ones))
    assert (score.mean, score.low, score.high) == pytest.approx((0.25, 0.25, 0.25))
    nothing = estimate((values, ones), (values, ones))
    assert (nothing.mean, nothing.low, nothing.high) == (0.0, 0.0, 0.0)


def test_a_value_of_few_utterances_has_an_interval():
    values = np.full(1000, np.nan)
    values[[3, 500]] = 1.0, 3.0
    assert one(values) == MeanScore("", "", 2.0, 1.0, 3.0, 2)


def test_a_thousand_utterances_and_10_columns_take_little_time():
    values = np.random.default_rng(8).normal(size=(10, 1000))
    start = time.process_time()
    for row in values:
        one(row)
    assert time.process_time() - start < 2
