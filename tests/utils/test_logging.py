import logging
from itertools import count

import pytest

from utils.logging import get_logger, progress, setup_logging


def test_progress_is_a_line_every_ten_seconds_with_rate_and_time_left(caplog):
    caplog.set_level(logging.INFO, "arion")
    times = count(0.0, 0.5)  # half a second for each item
    with progress(200, "utterances", clock=lambda: next(times)) as bar:
        for _ in range(40):
            bar.advance()
    assert caplog.messages == [
        "utterances: 20/200 (10 %), 2.00/s, 0:01:30 left",
        "utterances: 40/200 (20 %), 2.00/s, 0:01:20 left",
    ]


@pytest.mark.parametrize(
    ("total", "initial", "seconds", "n", "line"),
    [
        (100, 60, 4, 40, "utterances: 100/100 (100 %), 10.00/s, 0:00:00 left"),
        (4, 0, 27, 1, "utterances: 1/4 (25 %), 0.04/s, 0:01:21 left"),
        (0, 0, 0, 0, "utterances: 0/0 (0 %)"),
    ],
)
def test_only_new_work_counts_in_the_rate(caplog, total, initial, seconds, n, line):
    caplog.set_level(logging.INFO, "arion")
    times = iter([0, seconds])
    with progress(total, "utterances", initial=initial, clock=lambda: next(times)) as bar:
        bar.advance(n)
    assert caplog.messages == [line]


@pytest.mark.parametrize(("rank", "level"), [("0", logging.INFO), ("3", logging.WARNING)])
def test_only_the_first_process_tells_more_than_warnings(monkeypatch, rank, level):
    monkeypatch.setenv("RANK", rank)
    monkeypatch.setattr(logging.getLogger("arion"), "level", logging.NOTSET)
    setup_logging()
    assert get_logger("models.training.trainer").getEffectiveLevel() == level
