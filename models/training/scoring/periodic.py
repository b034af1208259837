"""Metrics of stage 4 on a few validation utterances during training, within a time budget.

Acoustic models synthesise with their own timing and are compared with the recording; vocoders
resynthesise it.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from config.schema import Config
from models.base.task import Sample
from models.training.data.loading import TrainingData
from models.training.scoring.utterances import (
    UnavailableError,
    ValidationUtterance,
    choose_utterances,
    missing_audio_packages,
)
from modules.mel import MelConfig
from processors.dataset.batch import TtsBatch, VocoderBatch
from processors.scoring.metrics import Value, find, metric_names
from utils.config import nearest
from utils.errors import InputError, UtteranceError
from utils.logging import get_logger

if TYPE_CHECKING:  # it imports packages that training does not need
    from processors.scoring.utterance_scorer import ReferenceSpeech

_LONGEST = 3.0  # times the recording, plus a second; the rest of endless speech is cut
_FIRST_FACTOR = 1.5  # on the budget of the first scoring, which also reads the recordings
# Of the utterances that fit, if not all do; otherwise small variations would drop more each time.
_KEPT = 0.8
# Other processes wait with a timeout of ten minutes, so the longest scoring must stay far below.
_SLOWEST = 5.0  # ratio of elapsed to CPU time beyond which elapsed time counts, by a fifth

Synthesise = Callable[[TtsBatch | VocoderBatch], Sample]
Stopwatch = Callable[[], float]  # seconds since it was started


def start_stopwatch() -> Stopwatch:
    """Measures the CPU time of this process, between a fifth of the elapsed time and all of it."""
    began, cpu_began = time.monotonic(), time.process_time()

    def seconds() -> float:
        elapsed = time.monotonic() - began
        return max(min(elapsed, time.process_time() - cpu_began), elapsed / _SLOWEST)

    return seconds


class ScoringResult(NamedTuple):
    """Result of one scoring."""

    # means over the utterances that have a value, by column; NaN where none has
    values: Mapping[str, float]
    units: Mapping[str, str]  # of the values, by column; empty for plain numbers
    n: int  # utterances that were synthesised
    seconds: float  # time it took


class PeriodicScoring:
    """Scores the same utterances each time.

    Utterances that do not fit into the budget are dropped for the rest of the run, from the end of
    the list, and the log says so; the first one is always scored.

    Args:
        utterances: In the order in which they are scored.
        metrics: Names.
        mel: Input of vocoders; its sample rate is that of all audio.
        seconds: Budget of one scoring; the first has half as much again.
        start: Starts a stopwatch.

    Attributes:
        metrics: Names.
        utterances: Those that are left.
    """

    def __init__(
        self,
        utterances: Sequence[ValidationUtterance],
        metrics: Sequence[str],
        mel: MelConfig,
        seconds: float,
        start: Callable[[], Stopwatch] = start_stopwatch,
    ) -> None:
        self.metrics = tuple(metrics)
        self.utterances = list(utterances)
        self._mel = mel
        self._seconds = seconds
        self._limit = _FIRST_FACTOR * seconds
        self._start = start
        self._originals: dict[str, ReferenceSpeech] = {}

    def run(self, synthesise: Synthesise) -> ScoringResult | None:
        """Scores the utterances.

        Args:
            synthesise: Gives the sample of a batch of one utterance.

        Returns:
            None if no utterance is left. After an error scoring stops for the rest of the run; it
            is logged, with a traceback unless it comes from the user's input.
        """
        watch = self._start()
        try:
            rows = self._rows(synthesise, watch)
        except Exception as error:  # noqa: BLE001  (no metric may end days of training)
            is_bug = not isinstance(error, InputError | UtteranceError | OSError)
            get_logger(__name__).warning(
                "no scores for the rest of this run: %s", error or repr(error), exc_info=is_bug
            )
            self.utterances = []
            return None
        if not rows:
            return None
        self._limit = self._seconds
        return self._summarise(rows, watch())

    def _rows(self, synthesise: Synthesise, watch: Stopwatch) -> list[Mapping[str, Value]]:
        """The values of each utterance within the budget, by column."""
        rows: list[Mapping[str, Value]] = []
        for utterance in self.utterances:
            # the next one takes as long as the mean of the others
            if rows and watch() * (1 + 1 / len(rows)) > self._limit:
                n = max(1, int(_KEPT * len(rows)))
                get_logger(__name__).info(
                    "scores: train.score_seconds %g is enough for %d of %d utterances; the others "
                    "are left out for the rest of this run",
                    self._seconds,
                    n,
                    len(self.utterances),
                )
                self.utterances = self.utterances[:n]
                return rows[:n]
            rows.append(self._score(utterance, synthesise(utterance.batch)))
        return rows

    def _score(self, utterance: ValidationUtterance, sample: Sample) -> Mapping[str, Value]:
        """The values of one utterance, by column; none for audio that is not finite."""
        from processors.scoring.utterance_scorer import ReferenceSpeech, UtteranceScorer

        if utterance.id not in self._originals:
            self._originals[utterance.id] = ReferenceSpeech(utterance.read_recording(), checks=())
        original = self._originals[utterance.id]
        recorded = original.speech
        limit = round(_LONGEST * len(recorded.wav)) + recorded.sample_rate
        wav = sample.audio["synthesised"].numpy()[:limit]
        if not np.isfinite(wav).all():
            return {}
        is_copy = isinstance(utterance.batch, VocoderBatch)
        spoken = replace(recorded, wav=wav, phones=sample.phones, recorded=False)
        scorer = UtteranceScorer(Path(utterance.id), spoken, original, is_copy, self._mel)
        values = {c: value for name in self.metrics for c, value in scorer.values(name).items()}
        return {c: value for c, value in values.items() if value and math.isfinite(value.value)}

    def _summarise(self, rows: Sequence[Mapping[str, Value]], seconds: float) -> ScoringResult:
        from processors.scoring.utterance_scorer import columns_of

        columns = columns_of(self.metrics)
        means = {}
        for column in columns:
            found = [row[column.name] for row in rows if column.name in row]
            values, weights = [value.value for value in found], [value.weight for value in found]
            means[column.name] = float(np.average(values, weights=weights)) if found else math.nan
        units = {column.name: column.unit for column in columns}
        return ScoringResult(means, units, len(rows), seconds)


def build_scoring(config: Config, data: TrainingData) -> PeriodicScoring | None:
    """Builds the scoring of an experiment; logs the number of utterances and the metrics.

    Args:
        config: The experiment.
        data: Its validation utterances.

    Returns:
        None if the config asks for none or the data are generated, or, with the reason in one log
        line, on a machine without the corpus or the packages that read audio.
    """
    train, log = config.train, get_logger(__name__)
    if train.score_steps == 0 or not train.score_metrics or train.synthetic_utterances:
        return None
    try:
        utterances = choose_utterances(config, data)
        metrics = _installed(train.score_metrics)
    except UnavailableError as reason:
        log.info("no scores during training: %s", reason)
        return None
    log.info(
        "scores every %d updates, %g s at most: %s of %d validation utterances",
        train.score_steps,
        train.score_seconds,
        ", ".join(metrics),
        len(utterances),
    )
    return PeriodicScoring(utterances, metrics, config.preprocess.mel, train.score_seconds)


def _installed(names: Sequence[str]) -> list[str]:
    """The metrics whose packages are installed; logs the others."""
    missing = {name: find(name).METRIC.missing() for name in names}
    lacking = [name for name in names if missing[name]]
    packages = " ".join(dict.fromkeys(package for name in lacking for package in missing[name]))
    if len(lacking) == len(names):
        raise UnavailableError(f"{', '.join(names)}: not installed (pip install {packages})")
    if lacking:
        get_logger(__name__).info(
            "scores without %s: not installed (pip install %s)", ", ".join(lacking), packages
        )
    return [name for name in names if name not in lacking]


def check_score_metrics(config: Config) -> None:
    """Refuses metrics that cannot score the model of an experiment.

    Raises:
        InputError: If one is unknown or listed twice, compares resynthesis while an acoustic model
            is trained, or needs the user's own function.
    """
    names, known = config.train.score_metrics, metric_names()
    for name in names:
        if name not in known:
            listed = ", ".join(known)
            _refuse(f"no metric {name!r}{nearest(name, known)} (known: {listed})")
        if names.count(name) > 1:
            _refuse(f"{name} is listed twice")
    if missing_audio_packages():
        return  # metric files cannot be imported without them, nor used
    for name in names:
        metric = find(name).METRIC
        if metric.input == "copy" and config.task != "vocoder":
            _refuse(f"{name} needs resynthesised recordings; an acoustic model has its own timing")
        if metric.user_model:
            _refuse(f"{name} needs your own function, which only stage 4 accepts")


def _refuse(fault: str) -> None:
    raise InputError(f"train.score_metrics: {fault}")
