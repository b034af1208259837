import mmap
import subprocess
import sys

import numpy as np
import pytest
import torch

from models.programs.benchmark import results
from models.programs.benchmark.results import Call, Measurement, Result, Subject, Work, measure

WORK = Work(utterances=2, frames=100, cells=125, audio_s=1.0)
CPU = torch.device("cpu")


def measurement(seconds, work=WORK):
    return Measurement(9.0, [Call(2 * s, s, work) for s in seconds], 512.0)


def test_rates_are_of_cpu_time_or_of_elapsed_time_and_calls_without_frames_have_none():
    figures = results.figures_of(measurement([1.0, 3.0]), on_cpu=True)
    expected = {"batch": 2, "real-time factor": 2, "frames/s": 50, "utterances/s": 1}
    expected |= {"padding, %": 20, "peak MiB": 512}
    expected |= {"p50, s": 2, "p90, s": 2.8, "p99, s": 2.98, "first, s": 9}
    assert figures == pytest.approx(expected)
    elapsed = results.figures_of(measurement([1.0, 3.0]), on_cpu=False)
    assert (elapsed["frames/s"], elapsed["p50, s"]) == (25, 4)
    without = results.figures_of(measurement([1.0], Work()), on_cpu=True)
    assert list(without) == ["p50, s", "p90, s", "p99, s", "first, s"]


def test_the_ratio_is_of_medians_per_frame():
    slow, fast = measurement([4, 4, 40, 4, 4, 4]), measurement([2, 2, 2, 2, 2, 2])
    figures = results.ratios_of(slow, fast)
    assert figures["CPU time, first / second"] == figures["elapsed, first / second"] == 2
    assert figures["CPU time: from"] == 2 <= figures["CPU time: to"]
    assert figures["pairs"] == 6
    half = results.ratios_of(slow, measurement([1] * 6, WORK._replace(frames=50)))
    assert half["elapsed, first / second"] == 2


def test_the_interval_holds_the_ratio_of_pairs_that_vary():
    slow, fast = measurement([2, 3, 4, 5, 6, 7]), measurement([1, 1.5, 2, 2.5, 3, 3.5])
    figures = results.ratios_of(slow, fast)
    low, high = figures["CPU time: from"], figures["CPU time: to"]
    assert low == high == 2  # the load of a pair is that of both
    alone = results.ratios_of(slow, measurement([2] * 6))
    assert alone["CPU time: from"] < 2.25 < alone["CPU time: to"]


def test_each_mode_has_a_table():
    measured = [
        Result("training", "hifigan", "precision=fp32", {"frames/s": 12345.6, "p50, s": 0.12345}),
        Result("speech", "kathleen", "text", {"batch": 1.0}),
    ]
    assert results.tables_of([vars(result) for result in measured]) == (
        "| training | setting | frames/s | p50, s |\n"
        "| --- | --- | ---: | ---: |\n"
        "| hifigan | `precision=fp32` | 12,346 | 0.123 |\n"
        "\n"
        "| speech | setting | batch |\n"
        "| --- | --- | ---: |\n"
        "| kathleen | `text` | 1 |\n"
    )


def subject(function):
    return Subject(lambda: function() or WORK, CPU)


def test_a_call_takes_cpu_time_and_elapsed_time():
    (busy,) = measure([subject(lambda: sum(range(300_000)) and None)], 0, 1)
    (call,) = busy.calls
    assert call.work == WORK
    assert 0.0005 < call.cpu_s <= call.wall_s + 0.01


def test_the_cpu_time_of_a_command_counts():
    command = [sys.executable, "-c", "sum(range(2_000_000))"]
    (started,) = measure([subject(lambda: subprocess.run(command, check=True) and None)], 0, 1)
    assert started.calls[0].cpu_s > 0.01


def test_subjects_are_called_in_turn_and_each_comes_first_as_often():
    order = []
    first, second = measure([subject(lambda n=n: order.append(n)) for n in "ab"], 1, 3)
    assert "".join(order) == "abbaabba"
    assert (len(first.calls), len(second.calls)) == (3, 3)


def test_each_subject_has_its_threads():
    threads = []
    subjects = [Subject(lambda: threads.append(torch.get_num_threads()) or WORK, CPU, n)
                for n in (1, 2)]  # fmt: skip
    before = torch.get_num_threads()
    measure(subjects, 0, 1)
    torch.set_num_threads(before)
    assert threads == [1, 2]


def fill_memory(n_mib):
    """Writes to new pages: free memory that the process still holds would not raise its peak."""
    np.frombuffer(mmap.mmap(-1, n_mib * 2**20), np.uint8)[:] = 1


def test_peak_memory_is_of_what_the_calls_allocated():
    fill_memory(200)
    (small,) = measure([subject(lambda: None)], 0, 1)
    (large,) = measure([subject(lambda: fill_memory(80))], 0, 1)
    assert large.peak_mib - small.peak_mib == pytest.approx(80, abs=16)
