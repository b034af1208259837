"""Blind listening tests: a page with levelled copies, its key, and what the answers say."""

import csv
import hashlib
import io
import json
import math
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Literal

import numpy as np
import soundfile
from scipy.stats import binomtest, t

from preprocessors.audio_folder import SUFFIXES
from processors.audio.loudness import LOUDNESS_LUFS, loudness, mastering_gain_db
from processors.audio.streams import write_audio
from utils.config import build_complete
from utils.errors import InputError, counted, listed
from utils.files import read_json, read_text, write_json, write_text
from utils.logging import get_logger

KEY = "key.json"
ANSWERS = {"preference": "012", "opinion": "12345"}  # 0: no preference
COLUMNS = ("test", "listener", "trial", "answer", "seconds")  # of the page
_CONFIDENCE = 0.95
Answers = dict[tuple[str, int], int]  # by listener and number of the trial
_PAGE = Path(__file__).with_name("page.html")


@dataclass(frozen=True)
class Key:
    """What the page does not tell."""

    id: str  # of the test, in all results
    kind: Literal["preference", "opinion"]
    systems: tuple[str, ...]
    # from number 1 on: name of the clip, then the systems in the order of the page, two or one
    trials: tuple[tuple[str, ...], ...]


def make_test(
    folders: Sequence[Path],
    out: Path,
    kind: Literal["preference", "opinion"],
    n_clips: int | None = None,
    seed: int = 0,
) -> Key:
    """Writes `out/page`, for listeners, and `out/key.json`. Equal inputs give equal files.

    Args:
        folders: Recordings or speech of a system each; clips with the same name are compared.
        out: New or empty.
        kind: "preference" between every two systems, or "opinion" of each alone.
        n_clips: Clips drawn at random; None: all.
        seed: Seed that draws the clips and orders the trials and the systems in each.

    Raises:
        InputError: If the folders share no name, or a clip is silent, not audio, or too short.
    """
    if out.exists() and any(out.iterdir()):
        raise InputError(f"{out} is not empty; choose a new folder")
    clips = {str(folder): _clips(folder) for folder in folders}
    if len(clips) < len(folders):
        raise InputError("two of the folders are the same; give different ones")
    names = sorted(set.intersection(*(set(files) for files in clips.values())))
    if (n := n_clips or len(names)) > len(names) or not names:
        fault = f"{', '.join(clips)} have {len(names)} clips of the same name"
        expected = f"expected at least {n or 1}: names without suffix must be the same"
        raise InputError(f"{fault}; {expected}")
    if others := sorted(set().union(*clips.values()) - set(names)):
        get_logger(__name__).warning("not in all folders, left out: %s", listed(others))
    trials = _trials(tuple(clips), names, kind, n, random.Random(seed))
    heard = {(system, name): clips[system][name] for name, *row in trials for system in row}
    gains = _gains(heard)
    for number, (name, *compared) in enumerate(trials, 1):
        for side, system in enumerate(compared, 1):
            wav, rate = _read(heard[system, name])
            path = out / "page" / f"{number:04}_{side}.wav"
            write_audio(path, [gains[system, name] * wav], rate)
    digest = hashlib.sha256(json.dumps((kind, [*clips], trials)).encode()).hexdigest()[:12]
    key = Key(digest, kind, tuple(clips), tuple(trials))
    test = json.dumps({"id": digest, "kind": kind, "n_trials": len(trials)})
    write_text(out / "page" / "index.html", read_text(_PAGE).replace("{{test}}", test))
    write_json(out / KEY, asdict(key))
    return key


def read_key(path: Path) -> Key:
    """Reads the key of a test."""
    return build_complete(Key, read_json(path), path)


def _clips(folder: Path) -> dict[str, Path]:
    """Lists the audio files of a folder by name without suffix."""
    clips: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() in SUFFIXES and not path.name.startswith("."):
            if other := clips.get(path.stem):
                raise InputError(f"{other} and {path} have the same name; remove one of them")
            clips[path.stem] = path
    return clips


def _trials(
    systems: Sequence[str], names: Sequence[str], kind: str, n_clips: int, rng: random.Random
) -> list[tuple[str, ...]]:
    """Draws clips and their order; each system of a pair comes first in half of its trials."""
    drawn = rng.sample(names, n_clips)
    trials: list[tuple[str, ...]] = []
    for compared in combinations(systems, 2 if kind == "preference" else 1):
        orders = [compared[:: (-1) ** n] for n in range(n_clips)]
        rng.shuffle(orders)
        trials += [(name, *order) for name, order in zip(drawn, orders, strict=True)]
    rng.shuffle(trials)
    return trials


def _read(path: Path) -> tuple[np.ndarray, int]:
    """Reads a clip (S,), the mean of its channels, and its rate."""
    try:
        samples, rate = soundfile.read(path, always_2d=True)
    except soundfile.LibsndfileError as error:
        raise InputError(f"{path}: not readable as audio ({error.error_string})") from error
    return samples.mean(axis=1), rate


def _gains(clips: dict[tuple[str, str], Path]) -> dict[tuple[str, str], float]:
    """Computes the factors that give all clips -23 LUFS, or less if a peak would exceed -1 dB."""
    levels, target = {}, LOUDNESS_LUFS
    for key, path in clips.items():
        wav, rate = _read(path)
        levels[key], peak = loudness([wav], rate)
        if not math.isfinite(levels[key]):
            raise InputError(f"{path} is silent or shorter than 0.4 s; remove it")
        target = min(target, levels[key] + mastering_gain_db(levels[key], peak))
    return {key: 10 ** ((target - level) / 20) for key, level in levels.items()}


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
        remedy = "give each file once, and each listener another name"
        raise InputError(f"{listener!r} has answered trial {trial} before; {remedy}")
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
    for system, values in scores.items():
        line, n = f"{system}: {counted(len(values), 'opinions')}", len(values)
        if n:
            line += f", mean {np.mean(values):.2f}"
        if n > 1:
            half = t.ppf((1 + _CONFIDENCE) / 2, n - 1) * np.std(values, ddof=1) / np.sqrt(n)
            line += f" ({np.mean(values) - half:.2f} to {np.mean(values) + half:.2f})"
        yield line
