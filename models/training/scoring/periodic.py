"""Metrics of stage 4 on a few validation utterances during training, within a time budget.

Acoustic models synthesise with their own timing and are compared with the recording; vocoders
resynthesise it.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from config.schema import Config
from models.base.task import Sample
from models.training.data.loading import TrainingData
from models.training.scoring.utterances import (
    UnavailableError,
    ValidationUtterance,
    choose_utterances,
)
from modules.mel import MelConfig
from processors.dataset.batch import TtsBatch, VocoderBatch
from processors.metrics.recognition.labelled_speech import LabelledSpeech
from processors.metrics.records import CopyMetric, Value
from processors.metrics.registry import find_metric
from utils.errors import InputError, UtteranceError
from utils.logging import get_logger

_LONGEST = 3.0  # times the recording, plus a second; the rest of endless speech is cut
_FIRST_FACTOR = 1.5  # on the budget of the first scoring, which also reads the recordings
# Of the utterances that fit, if not all do; otherwise small variations would drop more each time.
_KEPT = 0.8

Synthesise = Callable[[TtsBatch | VocoderBatch], Sample]


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
    ) -> None:
        self.metrics = tuple(metrics)
        self.utterances = list(utterances)
        self._mel = mel
        self._seconds = seconds
        self._limit = _FIRST_FACTOR * seconds
        self._recorded: dict[str, LabelledSpeech] = {}  # by id

    def run(self, synthesise: Synthesise) -> ScoringResult | None:
        """Scores the utterances.

        Args:
            synthesise: Gives the sample of a batch of one utterance.

        Returns:
            None if no utterance is left. After an error scoring stops for the rest of the run; it
            is logged, with a traceback unless it comes from the user's input.
        """
        start = time.monotonic()
        try:
            rows = self._rows(synthesise, start)
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
        return self._summarise(rows, time.monotonic() - start)

    def _rows(self, synthesise: Synthesise, start: float) -> list[Mapping[str, Value]]:
        """The values of each utterance within the budget, by column."""
        rows: list[Mapping[str, Value]] = []
        for utterance in self.utterances:
            # the next one takes as long as the mean of the others
            if rows and (time.monotonic() - start) * (1 + 1 / len(rows)) > self._limit:
                n = max(1, int(_KEPT * len(rows)))
                get_logger(__name__).info(
                    "scores: train.score_seconds %g is enough for %d of %d utterances; the others "
                    "are left out for the rest of this run",
                    *(self._seconds, n, len(self.utterances)),
                )
                self.utterances = self.utterances[:n]
                return rows[:n]
            rows.append(self._score(utterance, synthesise(utterance.batch)))
        return rows

    def _score(self, utterance: ValidationUtterance, sample: Sample) -> Mapping[str, Value]:
        """The values of one utterance, by column; none for audio that is not finite."""
        from processors.metrics.utterance_scorer import UtteranceScorer

        if utterance.id not in self._recorded:
            self._recorded[utterance.id] = utterance.read_recording()
        recorded = self._recorded[utterance.id]
        limit = round(_LONGEST * len(recorded.wav)) + recorded.sample_rate
        wav = sample.audio["synthesised"].numpy()[:limit]
        if not np.isfinite(wav).all():
            return {}
        is_copy = isinstance(utterance.batch, VocoderBatch)
        spoken = replace(recorded, wav=wav, phones=sample.phones, recorded=False)
        scorer = UtteranceScorer(Path(utterance.id), spoken, recorded, is_copy, self._mel)
        return {c: value for name in self.metrics for c, value in scorer.values(name).items()}

    def _summarise(self, rows: Sequence[Mapping[str, Value]], seconds: float) -> ScoringResult:
        from processors.metrics.utterance_scorer import columns_of

        means, units = {}, {}
        for name, unit, _ in columns_of(self.metrics):
            values = [row[name] for row in rows if name in row]
            total = sum(value.value * value.weight for value in values)
            means[name] = total / sum(value.weight for value in values) if values else math.nan
            units[name] = unit
        return ScoringResult(means, units, len(rows), seconds)


def build_scoring(config: Config, data: TrainingData) -> PeriodicScoring | None:
    """Builds the scoring of an experiment; logs the number of utterances and the metrics.

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
        *(train.score_steps, train.score_seconds, ", ".join(metrics), len(utterances)),
    )
    return PeriodicScoring(utterances, metrics, config.preprocess.mel, train.score_seconds)


def _installed(names: Sequence[str]) -> list[str]:
    """The metrics whose packages are installed; logs the others."""
    missing = {name: lacking for name in names if (lacking := find_metric(name).missing())}
    if missing:
        packages = " ".join(dict.fromkeys(name for row in missing.values() for name in row))
        reason = f"{', '.join(missing)}: not installed (pip install {packages})"
        if len(missing) == len(names):
            raise UnavailableError(reason)
        get_logger(__name__).info("scores without %s", reason)
    return [name for name in names if name not in missing]


def check_score_metrics(config: Config) -> None:
    """Refuses metrics that cannot score the model of an experiment.

    Raises:
        InputError: If one is unknown or listed twice, compares resynthesis while an acoustic model
            is trained, or needs the user's own function.
    """
    names = config.train.score_metrics
    for name in names:
        try:
            metric = find_metric(name)
        except InputError as error:
            raise InputError(f"train.score_metrics: {error}") from error
        fault = ""
        if names.count(name) > 1:
            fault = "is listed twice"
        elif isinstance(metric, CopyMetric) and config.task != "vocoder":
            fault = "needs resynthesised recordings; an acoustic model has its own timing"
        elif metric.needs_encoder:
            fault = "needs your own function, which only stage 4 accepts"
        if fault:
            raise InputError(f"train.score_metrics: {name} {fault}")
