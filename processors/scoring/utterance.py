"""Scores of utterances: what was synthesised, beside the recording that it stands for."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from modules.mel import MelConfig
from processors.records import TimedPhone
from processors.scoring.checks import Flag, run_checks
from processors.scoring.judge import Judge, Original, Sound, beside, read_sound
from processors.scoring.metrics import Value, find
from processors.scoring.plugins import Plugins
from processors.scoring.recognition import Speech
from utils.errors import InputError, described


@dataclass(frozen=True)
class Spoken:
    """A file that says what an utterance says.

    Attributes:
        file: The sound.
        phones: What is spoken in it and when; none where nobody wrote it down.
        is_copy: Whether it stands for the recording sample by sample, as what vocoders write.
    """

    file: Path
    phones: tuple[TimedPhone, ...] = ()
    is_copy: bool = False


@dataclass(frozen=True)
class Item:
    """An utterance, and what several systems made of it.

    Attributes:
        id: Its name.
        recorded: Reads the recording, (S,) float32 at the mel's sample rate; None: there is none.
        text: What is said; empty where nobody wrote it down.
        language: espeak language code of the text; empty where unknown.
        speaker: Who speaks in the recording; empty where unknown.
        phones: Reads the phones of the recording; None where nobody aligned them.
        spoken: The files, by system.
        written: The text as it was typed, for people to read; empty where that is not known.
    """

    id: str
    recorded: Callable[[], np.ndarray] | None
    text: str
    language: str
    speaker: str
    phones: Callable[[], tuple[TimedPhone, ...]] | None
    spoken: Mapping[str, Spoken]
    written: str = ""


class Column(NamedTuple):
    """A kind of score."""

    name: str
    unit: str  # empty for plain numbers
    better: str  # "lower", "higher", or empty where it is only for comparison


class Scored(NamedTuple):
    """What was found out about an utterance."""

    id: str
    seconds: float  # of what was synthesised
    values: dict[str, Value]  # by column; there is none where there was nothing to judge
    flags: tuple[Flag, ...] = ()  # failures of what was synthesised
    recorded_flags: tuple[Flag, ...] = ()  # of the recording
    unchecked: tuple[Flag, ...] = ()  # checks that could not judge, with the reason as the note
    failed: tuple[Flag, ...] = ()  # metrics and checks that broke down, with the error as the note


@dataclass(frozen=True)
class ScoringTask:
    """What is done to each utterance.

    Attributes:
        metrics: By name. Those that need a copy or a recording judge utterances that have one.
        mel: What copies were made from, and the sample rate of recordings.
        checks: By name.
        plugins: The user's recogniser and encoder.
        plugins_of: Others, by system: transcripts are of the files of one.
    """

    metrics: tuple[str, ...]
    mel: MelConfig
    checks: tuple[str, ...] = ()
    plugins: Plugins = field(default_factory=Plugins)
    plugins_of: Mapping[str, Plugins] = field(default_factory=dict)

    def of(self, system: str) -> "ScoringTask":
        """The same with what the user brings for the files of one system."""
        return replace(self, plugins=self.plugins_of.get(system, self.plugins))


def columns_of(metrics: Sequence[str]) -> list[Column]:
    """What there is to say by these metrics.

    A metric that judges sounds by themselves gives three columns: of what was synthesised, of the
    recordings, and the first less the second.
    """
    columns = []
    for name in metrics:
        metric = find(name).METRIC
        columns.append(Column(name, metric.unit, metric.better))
        if metric.judges == "speech":
            recorded, difference = beside(name)
            columns.append(Column(recorded, metric.unit, ""))
            columns.append(Column(difference, metric.unit, metric.better))
    return columns


def score_item(item: Item, task: ScoringTask) -> dict[str, Scored]:
    """Scores an utterance.

    Args:
        item: The utterance.
        task: What is done to it.

    Returns:
        By system. The recording is read and analysed once for all of them. A metric that breaks
        down has no value there, and costs no other its own.

    Raises:
        InputError: If a file cannot be read, or a copy is not as long as its recording.
    """
    original = None
    if item.recorded is not None:
        sound = Sound(item.recorded(), task.mel.sample_rate)
        phones = item.phones() if item.phones is not None else ()
        speech = replace(_speech_of(item, sound, phones, task), recorded=True)
        original = Original(speech, task.checks)
    return {
        system: _score_file(spoken, item, original, task.of(system))
        for system, spoken in item.spoken.items()
    }


def _score_file(spoken: Spoken, item: Item, original: Original | None, task: ScoringTask) -> Scored:
    sound = read_sound(spoken.file)
    speech = _speech_of(item, sound, spoken.phones, task)
    judge = Judge(spoken.file, speech, original, spoken.is_copy, task.mel)
    values: dict[str, Value | None] = {}
    failed: dict[str, str] = {}
    for name in task.metrics:
        try:
            values |= judge.values(name)
        except InputError:
            raise
        except Exception as error:  # noqa: BLE001  (hours of work must not end by one utterance)
            failed[name] = described(error)
    checked = run_checks(speech, original.speech if original else None, task.checks)
    failed |= checked.failed
    return Scored(
        item.id,
        len(sound.wav) / sound.sample_rate,
        {name: value for name, value in values.items() if value and math.isfinite(value.value)},
        checked.flags,
        original.checked.flags if original else (),
        tuple(Flag(name, reason) for name, reason in checked.skipped.items()),
        tuple(Flag(name, reason) for name, reason in failed.items()),
    )


def _speech_of(
    item: Item, sound: Sound, phones: tuple[TimedPhone, ...], task: ScoringTask
) -> Speech:
    return Speech(*sound, item.text, item.language, phones, item.id, plugins=task.plugins)
