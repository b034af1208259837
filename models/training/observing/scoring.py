"""Validation losses; metrics of stage 4 on a few validation utterances, within a time budget."""

import math
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from accelerate.utils import gather_object, send_to_device
from torch import nn

from config.preprocess import PreprocessConfig
from config.schema import Config
from models.base.task import LossTerm, MetricTerm, Sample, Task, Unit
from models.training.data import TrainingData
from models.training.processes import random_states, restore_random_states, take_from_first
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

# a batch of a validation utterance alone, and its recording, cut to the span of its features
ValidationUtterance = tuple[TtsBatch | VocoderBatch, LabelledSpeech]
Values = Mapping[str, MetricValue]  # by column


class Validation(NamedTuple):
    """Result of a validation, by name."""

    loss: float  # the weighted sum that training minimises; NaN without batches
    losses: Mapping[str, float]  # its terms, per valid element
    metrics: Mapping[str, float]  # means per item; left out where no item has a value


def validate(task: Task[Any], batches: Iterable[Any], device: torch.device) -> Validation:
    """Computes losses per valid element and metrics per item, over the batches of all processes.

    Afterwards networks are in training mode again, and random generators as before. Processes may
    have different numbers of batches, or none.
    """
    for network in task.networks.values():
        take_from_first(network)  # running means differ between processes
    results: list[tuple[Mapping[str, LossTerm | MetricTerm], Mapping[Unit, int]]] = []
    with eval_mode(task.networks.values()):
        for batch in batches:
            terms = task.validation_step(send_to_device(batch, device))
            results.append((send_to_device(terms, "cpu"), task.counts(batch)))
    totals: dict[str, float] = defaultdict(float)
    counts, n_items = Counter[str](), Counter[str]()
    loss_terms: dict[str, LossTerm] = {}
    for terms, batch_counts in gather_object(results):
        counts.update(batch_counts)
        for name, term in terms.items():
            totals[name] += float(term.total)
            if isinstance(term, LossTerm):
                loss_terms[name] = term
            else:
                n_items[name] += term.n_items
    losses = {name: totals[name] / max(1, counts[term.per]) for name, term in loss_terms.items()}
    loss = sum(loss_terms[name].weight * mean for name, mean in losses.items())
    metrics = {name: totals[name] / n for name, n in n_items.items() if n}
    return Validation(loss if losses else float("nan"), losses, metrics)


@contextmanager
def eval_mode(networks: Iterable[nn.Module]) -> Iterator[None]:
    """Enters evaluation mode without gradients; restores training mode and generators at the end.

    Compiled networks run uncompiled: validation has shapes of its own.
    """
    networks, states = list(networks), random_states()
    for network in networks:
        network.eval()
    try:
        with torch.no_grad(), torch.compiler.set_stance("force_eager"):
            yield
    finally:
        restore_random_states(states)
        for network in networks:
            network.train()


class ScoringResult(NamedTuple):
    """Result of one scoring."""

    values: Mapping[str, float]  # means over utterances, by column; NaN if none has a value
    n: int  # utterances that were synthesised
    seconds: float  # time it took


@dataclass
class PeriodicScoring:
    """Scores the same utterances each time.

    When the time is over, the utterances that are left are dropped for the rest of the run, and the
    log says so; the first one is always scored.
    """

    utterances: Sequence[ValidationUtterance]  # in the order in which they are scored
    metrics: Sequence[str]  # names
    mel: MelConfig  # input of vocoders; its sample rate is that of all audio
    seconds: float  # budget of one scoring

    def run(self, synthesise: Callable[[TtsBatch | VocoderBatch], Sample]) -> ScoringResult | None:
        """Scores the utterances; returns None if none is left.

        After an error, which is logged (with a traceback, if it is a bug), none is.
        """
        start = time.monotonic()
        rows: list[Values] = []
        try:
            for batch, recorded in self.utterances:
                if rows and time.monotonic() - start > self.seconds:
                    _log.info(
                        "scores: train.score_seconds %g is enough for %d of %d utterances; the"
                        " others are left out for the rest of this run",
                        self.seconds,
                        len(rows),
                        len(self.utterances),
                    )
                    self.utterances = self.utterances[: len(rows)]
                    break
                is_copy = isinstance(batch, VocoderBatch)
                rows.append(self._score(synthesise(batch), recorded, is_copy=is_copy))
        except Exception as error:  # noqa: BLE001  (no metric may end days of training)
            is_bug, reason = not isinstance(error, _UNAVAILABLE), error or repr(error)
            _log.warning("no scores for the rest of this run: %s", reason, exc_info=is_bug)
            self.utterances, rows = [], []
        if not rows:
            return None
        return ScoringResult(self._means(rows), len(rows), time.monotonic() - start)

    def _score(self, sample: Sample, recorded: LabelledSpeech, *, is_copy: bool) -> Values:
        """Scores one utterance: values by column, none for audio that is not finite."""
        from processors.metrics.utterance_scorer import UtteranceScorer

        limit = round(_LONGEST * len(recorded.wav)) + recorded.sample_rate
        wav = sample.audio["synthesised"].numpy()[:limit]
        if not np.isfinite(wav).all():
            return {}
        spoken = replace(recorded, wav=wav, phones=sample.phones)
        scorer = UtteranceScorer(Path(recorded.id), spoken, recorded, is_copy, self.mel)
        return {c: value for name in self.metrics for c, value in scorer.values(name).items()}

    def _means(self, rows: Sequence[Values]) -> Mapping[str, float]:
        from processors.metrics.utterance_scorer import columns_of

        means = {}
        for name, _, _ in columns_of(self.metrics):
            values = [row[name] for row in rows if name in row]
            total = sum(value.value * value.weight for value in values)
            means[name] = total / sum(value.weight for value in values) if values else math.nan
        return means


def build_scoring(config: Config, data: TrainingData) -> PeriodicScoring | None:
    """Builds the scoring of an experiment, by the metrics whose packages are installed, if any.

    Returns None if the config asks for no scores, data are generated, or the corpus or all packages
    are missing.
    """
    train = config.train
    if train.score_steps == 0 or not train.score_metrics or train.synthetic_utterances:
        return None
    missing = {name: missing_packages(METRICS[name].packages) for name in train.score_metrics}
    metrics = [name for name, packages in missing.items() if not packages]
    if others := [name for name, packages in missing.items() if packages]:
        needed = " ".join(dict.fromkeys(chain.from_iterable(missing.values())))
        _log.info("no scores %s during training: pip install %s", ", ".join(others), needed)
    try:
        utterances = choose_utterances(config, data) if metrics else []
    except _UNAVAILABLE as reason:
        _log.info("no scores during training: %s", reason)
        return None
    if not utterances:
        return None
    message = "scores every %d updates, %g s at most: %s of %d validation utterances"
    names, steps, limit_s = ", ".join(metrics), train.score_steps, train.score_seconds
    _log.info(message, steps, limit_s, names, len(utterances))
    return PeriodicScoring(utterances, metrics, config.preprocess.mel, limit_s)


def choose_utterances(config: Config, data: TrainingData) -> list[ValidationUtterance]:
    """Takes the first `train.score_utterances` validation utterances in a random, fixed order.

    The random order spreads them over speakers and datasets, and so also the first few of them.
    Recordings that are missing or cannot be read are left out with a warning; if all are, the error
    of the first is raised.
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
        message = "left out of the scores during training: %d of %d validation utterances: %s"
        _log.warning(message, len(faults), len(chosen), "; ".join(map(str, faults)))
    return utterances


def _utterance(
    item: int,
    data: TrainingData,
    manifests: Mapping[Path, Mapping[str, Utterance]],
    preprocess: PreprocessConfig,
) -> ValidationUtterance:
    id, store = data.validation.ids[item], data.validation.store_of(item)
    batch, utterance = data.validation_batch(item), manifests[store.folder].get(id)
    text, language = (utterance.text, utterance.language) if utterance else ("", "")
    mel = preprocess.mel
    if isinstance(batch, VocoderBatch):
        if batch.mel.shape[2] != store.frames[store.index_of(id)]:
            text = language = ""  # that of a recording that was cut is unknown
        wav = batch.wav[0].numpy()
        return batch, LabelledSpeech(wav, mel.sample_rate, text, language, id=id)
    if utterance is None:
        raise InputError(f"{id} is not in {store.folder / MANIFEST}")

    from processors.audio.files import read_audio
    from processors.audio.frames import cut_span

    features = cast("Features", store.read(id))
    audio = read_audio(utterance.audio, preprocess.of_any_length())
    wav = cut_span(audio.wav, features.start, features.mel.shape[1], mel)
    phones = features.timed_phones(mel.frame_s)
    return batch, LabelledSpeech(wav, mel.sample_rate, text, language, phones, id)


def check_score_metrics(config: Config) -> None:
    """Refuses metrics that cannot score the model of an experiment."""
    for name in config.train.score_metrics:
        if name not in METRICS:
            fault = f"is no metric{nearest(name, METRICS)} (known: {', '.join(METRICS)})"
            raise InputError(f"train.score_metrics: {name} {fault}")
        if METRICS[name].family == "copies" and config.task != "vocoder":
            fault = "needs resynthesised recordings; an acoustic model has its own timing"
            raise InputError(f"train.score_metrics: {name} {fault}")
