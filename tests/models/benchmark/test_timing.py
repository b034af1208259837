import subprocess
import sys

import numpy as np
import pytest
import torch

from models.benchmark.timing import Subject, Work, measure

CPU = torch.device("cpu")
WORK = Work(utterances=2, frames=10, cells=12, audio_s=0.1)


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


def test_peak_memory_is_of_what_the_calls_allocated():
    np.ones(200 * 2**20 // 8)
    (small,) = measure([subject(lambda: None)], 0, 1)
    (large,) = measure([subject(lambda: np.ones(80 * 2**20 // 8) is None or None)], 0, 1)
    assert large.peak_mib - small.peak_mib == pytest.approx(80, abs=16)
