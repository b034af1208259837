"""Metrics of stage 4 on a few validation utterances during training, within a time budget.

Acoustic models synthesise with their own timing and are compared with the recording; vocoders
resynthesise it.
"""

import importlib.util
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np

from config.preprocess import PreprocessConfig
from config.schema import Config
from models.base.task import Sample
from models.training.data import TrainingData
from modules.mel import MelConfig
from preprocessors.manifest import MANIFEST, Utterance, read_utterances
from processors.dataset.batch import TtsBatch, VocoderBatch
from processors.metrics.recognition.labelled_speech import LabelledSpeech
from processors.metrics.records import CopyMetric, MetricValue
from processors.metrics.registry import find_metric
from processors.records import Features
from utils.errors import InputError, UtteranceError
from utils.logging import get_logger
from utils.seed import derived_seed

_AUDIO_PACKAGES = ("soundfile", "soxr", "parselmouth")  # training needs none of them
_LONGEST = 3.0  # times the recording, plus a second; the rest of endless speech is cut
_FIRST_FACTOR = 1.5  # on the budget of the first scoring, which also reads the recordings
# Of the utterances that fit, if not all do; otherwise small variations would drop more each time.
_KEPT = 0.8


class ValidationUtterance(NamedTuple):
    """A validation utterance that is scored."""

    id: str
    batch: TtsBatch | VocoderBatch  # a batch of it alone
    read_recording: Callable[[], LabelledSpeech]  # cut to the span of its features


class ScoringResult(NamedTuple):
    """Result of one scoring."""

    values: Mapping[str, float]  # means over utterances, by column; NaN if none has a value
    units: Mapping[str, str]  # of the values, by column; empty for plain numbers
    n: int  # utterances that were synthesised
    seconds: float  # time it took


class UnavailableError(Exception):
    """Utterances cannot be scored on this machine; the message says why."""


class PeriodicScoring:
    """Scores the same utterances each time.

    Utterances that do not fit into the budget are dropped for the rest of the run, from the end of
    the list, and the log says so; the first one is always scored.

    Args:
        utterances: In the order in which they are scored.
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

    def run(self, synthesise: Callable[[TtsBatch | VocoderBatch], Sample]) -> ScoringResult | None:
        """Scores the utterances.

        Returns:
            None if no utterance is left. After an error scoring stops for the rest of the run; it
            is logged, with a traceback unless it comes from the user's input.
        """
        start = time.monotonic()
        rows: list[Mapping[str, MetricValue]] = []
        try:
            for utterance in self.utterances:
                # the next one takes as long as the mean of the others
                if rows and (time.monotonic() - start) * (1 + 1 / len(rows)) > self._limit:
                    rows = rows[: max(1, int(_KEPT * len(rows)))]
                    self._keep(len(rows))
                    break
                rows.append(self._score(utterance, synthesise(utterance.batch)))
        except Exception as error:  # noqa: BLE001  (no metric may end days of training)
            is_bug = not isinstance(error, InputError | UtteranceError | OSError)
            message = "no scores for the rest of this run: %s"
            _log.warning(message, error or repr(error), exc_info=is_bug)
            self.utterances, rows = [], []
        if not rows:
            return None
        self._limit = self._seconds
        return self._summarise(rows, time.monotonic() - start)

    def _keep(self, n: int) -> None:
        _log.info(
            "scores: train.score_seconds %g is enough for %d of %d utterances; the others are left"
            " out for the rest of this run",
            *(self._seconds, n, len(self.utterances)),
        )
        self.utterances = self.utterances[:n]

    def _score(self, utterance: ValidationUtterance, sample: Sample) -> Mapping[str, MetricValue]:
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
        spoken = replace(recorded, wav=wav, phones=sample.phones)
        scorer = UtteranceScorer(Path(utterance.id), spoken, recorded, is_copy, self._mel)
        return {c: value for name in self.metrics for c, value in scorer.values(name).items()}

    def _summarise(
        self, rows: Sequence[Mapping[str, MetricValue]], seconds: float
    ) -> ScoringResult:
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
    train = config.train
    if train.score_steps == 0 or not train.score_metrics or train.synthetic_utterances:
        return None
    try:
        utterances = choose_utterances(config, data)
        metrics = _installed(train.score_metrics)
    except UnavailableError as reason:
        _log.info("no scores during training: %s", reason)
        return None
    _log.info(
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
        _log.info("scores without %s", reason)
    return [name for name in names if name not in missing]


def choose_utterances(config: Config, data: TrainingData) -> list[ValidationUtterance]:
    """Takes the first `train.score_utterances` validation utterances in a random, fixed order.

    The random order spreads them over speakers and datasets, and so also the first few of them.

    Raises:
        UnavailableError: If there are none, or a recording or a package to read it is missing.
    """
    if missing := [p for p in _AUDIO_PACKAGES if importlib.util.find_spec(p) is None]:
        raise UnavailableError(f"not installed: {', '.join(missing)}")
    ids = data.validation.ids
    order = sorted(range(len(ids)), key=lambda item: derived_seed("score", ids[item]))
    if not order:
        raise UnavailableError("there is no validation data")
    chosen = order[: config.train.score_utterances]
    folders = {data.validation.store_of(item).folder for item in chosen}
    manifests = {f: read_utterances(f) if (f / MANIFEST).is_file() else {} for f in folders}
    return [_utterance(item, data, manifests, config.preprocess) for item in chosen]


def _utterance(
    item: int,
    data: TrainingData,
    manifests: Mapping[Path, Mapping[str, Utterance]],
    preprocess: PreprocessConfig,
) -> ValidationUtterance:
    id, store = data.validation.ids[item], data.validation.store_of(item)
    batch, utterance = data.validation_batch(item), manifests[store.folder].get(id)
    if isinstance(batch, VocoderBatch):
        # the text of a recording that was cut is unknown
        is_whole = batch.mel.shape[2] == store.frames[store.index_of(id)]
        texts = (utterance.text, utterance.language) if utterance and is_whole else ("", "")
        wav, rate = batch.wav[0].numpy(), preprocess.sample_rate
        speech = LabelledSpeech(wav, rate, *texts, id=id)
        return ValidationUtterance(id, batch, lambda: speech)
    if utterance is None:
        raise UnavailableError(f"{id} is not in {store.folder / MANIFEST}")
    if not utterance.audio.is_file():
        raise UnavailableError(f"{utterance.audio} is missing")
    features = cast("Features", store.read(id))
    return ValidationUtterance(id, batch, lambda: _read_span(features, utterance, preprocess))


def _read_span(
    features: Features, utterance: Utterance, preprocess: PreprocessConfig
) -> LabelledSpeech:
    """The span of a recording that its features cover."""
    from processors.audio.files import read_audio
    from processors.audio.frames import cut_span

    mel, T = preprocess.mel, features.mel.shape[1]
    audio = read_audio(utterance.audio, preprocess.of_any_length())
    wav = cut_span(audio.wav, features.start, T, mel)
    phones = features.timed_phones(mel.frame_s)
    text, language = utterance.text, utterance.language
    return LabelledSpeech(wav, mel.sample_rate, text, language, phones, utterance.id)


def check_score_metrics(config: Config) -> None:
    """Refuses metrics that cannot score the model of an experiment."""
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


_log = get_logger(__name__)
