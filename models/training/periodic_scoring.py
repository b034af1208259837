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
from models.training.data import TrainingData
from models.training.scored_utterances import (
    UnavailableError,
    ValidationUtterance,
    missing_audio_packages,
    sentences_of,
)
from modules.mel import MelConfig
from processors.dataset.batch import TtsBatch, VocoderBatch
from processors.scoring.metrics import Value, find, metric_names
from utils.config import nearest
from utils.errors import InputError, UtteranceError
from utils.logging import get_logger

if TYPE_CHECKING:  # it reads audio files, which training can do without
    from processors.scoring.utterance_scorer import ReferenceSpeech

_LONGEST = 3.0  # times the recording, plus a second: what babbles on after that is not judged
_FIRST_BUDGETS = 1.5  # of the first scoring, which also reads and analyses the recordings
# Of the sentences that fit, if not all do: else a little more work would leave out more of them.
_KEPT = 0.8
# Other processes wait, and give up after ten minutes: the longest scoring may not come near.
_SLOWEST = 5.0  # times as long as this process works; of what takes longer a fifth counts

Speak = Callable[[TtsBatch | VocoderBatch], Sample]
Stopwatch = Callable[[], float]  # seconds since it was started


def start_stopwatch() -> Stopwatch:
    """Measures the seconds that this process works, or a fifth of those that pass, if that is more.

    Where it works on several cores, it is the seconds that pass.
    """
    began, worked = time.monotonic(), time.process_time()

    def seconds() -> float:
        passed = time.monotonic() - began
        return max(min(passed, time.process_time() - worked), passed / _SLOWEST)

    return seconds


class ScoringResult(NamedTuple):
    """What a scoring found.

    Attributes:
        values: Means over the sentences that have a value, by column; NaN where none has.
        units: Of the values, by column; empty for plain numbers.
        n: Sentences that were spoken.
        seconds: That it took.
    """

    values: Mapping[str, float]
    units: Mapping[str, str]
    n: int
    seconds: float


class PeriodicScoring:
    """Scores the same utterances each time.

    What does not fit into the budget is left out for good, from the end of the list, and it is
    said; the first sentence is always scored.

    Args:
        sentences: In the order in which they are scored.
        metrics: By name.
        mel: What copies are made from, and the sample rate of all sounds.
        seconds: Budget of one scoring; the first has half as much again.
        start: Starts a stopwatch.

    Attributes:
        metrics: By name.
        sentences: Those that are left.
    """

    def __init__(
        self,
        sentences: Sequence[ValidationUtterance],
        metrics: Sequence[str],
        mel: MelConfig,
        seconds: float,
        start: Callable[[], Stopwatch] = start_stopwatch,
    ) -> None:
        self.metrics = tuple(metrics)
        self.sentences = list(sentences)
        self._mel = mel
        self._seconds = seconds
        self._limit = _FIRST_BUDGETS * seconds
        self._start = start
        self._originals: dict[str, ReferenceSpeech] = {}

    def run(self, speak: Speak) -> ScoringResult | None:
        """Scores the utterances.

        Args:
            speak: Gives the sample of a batch of one utterance.

        Returns:
            None where nothing is left to be scored: what fails is told once, and not tried again,
            with a traceback where it is no fault of the user's.
        """
        watch = self._start()
        try:
            rows = self._rows(speak, watch)
        except Exception as error:  # noqa: BLE001  (no score may end days of training)
            is_bug = not isinstance(error, InputError | UtteranceError | OSError)
            get_logger(__name__).warning(
                "from here on there are no scores: %s", error or repr(error), exc_info=is_bug
            )
            self.sentences = []
            return None
        if not rows:
            return None
        self._limit = self._seconds
        return self._summarise(rows, watch())

    def _rows(self, speak: Speak, watch: Stopwatch) -> list[Mapping[str, Value]]:
        """The values of each sentence that there is time for, by column."""
        rows: list[Mapping[str, Value]] = []
        for sentence in self.sentences:
            # the next one takes as long as the others in the mean
            if rows and watch() * (1 + 1 / len(rows)) > self._limit:
                self._shorten(max(1, int(_KEPT * len(rows))))
                return rows[: len(self.sentences)]
            rows.append(self._judge(sentence, speak(sentence.batch)))
        return rows

    def _shorten(self, n: int) -> None:
        get_logger(__name__).info(
            "scores: for %d of %d sentences train.score_seconds %g is enough; the others are left "
            "out from here on",
            n,
            len(self.sentences),
            self._seconds,
        )
        self.sentences = self.sentences[:n]

    def _judge(self, sentence: ValidationUtterance, sample: Sample) -> Mapping[str, Value]:
        """What the metrics say of one sentence; nothing of a sound that is not finite."""
        from processors.scoring.utterance_scorer import ReferenceSpeech, UtteranceScorer

        if sentence.id not in self._originals:
            self._originals[sentence.id] = ReferenceSpeech(sentence.recorded(), checks=())
        original = self._originals[sentence.id]
        recorded = original.speech
        limit = round(_LONGEST * len(recorded.wav)) + recorded.sample_rate
        wav = sample.audio["synthesised"].numpy()[:limit]
        if not np.isfinite(wav).all():
            return {}
        is_copy = isinstance(sentence.batch, VocoderBatch)
        spoken = replace(recorded, wav=wav, phones=sample.phones, recorded=False)
        judge = UtteranceScorer(Path(sentence.id), spoken, original, is_copy, self._mel)
        values = {c: value for name in self.metrics for c, value in judge.values(name).items()}
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
    """What scores an experiment while it trains; says which sentences and metrics.

    Returns:
        None if there is nothing to do, and, with the reason in one line, where it cannot be done:
        on machines without the corpus or the packages that read audio.
    """
    train, log = config.train, get_logger(__name__)
    if train.score_steps == 0 or not train.score_metrics:
        return None
    try:
        sentences = sentences_of(config, data)
        metrics = _installed(train.score_metrics)
    except UnavailableError as reason:
        log.info("no scores while training: %s", reason)
        return None
    log.info(
        "scores every %d updates, %g s at most: %s of %d validation sentences",
        train.score_steps,
        train.score_seconds,
        ", ".join(metrics),
        len(sentences),
    )
    return PeriodicScoring(sentences, metrics, config.preprocess.mel, train.score_seconds)


def _installed(names: Sequence[str]) -> list[str]:
    """The metrics whose packages are installed; names the others.

    Raises:
        UnavailableError: If none is.
    """
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
    """Refuses metrics that cannot score what the experiment trains.

    Raises:
        InputError: If one is unknown or stands twice, judges copies while an acoustic model is
            trained, or needs a function of the user's.
    """
    names, known = config.train.score_metrics, metric_names()
    for name in names:
        if name not in known:
            listed = ", ".join(known)
            _refuse(f"no metric {name!r}{nearest(name, known)} (known: {listed})")
        if names.count(name) > 1:
            _refuse(f"{name} stands there twice")
    if missing_audio_packages():
        return  # without them metrics cannot be looked into, nor be used
    for name in names:
        metric = find(name).METRIC
        if metric.input == "copy" and config.task != "vocoder":
            _refuse(f"{name} judges copies of recordings; an acoustic model has its own timing")
        if metric.user_model:
            _refuse(f"{name} needs a function of yours, which only stage 4 takes")


def _refuse(fault: str) -> None:
    raise InputError(f"train.score_metrics: {fault}")
