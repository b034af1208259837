import pytest

from models.benchmark.results import Result, figures_of, ratios_of, tables_of
from models.benchmark.timing import Call, Measurement, Work

WORK = Work(utterances=2, frames=100, cells=125, audio_s=1.0)


def measurement(seconds, work=WORK):
    return Measurement(9.0, [Call(2 * s, s, work) for s in seconds], 512.0)


def test_rates_are_of_cpu_time_or_of_elapsed_time():
    figures = figures_of(measurement([1.0, 3.0]), on_cpu=True)
    assert figures == pytest.approx(
        {
            "batch": 2,
            "real-time factor": 2,
            "frames/s": 50,
            "utterances/s": 1,
            "padding, %": 20,
            "peak MiB": 512,
            "p50, s": 2,
            "p90, s": 2.8,
            "p99, s": 2.98,
            "first, s": 9,
        }
    )
    elapsed = figures_of(measurement([1.0, 3.0]), on_cpu=False)
    assert (elapsed["frames/s"], elapsed["p50, s"]) == (25, 4)


def test_calls_without_frames_have_times_only():
    figures = figures_of(measurement([1.0], Work()), on_cpu=True)
    assert list(figures) == ["p50, s", "p90, s", "p99, s", "first, s"]


def test_the_ratio_is_of_medians_per_frame():
    slow, fast = measurement([4, 4, 40, 4, 4, 4]), measurement([2, 2, 2, 2, 2, 2])
    figures = ratios_of(slow, fast)
    assert figures["CPU time, first / second"] == figures["elapsed, first / second"] == 2
    assert figures["CPU time: from"] == 2 <= figures["CPU time: to"]
    assert figures["pairs"] == 6
    half = ratios_of(slow, measurement([1] * 6, WORK._replace(frames=50)))
    assert half["elapsed, first / second"] == 2


def test_the_interval_holds_the_ratio_of_pairs_that_vary():
    slow, fast = measurement([2, 3, 4, 5, 6, 7]), measurement([1, 1.5, 2, 2.5, 3, 3.5])
    figures = ratios_of(slow, fast)
    low, high = figures["CPU time: from"], figures["CPU time: to"]
    assert low == high == 2  # the load of a pair is that of both
    alone = ratios_of(slow, measurement([2] * 6))
    assert alone["CPU time: from"] < 2.25 < alone["CPU time: to"]


def test_each_mode_has_a_table():
    results = [
        Result("training", "hifigan", "precision=fp32", {"frames/s": 12345.6, "p50, s": 0.12345}),
        Result("speech", "kathleen", "text", {"batch": 1.0}),
    ]
    assert tables_of([vars(result) for result in results]) == (
        "| training | setting | frames/s | p50, s |\n"
        "| --- | --- | ---: | ---: |\n"
        "| hifigan | `precision=fp32` | 12,346 | 0.123 |\n"
        "\n"
        "| speech | setting | batch |\n"
        "| --- | --- | ---: |\n"
        "| kathleen | `text` | 1 |\n"
    )
