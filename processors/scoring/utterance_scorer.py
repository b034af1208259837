"""Scores one utterance by every metric and check, for each system that synthesised it."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np
import soundfile

from modules.mel import MelConfig
from processors.records import TimedPhone
from processors.scoring.acoustic_features import AcousticFeatures
from processors.scoring.aligned_pair import AlignedPair
from processors.scoring.checks import CheckResults, Flag, run_checks
from processors.scoring.metrics import Copy, CopyMetric, PairMetric, SpeechMetric, Value, find
from processors.scoring.recognition import LabelledSpeech
from processors.scoring.user_models import UserModels
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
    speaker: str  # speaker of the recording; empty where unknown
    # reads the phones of the recording; None where it is not aligned
    phones: Callable[[], tuple[TimedPhone, ...]] | None
    spoken: Mapping[str, SpeechFile]  # the files, by system
    written: str = ""  # the text as typed, for display; empty where unknown


class ScoreColumn(NamedTuple):
    """One score of the table: a metric of the speech, of the recording, or their difference."""

    name: str
    unit: str  # empty for plain numbers
    better: str  # "lower", "higher", or empty where neither is


class UtteranceScores(NamedTuple):
    """Scores and flags of one utterance by one system."""

    id: str
    seconds: float  # length of the synthesised speech
    values: dict[str, Value]  # by column; only of metrics that apply
    flags: tuple[Flag, ...] = ()  # failures of the synthesised speech
    recorded_flags: tuple[Flag, ...] = ()  # failures of the recording
    unchecked: tuple[Flag, ...] = ()  # checks that do not apply, with the reason as the note
    failed: tuple[Flag, ...] = ()  # metrics and checks that raised, with the error as the note


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

    def of(self, system: str) -> "ScoringTask":
        """The task with the user models of one system."""
        return replace(self, user_models=self.user_models_of.get(system, self.user_models))


@dataclass(frozen=True, eq=False)
class ReferenceSpeech:
    """The recording of an utterance; everything derived from it is computed once."""

    speech: LabelledSpeech  # the recording
    checks: tuple[str, ...]  # names of the checks to run on it
    _values: dict[str, Value | None] = field(default_factory=dict, repr=False)

    @cached_property
    def features(self) -> AcousticFeatures:
        """Acoustic features of the recording."""
        return _features_of(self.speech)

    @cached_property
    def checked(self) -> CheckResults:
        """Failures of the recording."""
        return run_checks(self.speech, None, self.checks)

    def value(self, name: str, metric: SpeechMetric) -> Value | None:
        """Scores the recording by a metric of single signals.

        Args:
            name: Name of the metric.
            metric: Its module.
        """
        if name not in self._values:
            self._values[name] = metric.score(self.speech)
        return self._values[name]


@dataclass(frozen=True, eq=False)
class UtteranceScorer:
    """Prepares the input that each kind of metric takes, and scores one file."""

    file: Path  # path for messages
    speech: LabelledSpeech  # its content
    reference: ReferenceSpeech | None  # the recording, where there is one
    is_copy: bool  # whether the file copies the recording sample by sample
    mel: MelConfig  # mel that copies were made from

    def values(self, name: str) -> dict[str, Value | None]:
        """Scores by one metric, by column; empty where it needs a recording and there is none."""
        module = find(name)
        kind = module.METRIC.input
        if kind == "speech":
            return self._of_speech(name, cast("SpeechMetric", module))
        if self.reference is None or (kind == "copy" and not self.is_copy):
            return {}
        if kind == "copy":
            return {name: cast("CopyMetric", module).score(self._copy)}
        return {name: cast("PairMetric", module).score(self._pair)}

    def _of_speech(self, name: str, metric: SpeechMetric) -> dict[str, Value | None]:
        value = metric.score(self.speech)
        if self.reference is None:
            return {name: value}
        recorded = self.reference.value(name, metric)
        difference = None
        if value is not None and recorded is not None:
            difference = Value(value.value - recorded.value, value.weight)
        return dict(zip(_speech_columns(name), (value, recorded, difference), strict=True))

    @cached_property
    def _copy(self) -> Copy:
        """Recording and copy, cut to the shorter one.

        Raises:
            InputError: If their rates differ, or their lengths by more than two frames.
        """
        speech, mel = self.speech, self.mel
        if speech.sample_rate != mel.sample_rate:
            raise InputError(
                f"{self.file}: {speech.sample_rate} Hz, expected the mel's {mel.sample_rate} Hz; "
                "give the configuration that the file was made with"
            )
        wav = cast("ReferenceSpeech", self.reference).speech.wav
        S, S_hat = len(wav), len(speech.wav)
        if abs(S - S_hat) > TOLERANCE_FRAMES * mel.hop_length:
            raise InputError(
                f"{self.file}: {S_hat} samples, and its recording has {S}: not a copy, sample by "
                "sample; run stage 3 again, or leave the metrics of copies out of --metrics"
            )
        return Copy(wav[:S_hat], speech.wav[:S], mel)

    @cached_property
    def _pair(self) -> AlignedPair:
        recorded = cast("ReferenceSpeech", self.reference).features
        return AlignedPair(recorded, _features_of(self.speech), self.is_copy)


def columns_of(metrics: Sequence[str]) -> list[ScoreColumn]:
    """The columns that these metrics fill.

    A metric of single signals fills three: of the synthesised speech, of the recording, and the
    first minus the second.
    """
    columns = []
    for name in metrics:
        metric = find(name).METRIC
        columns.append(ScoreColumn(name, metric.unit, metric.better))
        if metric.input == "speech":
            _, recorded, difference = _speech_columns(name)
            columns.append(ScoreColumn(recorded, metric.unit, ""))
            columns.append(ScoreColumn(difference, metric.unit, metric.better))
    return columns


def score_utterance(utterance: EvaluatedUtterance, task: ScoringTask) -> dict[str, UtteranceScores]:
    """Scores an utterance.

    Args:
        utterance: Recording, text and the files of the systems.
        task: Metrics and checks.

    Returns:
        Scores by system. The recording is read and analysed once for all of them. A metric that
        raises has no value, and does not affect the others.

    Raises:
        InputError: If a file cannot be read, or a copy is not as long as its recording.
    """
    reference = None
    if utterance.recorded is not None:
        waveform = Waveform(utterance.recorded(), task.mel.sample_rate)
        phones = utterance.phones() if utterance.phones is not None else ()
        speech = replace(_speech_of(utterance, waveform, phones, task), recorded=True)
        reference = ReferenceSpeech(speech, task.checks)
    return {
        system: _score_file(spoken, utterance, reference, task.of(system))
        for system, spoken in utterance.spoken.items()
    }


def _score_file(
    spoken: SpeechFile,
    utterance: EvaluatedUtterance,
    reference: ReferenceSpeech | None,
    task: ScoringTask,
) -> UtteranceScores:
    waveform = read_waveform(spoken.file)
    speech = _speech_of(utterance, waveform, spoken.phones, task)
    scorer = UtteranceScorer(spoken.file, speech, reference, spoken.is_copy, task.mel)
    values: dict[str, Value | None] = {}
    failed: dict[str, str] = {}
    for name in task.metrics:
        try:
            values |= scorer.values(name)
        except InputError:
            raise
        except Exception as error:  # noqa: BLE001  (one utterance must not end hours of work)
            failed[name] = described(error)
    checked = run_checks(speech, reference.speech if reference else None, task.checks)
    failed |= checked.failed
    return UtteranceScores(
        utterance.id,
        len(waveform.wav) / waveform.sample_rate,
        {name: value for name, value in values.items() if value and math.isfinite(value.value)},
        checked.flags,
        reference.checked.flags if reference else (),
        tuple(Flag(name, reason) for name, reason in checked.skipped.items()),
        tuple(Flag(name, reason) for name, reason in failed.items()),
    )


def _speech_of(
    utterance: EvaluatedUtterance,
    waveform: Waveform,
    phones: tuple[TimedPhone, ...],
    task: ScoringTask,
) -> LabelledSpeech:
    text, language = utterance.text, utterance.language
    models = task.user_models
    return LabelledSpeech(*waveform, text, language, phones, utterance.id, user_models=models)


def _features_of(speech: LabelledSpeech) -> AcousticFeatures:
    encoder = speech.user_models.encoder
    return AcousticFeatures(speech.wav, speech.sample_rate, speech.phones, encoder)


def _speech_columns(name: str) -> tuple[str, str, str]:
    """Columns of a metric of single signals: of the speech, of the recording, the difference."""
    return name, f"{name}_recorded", f"{name}_difference"


def read_waveform(path: Path) -> Waveform:
    """Reads synthesised speech; channels are averaged.

    Raises:
        InputError: If it is not an audio file, is empty, or holds values that are not finite.
    """
    try:
        samples, sample_rate = soundfile.read(path, dtype="float32", always_2d=True)  # (S, C)
    except soundfile.LibsndfileError as error:
        raise InputError(f"{path}: not readable as audio ({error.error_string})") from error
    wav = samples.mean(axis=1)  # (S,)
    if not len(wav) or not np.isfinite(wav).all():
        found = "no sample" if not len(wav) else "NaN or infinity"
        raise InputError(f"{path}: holds {found}; run stage 3 again, or repair the file")
    return Waveform(wav, sample_rate)
