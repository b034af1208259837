"""Metrics of stage 4 on a few validation utterances during training, within a time budget.

Acoustic models synthesise with their own timing and are compared with the recording; vocoders
resynthesise it.
"""

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
from processors.metrics.records import MetricValue, missing_packages
from processors.metrics.registry import METRICS
from processors.records import Features
from utils.errors import InputError, UtteranceError, nearest
from utils.logging import get_logger
from utils.seed import derived_seed

_log = get_logger(__name__)

_LONGEST = 3.0  # times the recording, plus a second; the rest of endless speech is cut
# Wrong or missing files and packages; training needs none of those that read and measure audio.
_UNAVAILABLE = (InputError, UtteranceError, OSError, ImportError)


class ValidationUtterance(NamedTuple):
    """A validation utterance that is scored."""

    id: str
    batch: TtsBatch | VocoderBatch  # a batch of it alone
    recorded: LabelledSpeech  # cut to the span of its features


class ScoringResult(NamedTuple):
    """Result of one scoring."""

    values: Mapping[str, float]  # means over utterances, by column; NaN if none has a value
    n: int  # utterances that were synthesised
    seconds: float  # time it took


class PeriodicScoring:
    """Scores the same utterances each time.

    When the time is over, the utterances that are left are dropped for the rest of the run, and the
    log says so; the first one is always scored.

    Args:
        utterances: In the order in which they are scored.
        mel: Input of vocoders; its sample rate is that of all audio.
        seconds: Budget of one scoring.

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

    def run(self, synthesise: Callable[[TtsBatch | VocoderBatch], Sample]) -> ScoringResult | None:
        """Scores the utterances.

        Returns:
            None if no utterance is left. After an error scoring stops for the rest of the run; it
            is logged, with a traceback unless it is that of a file or package.
        """
        start = time.monotonic()
        rows: list[Mapping[str, MetricValue]] = []
        try:
            for utterance in self.utterances:
                if rows and time.monotonic() - start > self._seconds:
                    _log.info(
                        "scores: train.score_seconds %g is enough for %d of %d utterances; the"
                        " others are left out for the rest of this run",
                        *(self._seconds, len(rows), len(self.utterances)),
                    )
                    self.utterances = self.utterances[: len(rows)]
                    break
                rows.append(self._score(utterance, synthesise(utterance.batch)))
        except Exception as error:  # noqa: BLE001  (no metric may end days of training)
            is_bug = not isinstance(error, _UNAVAILABLE)
            message = "no scores for the rest of this run: %s"
            _log.warning(message, error or repr(error), exc_info=is_bug)
            self.utterances, rows = [], []
        if not rows:
            return None
        return ScoringResult(self._means(rows), len(rows), time.monotonic() - start)

    def _score(self, utterance: ValidationUtterance, sample: Sample) -> Mapping[str, MetricValue]:
        """Scores one utterance: values by column, none for audio that is not finite."""
        from processors.metrics.utterance_scorer import UtteranceScorer

        recorded = utterance.recorded
        limit = round(_LONGEST * len(recorded.wav)) + recorded.sample_rate
        wav = sample.audio["synthesised"].numpy()[:limit]
        if not np.isfinite(wav).all():
            return {}
        is_copy = isinstance(utterance.batch, VocoderBatch)
        spoken = replace(recorded, wav=wav, phones=sample.phones)
        scorer = UtteranceScorer(Path(utterance.id), spoken, recorded, is_copy, self._mel)
        return {c: value for name in self.metrics for c, value in scorer.values(name).items()}

    def _means(self, rows: Sequence[Mapping[str, MetricValue]]) -> Mapping[str, float]:
        from processors.metrics.utterance_scorer import columns_of

        means = {}
        for name, _, _ in columns_of(self.metrics):
            values = [row[name] for row in rows if name in row]
            total = sum(value.value * value.weight for value in values)
            means[name] = total / sum(value.weight for value in values) if values else math.nan
        return means


def build_scoring(config: Config, data: TrainingData) -> PeriodicScoring | None:
    """Builds the scoring of an experiment; logs the number of utterances and the metrics.

    Metrics whose packages are missing are left out.

    Returns:
        None if the config asks for none or the data are generated, or, with the reason in one log
        line, on a machine without the corpus or the packages.
    """
    train = config.train
    if train.score_steps == 0 or not train.score_metrics or train.synthetic_utterances:
        return None
    missing = {
        name: packages
        for name in train.score_metrics
        if (packages := missing_packages(METRICS[name].packages))
    }
    if missing:
        needed = " ".join(dict.fromkeys(package for row in missing.values() for package in row))
        _log.info("no scores %s during training: pip install %s", ", ".join(missing), needed)
    metrics = [name for name in train.score_metrics if name not in missing]
    try:
        utterances = choose_utterances(config, data) if metrics else []
    except _UNAVAILABLE as reason:
        _log.info("no scores during training: %s", reason)
        return None
    if not utterances:
        return None
    _log.info(
        "scores every %d updates, %g s at most: %s of %d validation utterances",
        *(train.score_steps, train.score_seconds, ", ".join(metrics), len(utterances)),
    )
    return PeriodicScoring(utterances, metrics, config.preprocess.mel, train.score_seconds)


def choose_utterances(config: Config, data: TrainingData) -> list[ValidationUtterance]:
    """Takes the first `train.score_utterances` validation utterances in a random, fixed order.

    The random order spreads them over speakers and datasets, and so also the first few of them.
    Recordings that are missing or cannot be read are left out; a warning names them.

    Raises:
        InputError: If all recordings are missing; UtteranceError, if none can be read.
    """
    ids = data.validation.ids
    order = sorted(range(len(ids)), key=lambda item: derived_seed("score", ids[item]))
    chosen = order[: config.train.score_utterances]
    folders = {data.validation.store_of(item).folder for item in chosen}
    manifests = {f: read_utterances(f) if (f / MANIFEST).is_file() else {} for f in folders}
    utterances: list[ValidationUtterance] = []
    faults: list[InputError | UtteranceError] = []
    for item in chosen:
        try:
            utterances.append(_utterance(item, data, manifests, config.preprocess))
        except (InputError, UtteranceError) as fault:
            faults.append(fault)
    if faults and not utterances:
        raise faults[0]
    if faults:
        _log.warning(
            "left out of the scores during training: %d of %d validation utterances: %s",
            *(len(faults), len(chosen), "; ".join(map(str, faults))),
        )
    return utterances


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
        recorded = LabelledSpeech(wav, rate, *texts, id=id)
    elif utterance is None:
        raise InputError(f"{id} is not in {store.folder / MANIFEST}")
    else:
        recorded = _read_span(cast("Features", store.read(id)), utterance, preprocess)
    return ValidationUtterance(id, batch, recorded)


def _read_span(
    features: Features, utterance: Utterance, preprocess: PreprocessConfig
) -> LabelledSpeech:
    """Reads the span of a recording that its features cover."""
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
    for name in config.train.score_metrics:
        metric, fault = METRICS.get(name), ""
        if metric is None:
            fault = f"is no metric{nearest(name, METRICS)} (known: {', '.join(METRICS)})"
        elif metric.family == "copies" and config.task != "vocoder":
            fault = "needs resynthesised recordings; an acoustic model has its own timing"
        if fault:
            raise InputError(f"train.score_metrics: {name} {fault}")
