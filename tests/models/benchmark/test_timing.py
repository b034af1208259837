import numpy as np
import pytest
import torch

from models.benchmark.timing import (
    Call,
    Measurement,
    PeakMemory,
    Work,
    compare,
    measure,
    measure_in_turn,
    spread,
    timed,
    total,
)

WORK = Work(utterances=2, frames=10, cells=12, samples=2560)


class Counting:
    """A subject that notes its name at each call."""

    device = torch.device("cpu")

    def __init__(self, name="a", order=None):
        self.name, self.order = name, [] if order is None else order

    def step(self):
        self.order.append(self.name)
        return WORK


class Busy(Counting):
    def step(self):
        sum(range(300_000))
        return WORK


def measurement(seconds):
    return Measurement((), tuple(Call(2 * s, s, WORK) for s in seconds), 0.0)


def test_a_call_takes_time_of_the_process_and_elapsed_time():
    call = timed(Busy())
    assert call.work == WORK
    assert 0.0005 < call.cpu_s <= call.wall_s + 0.01


def test_the_warm_up_is_apart_from_the_timed_calls():
    subject = Counting()
    found = measure(subject, warm_up=2, steps=3)
    assert (len(found.warm_up), len(found.calls), len(subject.order)) == (2, 3, 5)
    assert total(found.calls) == Work(6, 30, 36, 7680)


def test_two_subjects_are_called_in_turn_and_each_comes_first_as_often():
    order = []
    first, second = measure_in_turn(Counting("a", order), Counting("b", order), 1, 3)
    assert "".join(order) == "abbaabba"
    assert (len(first.calls), len(second.calls)) == (3, 3)


def test_the_ratio_is_of_medians_per_frame():
    slow, fast = measurement([4, 4, 40, 4, 4, 4]), measurement([2, 2, 2, 2, 2, 2])
    ratio = compare(slow, fast)
    assert (ratio.cpu.mean, ratio.wall.mean, ratio.cpu.n) == (2, 2, 6)
    half = Call(1.0, 1.0, WORK._replace(frames=5))
    assert compare(slow, Measurement((), (half,) * 6, 0.0)).cpu.mean == 2


def test_the_spread_of_values():
    assert spread(list(range(101))) == (50, 50, 90, 99)


def test_peak_memory_is_of_what_was_allocated_since():
    np.ones(40 * 2**20 // 8)
    peak = PeakMemory(torch.device("cpu"))
    before = peak.mib()
    large = np.ones(80 * 2**20 // 8)
    assert peak.mib() - before == pytest.approx(80, abs=16)
    del large
