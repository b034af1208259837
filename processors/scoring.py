"""Scores of utterances: what was synthesised, beside the recording that it stands for."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np
import soundfile

from modules.mel import MelConfig
from processors.metrics import Copy, CopyMetric, Speech, SpeechMetric, Value, find
from utils.errors import InputError

_TOLERANCE_FRAMES = 2  # by which a copy may be shorter or longer: it ends with a whole frame


@dataclass(frozen=True)
class Item:
    """An utterance to be scored.

    Attributes:
        id: Its name.
        file: What was synthesised.
        recorded: Reads the recording, (S,) float32 at the mel's sample rate.
        text: What is said; empty where nobody wrote it down.
        language: espeak language code of the text.
    """

    id: str
    file: Path
    recorded: Callable[[], np.ndarray]
    text: str
    language: str


class Column(NamedTuple):
    """A kind of score."""

    name: str
    unit: str  # empty for plain numbers
    better: str  # "lower", "higher", or empty where it is only for comparison


class Scored(NamedTuple):
    """The scores of an utterance."""

    id: str
    seconds: float  # of what was synthesised
    values: dict[str, Value]  # by column; there is none where there was nothing to judge


class Sound(NamedTuple):
    """A sound file."""

    wav: np.ndarray  # (S,) float32
    sample_rate: int  # Hz


def columns_of(metrics: Sequence[str]) -> list[Column]:
    """What there is to say by these metrics.

    A metric that judges what is said gives three columns: of what was synthesised, of the
    recordings, and the first less the second.
    """
    columns = []
    for name in metrics:
        metric = find(name).METRIC
        columns.append(Column(name, metric.unit, metric.better))
        if metric.judges == "speech":
            recorded, difference = _beside(name)
            columns.append(Column(recorded, metric.unit, ""))
            columns.append(Column(difference, metric.unit, metric.better))
    return columns


def score_items(
    _: str, items: Sequence[Item], metrics: Sequence[str], mel: MelConfig
) -> list[Scored]:
    """Scores utterances: the work of one process (`utils.parallel`).

    Args:
        items: The utterances.
        metrics: By name.
        mel: What copies were made from, and its sample rate.

    Raises:
        InputError: If a file cannot be read, or a copy is not as long as its recording.
    """
    return [_score(item, metrics, mel) for item in items]


def _score(item: Item, metrics: Sequence[str], mel: MelConfig) -> Scored:
    sound = read_sound(item.file)
    wav = item.recorded()
    values: dict[str, Value | None] = {}
    for name in metrics:
        metric = find(name)
        if metric.METRIC.judges == "copy":
            copy = _copy_of(item.file, wav, sound, mel)
            values[name] = cast("CopyMetric", metric).score(copy)
        else:
            recorded = Speech(wav, mel.sample_rate, item.text, item.language)
            spoken = Speech(sound.wav, sound.sample_rate, item.text, item.language)
            values |= _scores_of_speech(name, cast("SpeechMetric", metric), spoken, recorded)
    finite = {name: value for name, value in values.items() if value and math.isfinite(value.value)}
    return Scored(item.id, len(sound.wav) / sound.sample_rate, finite)


def _scores_of_speech(
    name: str, metric: SpeechMetric, spoken: Speech, recorded: Speech
) -> dict[str, Value | None]:
    ours, theirs = metric.score(spoken), metric.score(recorded)
    difference = None
    if ours is not None and theirs is not None:
        difference = Value(ours.value - theirs.value, ours.weight)
    return dict(zip((name, *_beside(name)), (ours, theirs, difference), strict=True))


def _beside(name: str) -> tuple[str, str]:
    return f"{name}_recorded", f"{name}_difference"


def _copy_of(file: Path, wav: np.ndarray, sound: Sound, mel: MelConfig) -> Copy:
    """Both, cut to the shorter one.

    Raises:
        InputError: If their rates differ, or their lengths by more than two frames.
    """
    if sound.sample_rate != mel.sample_rate:
        raise InputError(
            f"{file}: {sound.sample_rate} Hz, and the mel is one of {mel.sample_rate} Hz; give the "
            "configuration that it was made with"
        )
    S, S_hat = len(wav), len(sound.wav)
    if abs(S - S_hat) > _TOLERANCE_FRAMES * mel.hop_length:
        raise InputError(
            f"{file}: {S_hat} samples, and its recording has {S}: not a copy, sample by sample; "
            "run stage 3 again, or leave the metrics of copies out of --metrics"
        )
    return Copy(wav[:S_hat], sound.wav[:S], mel)


def read_sound(path: Path) -> Sound:
    """Reads what was synthesised, mono.

    Raises:
        InputError: If it is no sound file, is empty, or holds values that are not finite.
    """
    try:
        samples, sample_rate = soundfile.read(path, dtype="float32", always_2d=True)  # (S, C)
    except soundfile.LibsndfileError as error:
        raise InputError(f"{path}: not readable as audio ({error.error_string})") from error
    wav = samples.mean(axis=1)  # (S,)
    if not len(wav) or not np.isfinite(wav).all():
        found = "no sample" if not len(wav) else "NaN or infinity"
        raise InputError(f"{path}: holds {found}; run stage 3 again")
    return Sound(wav, sample_rate)
