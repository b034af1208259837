"""Scores one utterance by every metric and check, for each system that synthesised it."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import soundfile

from modules.mel import MelConfig
from processors.metrics.recognition.labelled_speech import LabelledSpeech
from processors.metrics.recognition.user_models import UserModels
from processors.metrics.records import (
    CheckFlag,
    Copy,
    CopyMetric,
    MetricValue,
    NotApplicableError,
    SpeechMetric,
)
from processors.metrics.registry import find_check, find_metric
from processors.metrics.signals.aligned_pair import AlignedPair
from processors.records import TimedPhone
from utils.errors import InputError, described

TOLERANCE_FRAMES = 2  # by which the length of a copy may differ: vocoders write whole frames


class Waveform(NamedTuple):
    """The samples of an audio file."""

    wav: np.ndarray  # (S,) float32
    sample_rate: int  # Hz


@dataclass(frozen=True)
class SpeechFile:
    """A file with the speech of one utterance."""

    file: Path  # audio file
    # phones and pauses with times; empty where they are unknown
    phones: tuple[TimedPhone, ...] = ()
    is_copy: bool = False  # whether it copies the recording sample by sample, as vocoders do


@dataclass(frozen=True)
class EvaluatedUtterance:
    """An utterance, its recording, and the speech of each system."""

    id: str
    # reads the recording, (S,) float32 at the mel's sample rate; None: there is none
    recorded: Callable[[], np.ndarray] | None
    text: str  # text as spoken; empty where unknown
    language: str  # espeak language code of the text; empty where unknown
    # reads the phones of the recording; None where it is not aligned
    phones: Callable[[], tuple[TimedPhone, ...]] | None
    spoken: Mapping[str, SpeechFile] = field(default_factory=dict)  # the files, by system
    written: str = ""  # the text as typed, for display; empty where unknown
    audio: Path | None = None  # the file that `recorded` reads; None: it reads a store


class ScoreColumn(NamedTuple):
    """One score of the table: a metric of the speech, of the recording, or their difference."""

    name: str
    unit: str  # empty for plain numbers
    better: str  # "lower", "higher", or empty where neither is


class CheckResults(NamedTuple):
    """The results of all checks of one signal."""

    flags: tuple[CheckFlag, ...] = ()  # failures that they found
    unchecked: tuple[CheckFlag, ...] = ()  # checks that do not apply, with the reason as the note
    failed: tuple[CheckFlag, ...] = ()  # checks that raised, with the error as the note


class UtteranceScores(NamedTuple):
    """Scores and flags of one utterance by one system."""

    id: str
    seconds: float  # length of the synthesised speech
    values: dict[str, MetricValue]  # by column; only of metrics that apply
    flags: tuple[CheckFlag, ...] = ()  # failures of the synthesised speech
    recorded_flags: tuple[CheckFlag, ...] = ()  # failures of the recording
    unchecked: tuple[CheckFlag, ...] = ()
    failed: tuple[CheckFlag, ...] = ()  # metrics and checks


@dataclass(frozen=True)
class ScoringTask:
    """Metrics, checks and models by which utterances are scored."""

    metrics: tuple[str, ...]  # names. Metrics of copies or pairs score the utterances that are such
    mel: MelConfig  # mel that copies were made from; also the sample rate of recordings
    checks: tuple[str, ...] = ()  # names
    # the user's recogniser and speaker encoder
    user_models: UserModels = field(default_factory=UserModels)
    # user models by system, where each has its own transcripts
    user_models_of: Mapping[str, UserModels] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class UtteranceScorer:
    """Prepares the input that each kind of metric takes, and scores one signal."""

    file: Path  # path for messages
    speech: LabelledSpeech  # its content
    recorded: LabelledSpeech | None  # the recording, where there is one
    is_copy: bool  # whether the file copies the recording sample by sample
    mel: MelConfig  # mel that copies were made from

    def values(self, name: str) -> dict[str, MetricValue]:
        """Finite scores by one metric, by column; none where it lacks a recording."""
        metric = find_metric(name)
        if isinstance(metric, SpeechMetric):
            values = self._with_recording(metric)
        elif self.recorded is None:
            return {}
        elif isinstance(metric, CopyMetric):
            values = {name: metric.score(self._copy(self.recorded))} if self.is_copy else {}
        else:
            values = {name: metric.score(self._pair)}
        return {column: v for column, v in values.items() if v and math.isfinite(v.value)}

    def _with_recording(self, metric: SpeechMetric) -> dict[str, MetricValue | None]:
        columns, value = _speech_columns(metric.name), metric.score(self.speech)
        recorded = self.recorded.score(metric) if self.recorded is not None else None
        difference = None
        if value is not None and recorded is not None:
            difference = MetricValue(value.value - recorded.value, value.weight)
        return dict(zip(columns, (value, recorded, difference), strict=True))

    def _copy(self, recorded: LabelledSpeech) -> Copy:
        """Recording and copy, cut to the shorter one; they may differ by two frames."""
        speech, mel = self.speech, self.mel
        if speech.sample_rate != mel.sample_rate:
            raise InputError(
                f"{self.file}: {speech.sample_rate} Hz, expected the mel's {mel.sample_rate} Hz; "
                "give the configuration that the file was made with"
            )
        S, S_hat = len(recorded.wav), len(speech.wav)
        if abs(S - S_hat) > TOLERANCE_FRAMES * mel.hop_length:
            raise InputError(
                f"{self.file}: {S_hat} samples, and its recording has {S}: not a copy, sample by "
                "sample; run stage 3 again, or leave the metrics of copies out of --metrics"
            )
        return Copy(recorded.wav[:S_hat], speech.wav[:S], mel)

    @cached_property
    def _pair(self) -> AlignedPair:
        assert self.recorded is not None
        return AlignedPair(self.recorded.features, self.speech.features, self.is_copy)


def columns_of(metrics: Sequence[str]) -> list[ScoreColumn]:
    """The columns that these metrics fill.

    A metric of single signals fills three: of the synthesised speech, of the recording, and the
    first minus the second.
    """
    columns = []
    for name in metrics:
        metric = find_metric(name)
        columns.append(ScoreColumn(name, metric.unit, metric.better))
        if isinstance(metric, SpeechMetric):
            _, recorded, difference = _speech_columns(name)
            columns.append(ScoreColumn(recorded, metric.unit, ""))
            columns.append(ScoreColumn(difference, metric.unit, metric.better))
    return columns


def _speech_columns(name: str) -> tuple[str, str, str]:
    """Columns of a metric of single signals: of the speech, of the recording, the difference."""
    return name, f"{name}_recorded", f"{name}_difference"


def score_utterance(utterance: EvaluatedUtterance, task: ScoringTask) -> dict[str, UtteranceScores]:
    """Scores an utterance, by system; its recording is read and analysed once for all of them.

    A metric that raises has no value, and does not affect the others.
    """
    texts = utterance.text, utterance.language
    recorded, recorded_flags = None, CheckResults().flags
    if utterance.recorded is not None:
        wav, rate = utterance.recorded(), task.mel.sample_rate
        phones = utterance.phones() if utterance.phones is not None else ()
        recorded = LabelledSpeech(
            wav, rate, *texts, phones, utterance.id, recorded=True, user_models=task.user_models
        )
        recorded_flags = run_checks(recorded, None, task.checks).flags
    scores = {}
    for system, spoken in utterance.spoken.items():
        models = task.user_models_of.get(system, task.user_models)
        waveform = read_waveform(spoken.file)
        speech = LabelledSpeech(*waveform, *texts, spoken.phones, utterance.id, user_models=models)
        scorer = UtteranceScorer(spoken.file, speech, recorded, spoken.is_copy, task.mel)
        values, failed = _values(scorer, task.metrics)
        flags, unchecked, unfinished = run_checks(speech, recorded, task.checks)
        seconds = len(waveform.wav) / waveform.sample_rate
        scores[system] = UtteranceScores(
            *(utterance.id, seconds, values),
            *(flags, recorded_flags, unchecked, (*failed, *unfinished)),
        )
    return scores


def _values(
    scorer: UtteranceScorer, metrics: Iterable[str]
) -> tuple[dict[str, MetricValue], list[CheckFlag]]:
    """Scores of one file by column, and the metrics that raised."""
    values: dict[str, MetricValue] = {}
    failed = []
    for name in metrics:
        try:
            values |= scorer.values(name)
        except InputError:
            raise
        except Exception as error:  # noqa: BLE001  (one utterance must not end hours of work)
            failed.append(CheckFlag(name, described(error)))
    return values, failed


def run_checks(
    speech: LabelledSpeech, recorded: LabelledSpeech | None, names: Iterable[str]
) -> CheckResults:
    """Runs checks on one utterance: flags in their order, and why the others did not run."""
    flags, unchecked, failed = [], [], []
    for name in names:
        check = find_check(name)
        if missing := check.missing():
            unchecked.append(CheckFlag(name, f"not installed (pip install {' '.join(missing)})"))
            continue
        try:
            if (note := check.check(speech, recorded)) is not None:
                flags.append(CheckFlag(name, note))
        except NotApplicableError as reason:
            unchecked.append(CheckFlag(name, str(reason)))
        except InputError:
            raise
        except Exception as error:  # noqa: BLE001  (the other checks still run)
            failed.append(CheckFlag(name, described(error)))
    return CheckResults(tuple(flags), tuple(unchecked), tuple(failed))


def read_waveform(path: Path) -> Waveform:
    """Reads synthesised speech; channels are averaged."""
    try:
        samples, sample_rate = soundfile.read(path, dtype="float32", always_2d=True)  # (S, C)
    except soundfile.LibsndfileError as error:
        raise InputError(f"{path}: not readable as audio ({error.error_string})") from error
    wav = samples.mean(axis=1)  # (S,)
    if not len(wav) or not np.isfinite(wav).all():
        content = "no sample" if not len(wav) else "NaN or infinity"
        raise InputError(f"{path}: holds {content}; run stage 3 again, or repair the file")
    return Waveform(wav, sample_rate)
