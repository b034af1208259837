"""Counts the answers of a listening test, with 95 % confidence intervals."""

import csv
import io
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from scipy.stats import binomtest, t

from models.programs.compare.listening_test import ANSWERS, Key
from utils.errors import InputError, counted
from utils.files import read_text

COLUMNS = ("test", "listener", "trial", "answer", "seconds")  # of the page
_CONFIDENCE = 0.95
Answers = dict[tuple[str, int], int]  # by listener and number of the trial


def read_answers(paths: Sequence[Path], key: Key) -> Answers:
    """Reads files that listeners downloaded; an InputError names the line of a wrong one."""
    answers: Answers = {}
    for path in paths:
        rows = csv.reader(io.StringIO(read_text(path)), strict=True)
        try:
            if tuple(next(rows, ())) != COLUMNS:
                raise InputError(f"expected the columns {','.join(COLUMNS)}, as the page writes")
            for row in filter(None, rows):
                _add(answers, row, key)
        except (InputError, csv.Error) as error:
            raise InputError(f"{path}, line {max(rows.line_num, 1)}: {error}") from error
    if not answers:
        raise InputError(f"{', '.join(map(str, paths))}: no answers; give the CSV of a listener")
    return answers


def _add(answers: Answers, row: Sequence[str], key: Key) -> None:
    if len(row) != len(COLUMNS):
        raise InputError(f"found {counted(len(row), 'cells')}, expected {len(COLUMNS)}")
    test, listener, trial, answer, _ = row
    if test != key.id:
        raise InputError(f"these are results of the test {test!r}, the key is of {key.id!r}")
    numbers = map(str, range(1, len(key.trials) + 1))
    if trial not in numbers or answer not in [*ANSWERS[key.kind]]:
        raise InputError(
            f"trial {trial!r}, answer {answer!r}; expected a trial from 1 to {len(key.trials)} and"
            f" an answer of {', '.join(ANSWERS[key.kind])}"
        )
    if (listener, int(trial)) in answers:
        raise InputError(
            f"{listener!r} has answered trial {trial} before; give each file once, and each"
            " listener another name"
        )
    answers[listener, int(trial)] = int(answer)


def summary(answers: Answers, key: Key) -> str:
    """Writes the results as a table for people."""
    n_listeners = len({listener for listener, _ in answers})
    total = f"{counted(len(answers), 'answers')} of {counted(n_listeners, 'listeners')}"
    rows = _preferences(answers, key) if key.kind == "preference" else _opinions(answers, key)
    return "\n".join([f"{total}; intervals of 95 %", *rows, ""])


def _preferences(answers: Answers, key: Key) -> Iterator[str]:
    """Yields a line for every two systems; the interval is Wilson's, without the undecided."""
    counts: dict[tuple[str, ...], list[int]] = defaultdict(lambda: [0, 0, 0])
    for (_, number), answer in answers.items():
        _, *systems = key.trials[number - 1]
        pair = tuple(sorted(systems, key=key.systems.index))
        counts[pair][0 if answer == 0 else 1 + pair.index(systems[answer - 1])] += 1
    for (first, second), (n_neither, n_first, n_second) in sorted(counts.items()):
        line = f"{first} {n_first}, {second} {n_second}, no preference {n_neither}"
        if n := n_first + n_second:
            ends = binomtest(n_first, n).proportion_ci(_CONFIDENCE, "wilson")
            share = f"{first} preferred in {100 * n_first / n:.1f} %"
            line += f": {share} ({100 * ends.low:.1f} to {100 * ends.high:.1f} %)"
        yield line


def _opinions(answers: Answers, key: Key) -> Iterator[str]:
    """Yields a line for each system; the interval of the mean is Student's."""
    scores: dict[str, list[int]] = {system: [] for system in key.systems}
    for (_, number), answer in answers.items():
        scores[key.trials[number - 1][1]].append(answer)
    for system, given in scores.items():
        line, n = f"{system}: {counted(len(given), 'opinions')}", len(given)
        if n:
            line += f", mean {np.mean(given):.2f}"
        if n > 1:
            half = t.ppf((1 + _CONFIDENCE) / 2, n - 1) * np.std(given, ddof=1) / np.sqrt(n)
            line += f" ({np.mean(given) - half:.2f} to {np.mean(given) + half:.2f})"
        yield line
