"""Scores one utterance by every metric and check, for each system that synthesised it."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import soundfile

from modules.mel import MelConfig
from processors.metrics import records
from processors.metrics.recognition.labelled_speech import LabelledSpeech
from processors.metrics.recognition.user_models import UserModels
from processors.metrics.records import Check, Metric, MetricValue, NotApplicableError
from processors.metrics.registry import CHECKS, METRICS
from processors.metrics.signals.aligned_pair import AlignedPair
from processors.records import TimedPhone
from utils.errors import InputError, described

RECORDED = "recorded"  # the recordings, among the systems that have transcripts
OF_RECORDING, DIFFERENCE = "_recorded", "_difference"  # end the names of columns
TOLERANCE_FRAMES = 2  # by which the length of a copy may differ: vocoders write whole frames


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
    # reads the phones of the recording; none where it is not aligned
    phones: Callable[[], tuple[TimedPhone, ...]] = tuple
    spoken: Mapping[str, SpeechFile] = field(default_factory=dict)  # the files, by system
    written: str = ""  # the text as typed, for display; empty where unknown
    audio: Path | None = None  # the file that `recorded` reads; None: it reads a store


class ScoreColumn(NamedTuple):
    """One score of the table: a metric of the speech, of the recording, or their difference."""

    name: str
    unit: str  # empty for plain numbers
    better: str  # "lower", "higher", or empty where neither is


@dataclass(frozen=True)
class UtteranceScores:
    """Scores and flags of one utterance by one system."""

    id: str
    seconds: float  # length of the synthesised speech
    values: Mapping[str, MetricValue]  # by column; only of metrics that apply
    flags: Mapping[str, str] = field(default_factory=dict)  # failures in a line each, by check
    # why metrics and checks have no result, by name
    unscored: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ScoringTask:
    """Metrics, checks and models by which utterances are scored."""

    metrics: tuple[str, ...]  # names
    mel: MelConfig  # mel that copies were made from; also the sample rate of recordings
    checks: tuple[str, ...] = ()  # names
    user_models: UserModels = field(default_factory=UserModels)
    # folders of transcripts by system, RECORDED for recordings; empty without transcripts
    transcripts: Mapping[str, Path] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class UtteranceScorer:
    """Prepares the input that each kind of metric takes, and scores one signal."""

    file: Path  # path for messages
    speech: LabelledSpeech  # its content
    recorded: LabelledSpeech | None  # the recording, where there is one
    is_copy: bool  # whether the file copies the recording sample by sample
    mel: MelConfig  # mel that copies were made from

    def values(self, name: str) -> dict[str, MetricValue]:
        """Returns finite scores by one metric, by column; empty where it is undefined."""
        metric, values = METRICS[name], dict[str, MetricValue | None]()
        if metric.family == "speech":
            value = metric.score(self.speech)
            recorded = self.recorded.score(metric) if self.recorded is not None else None
            values = {name: value, name + OF_RECORDING: recorded}
            if value and recorded:
                values[name + DIFFERENCE] = MetricValue(value.value - recorded.value, value.weight)
        elif self.recorded is not None and metric.family == "pairs":
            values = {name: metric.score(self._pair)}
        elif self.recorded is not None and self.is_copy:
            values = {name: metric.score(self._copy(self.recorded))}
        return {column: v for column, v in values.items() if v and math.isfinite(v.value)}

    def _copy(self, recorded: LabelledSpeech) -> records.Copy:
        """Returns the recording and copy, cut to the shorter one; they may differ by two frames."""
        speech, mel = self.speech, self.mel
        if speech.sample_rate != mel.sample_rate:
            fault = f"{self.file}: {speech.sample_rate} Hz, expected the mel's {mel.sample_rate} Hz"
            raise InputError(f"{fault}; give the configuration that the file was made with")
        S, S_hat = len(recorded.wav), len(speech.wav)
        if abs(S - S_hat) > TOLERANCE_FRAMES * mel.hop_length:
            fault = f"{S_hat} samples, and its recording has {S}: not a copy, sample by sample"
            remedy = "run stage 3 again, or leave the metrics of copies out of --metrics"
            raise InputError(f"{self.file}: {fault}; {remedy}")
        return records.Copy(recorded.wav[:S_hat], speech.wav[:S], mel)

    @cached_property
    def _pair(self) -> AlignedPair:
        assert self.recorded is not None
        return AlignedPair(self.recorded.features, self.speech.features, self.is_copy)


def columns_of(metrics: Sequence[str]) -> list[ScoreColumn]:
    """Returns the columns that these metrics fill.

    A metric of single signals fills three: of the synthesised speech, of the recording, and the
    first minus the second.
    """
    columns = []
    for name in metrics:
        unit, better = METRICS[name].unit, METRICS[name].better
        columns.append(ScoreColumn(name, unit, better))
        if METRICS[name].family == "speech":
            columns.append(ScoreColumn(name + OF_RECORDING, unit, ""))
            columns.append(ScoreColumn(name + DIFFERENCE, unit, better))
    return columns


def lack(scorer: Metric | Check, user_models: UserModels, *, recorded: bool, is_copy: bool) -> str:
    """Returns why a metric or check does not apply to an utterance; empty if it does."""
    packages = scorer.packages
    if isinstance(scorer, Metric) and scorer.takes_encoder and user_models.encoder is not None:
        packages = ()
    if missing := records.missing_packages(packages):
        return f"not installed (pip install {' '.join(missing)})"
    if isinstance(scorer, Check) or scorer.family == "speech":
        return ""
    if scorer.family == "copies" and not is_copy:
        return "compares copies with their recordings; this speech has its own timing"
    return "" if recorded else "there are no recordings to compare with; give them by --recordings"


def score_utterance(utterance: EvaluatedUtterance, task: ScoringTask) -> dict[str, UtteranceScores]:
    """Scores an utterance, by system; its recording is read and analysed once for all of them.

    A metric or check that raises has no result, and does not affect the others.
    """

    def labelled(
        wav: np.ndarray, sample_rate: int, phones: tuple[TimedPhone, ...], system: str
    ) -> LabelledSpeech:
        transcripts = task.transcripts.get(system, task.user_models.transcripts)
        models = replace(task.user_models, transcripts=transcripts)
        return LabelledSpeech(
            wav, sample_rate, utterance.text, utterance.language, phones, utterance.id, models
        )

    recorded = None
    if utterance.recorded is not None:
        wav, rate = utterance.recorded(), task.mel.sample_rate
        recorded = labelled(wav, rate, utterance.phones(), RECORDED)
    scores = {}
    for system, spoken in utterance.spoken.items():
        speech = labelled(*read_waveform(spoken.file), spoken.phones, system)
        scorer = UtteranceScorer(spoken.file, speech, recorded, spoken.is_copy, task.mel)
        scores[system] = _scores(utterance.id, scorer, task)
    return scores


def _scores(id: str, scorer: UtteranceScorer, task: ScoringTask) -> UtteranceScores:
    """Returns scores of one file, and why some are missing."""
    speech, recorded = scorer.speech, scorer.recorded
    values: dict[str, MetricValue] = {}
    flags: dict[str, str] = {}
    unscored: dict[str, str] = {}
    has_recording, is_copy = recorded is not None, scorer.is_copy
    scored: list[Metric | Check] = [METRICS[name] for name in task.metrics]
    scored += [CHECKS[name] for name in task.checks]
    for record in scored:
        name = record.name
        try:
            if why := lack(record, speech.user_models, recorded=has_recording, is_copy=is_copy):
                raise NotApplicableError(why)
            if isinstance(record, Metric):
                values |= scorer.values(name)
                if name not in values:
                    raise NotApplicableError(f"lacks {record.needs}")
            elif (note := record.score(speech, recorded)) is not None:
                flags[name] = note
        except NotApplicableError as reason:
            unscored[name] = str(reason)
        except InputError:
            raise
        except Exception as error:  # noqa: BLE001  (one utterance must not end hours of work)
            unscored[name] = f"fails: {described(error)}"
    return UtteranceScores(id, len(speech.wav) / speech.sample_rate, values, flags, unscored)


def read_waveform(path: Path) -> tuple[np.ndarray, int]:
    """Reads synthesised speech, (S,) float32, and its sample rate; channels are averaged."""
    try:
        samples, sample_rate = soundfile.read(path, dtype="float32", always_2d=True)  # (S, C)
    except soundfile.LibsndfileError as error:
        raise InputError(f"{path}: not readable as audio ({error.error_string})") from error
    wav = samples.mean(axis=1)  # (S,)
    if not len(wav) or not np.isfinite(wav).all():
        content = "no sample" if not len(wav) else "NaN or infinity"
        raise InputError(f"{path}: holds {content}; run stage 3 again, or repair the file")
    return wav, sample_rate
