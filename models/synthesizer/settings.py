"""What can be asked of the synthesis of a text: controls, transforms and contours of pitch."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, fields, replace
from inspect import signature
from numbers import Real
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import torch
from torch import Tensor

from config.checks import CONTROL_RANGE, MAX_SEED, MAX_SHIFT_HZ, MAX_STEPS, MAX_TEMPERATURE
from models.base.model import Control
from models.synthesizer.speech import Speech
from modules.variance.pitch_transform import PitchTransform
from processors.dataset.statistics import CorpusStats
from processors.text.pronunciations import Lexicon
from utils.arrays import ARRAY_SUFFIXES, parse_number, read_array, read_numbers
from utils.errors import InputError, nearest
from utils.files import user_path
from utils.logging import get_logger

RAMP = "ramp:"
_UNCHANGED = PitchTransform()
_NAMED = {"flatten": PitchTransform(flatten=True), "invert": PitchTransform(invert=True)}
_DEVIATIONS = 2  # from the mean; 95 % of normally distributed pitch are within
_SHARE = 0.2  # of the voiced frames of a text, that must be beyond for a warning


@dataclass(frozen=True)
class PitchContour:
    """Factors on Hz, stretched over a text of any number of sentences by linear interpolation."""

    factors: tuple[float, ...]  # at equal distances from the start to the end of the text
    name: str  # for records: its specification

    def over(self, spans: Tensor) -> PitchTransform:
        """Returns the transform of clauses by their places in the text, (B, 2), from 0 to 1."""

        def multiplied(pitch_hz: Tensor, lengths: Tensor) -> Tensor:  # of phones or frames, (B, L)
            start, end = spans.to(pitch_hz).T[:, :, None]  # (B, 1) each
            index = torch.arange(pitch_hz.shape[1], device=pitch_hz.device)
            place = start + (end - start) * index / lengths[:, None].clamp(min=1)  # (B, L)
            factors = torch.tensor(self.factors).to(pitch_hz)
            last = len(factors) - 1
            position = place.clamp(max=1) * last
            left = position.long()
            right = (left + 1).clamp(max=last)
            return pitch_hz * torch.lerp(factors[left], factors[right], position - left)

        return PitchTransform(custom=multiplied)


TransformFunction = Callable[[Tensor, Tensor], Tensor]  # of Hz, (B, L), and lengths, (B,)
Transform = PitchTransform | PitchContour | TransformFunction | Literal["flatten", "invert"]


def contour_of(spec: str) -> PitchContour:
    """Reads a contour: `ramp:A:B`, from factor A to B, or a text file of one factor a line."""
    if spec.startswith(RAMP):
        numbers = spec.removeprefix(RAMP).split(":")
        if len(numbers) != 2:
            raise InputError(f"{spec!r}: expected ramp:A:B, such as ramp:0.5:1.5")
        factors = [(spec, parse_number(number, spec)) for number in numbers]
    else:
        path = user_path(Path(spec))
        factors = [(f"{path}, line {n}", value) for n, value in read_numbers(path).items()]
    low, high = CONTROL_RANGE
    for place, value in factors:
        if not low <= value <= high:
            limits = f"expected a number from {low:g} to {high:g}"
            raise InputError(f"{place}: factor {value:g}; {limits}")
    return PitchContour(tuple(value for _, value in factors), spec)


def transform_of(given: Transform | None) -> PitchTransform | PitchContour | None:
    """Turns a transform of pitch in any of its forms into a record."""
    if given is None or isinstance(given, PitchTransform | PitchContour):
        return given
    if isinstance(given, str) and given in _NAMED:
        return _NAMED[given]
    custom = cast("TransformFunction", given)
    try:
        signature(custom).bind("hz", "lengths")
    except (TypeError, ValueError):  # no function, or one of other arguments
        raise InputError(
            f"pitch_transform is {given!r}; expected 'flatten', 'invert', a PitchTransform such as"
            " PitchTransform(amplify=1.5), a PitchContour, or a function of Hz and lengths"
        ) from None
    return PitchTransform(custom=custom)


def read_pitch(path: Path) -> tuple[float, ...]:
    """Reads one value per phone, Hz, 0 = unvoiced.

    The file is a `.npy`, `.pt` or `.pth` array (N,) or (1, N), or text of one number a line.
    """
    if path.suffix.lower() in ARRAY_SUFFIXES:
        array = read_array(path)
        row = array[0] if array.ndim == 2 and len(array) == 1 else array
        if row.ndim != 1 or row.dtype.kind not in "iuf" or row.size == 0:
            raise InputError(
                f"{path}: {array.dtype} of shape {array.shape}; expected numbers, (N,) or (1, N)"
            )
        values = {f"{path}, value {n}": float(value) for n, value in enumerate(row, start=1)}
    else:
        values = {f"{path}, line {n}": value for n, value in read_numbers(path).items()}
    for place, value in values.items():
        if not (np.isfinite(value) and value >= 0):
            raise InputError(f"{place}: {value:g}; expected Hz, 0 where unvoiced")
    if not any(values.values()):
        raise InputError(f"{path}: all values are 0, unvoiced; expected Hz")
    return tuple(values.values())


def checked_pitch(pitch: object) -> tuple[float, ...]:
    """Checks the pitch of a text, Hz per phone, 0 = unvoiced: a sequence, array or tensor (N,)."""
    try:
        values = np.asarray(pitch)
    except (TypeError, ValueError, RuntimeError):  # NumPy cannot convert it
        values = np.array(None)
    if values.ndim != 1 or values.dtype.kind not in "iuf":
        shown = " ".join(repr(pitch).split())[:80]
        raise InputError(f"pitch is {shown}; expected a list of Hz, one for each phone")
    for n, hz in enumerate(values, start=1):
        if not (np.isfinite(hz) and hz >= 0):
            raise InputError(f"value {n} of the pitch is {hz:g}; expected Hz, 0 where unvoiced")
    return tuple(map(float, values))


class RangeWarning:
    """Warns once if the requested pitch is not that of the speaker."""

    def __init__(self, stats: CorpusStats | None, voiced: Collection[str]) -> None:
        self._speakers = {} if stats is None else stats.speakers
        self._voiced = voiced  # phones
        self._warned = False

    def check(self, clause: Speech) -> None:
        """Warns if more than a fifth of the voiced frames are beyond two standard deviations."""
        speaker, f0 = clause.speaker, clause.f0
        if self._warned or speaker not in self._speakers or f0 is None:
            return
        pitch = self._speakers[speaker].f0_phone
        low, high = pitch.mean - _DEVIATIONS * pitch.std, pitch.mean + _DEVIATIONS * pitch.std
        voiced = [name in self._voiced for name in clause.phone_names]
        f0 = f0[np.repeat(voiced, clause.durations)]
        if f0.any():  # else all of it is too low
            f0 = f0[f0 > 0]  # given pitch may make any phone unvoiced
        beyond = np.count_nonzero((f0 < low) | (f0 > high)) / max(len(f0), 1)
        if beyond > _SHARE:
            self._warned = True
            get_logger(__name__).warning(
                "%.0f %% of the requested pitch is beyond the %.0f to %.0f Hz of most recordings of"
                " %s, where a voice may not follow; request pitch nearer to it",
                100 * beyond,
                low,
                high,
                speaker,
            )


@dataclass(frozen=True)
class Settings:
    """How a text is spoken.

    Factors act on what the model predicts, from 0.1 to 10: 1.2 is 20 % higher, louder or slower.
    """

    speaker: str | None = None  # name; None: the model's default; in batch mode, as recorded
    # Fields with a control need that of the model, whose `infer` takes them by name.
    # `pitch_control` is a factor on f0 in Hz, after the transform
    pitch_control: float = field(default=1.0, metadata={"control": "pitch"})
    energy_control: float = field(default=1.0, metadata={"control": "energy"})
    # also of the pauses between sentences
    duration_control: float = field(default=1.0, metadata={"control": "duration"})
    # of the predicted f0, around the speaker's mean: "flatten", "invert", a record, or a function
    # of Hz and lengths, which is called for each sentence; a contour stretches over the whole text
    pitch_transform: Transform | None = field(default=None, metadata={"control": "pitch_transform"})
    # Hz for each phone of `Synthesizer.phone_names`, 0 = unvoiced, instead of the predicted f0
    pitch: Sequence[float] | None = field(default=None, metadata={"control": "pitch"})
    # Euler steps of a flow, from 1 to 50, and the factor on its noise, from 0 to 2; None: those of
    # the voice
    steps: int | None = field(default=None, metadata={"control": "steps"})
    temperature: float | None = field(default=None, metadata={"control": "temperature"})
    # words and how they are said (docs/text.md), before the entries of the synthesizer's
    lexicon: Lexicon = None
    fade_out: int = 0  # frames at the end of the wav that fade linearly
    # Of models that draw random numbers, such as Tacotron 2 and WaveGlow; from 0 to 2**63 - 1
    seed: int = 0

    @classmethod
    def of(cls, values: dict[str, Any]) -> "Settings":
        """Builds settings from fields by name."""
        names = [field.name for field in fields(cls)]
        for name in values:
            if name not in names:
                meant = nearest(name, names)
                if name == "pace":  # as of the command line
                    meant = "; did you mean duration_control, which is 1 / pace?"
                raise InputError(f"no setting {name!r}{meant} (known: {', '.join(names)})")
        return cls(**values)

    def checked(self, model: str, controls: Collection[Control]) -> "Settings":
        """Returns these settings after a check, with the transform and the pitch as records.

        A transform that changes nothing is left out.

        Raises:
            InputError: If a value has another type or is out of range, a transform and given pitch
                come together, or the model lacks a control that is asked for.
        """
        transform = transform_of(self.pitch_transform)
        if isinstance(transform, PitchTransform) and abs(transform.shift_hz) > MAX_SHIFT_HZ:
            raise InputError(
                f"pitch_transform shifts by {transform.shift_hz:g} Hz; expected"
                f" {-MAX_SHIFT_HZ:g} to {MAX_SHIFT_HZ:g}"
            )
        transform = None if transform == _UNCHANGED else transform
        pitch = None if self.pitch is None else checked_pitch(self.pitch)
        if transform is not None and pitch is not None:
            raise InputError(
                "a pitch transform acts on predicted pitch, and the pitch of this text is given;"
                " leave one of them out"
            )
        settings = replace(
            self,
            pitch_control=_factor("pitch_control", self.pitch_control),
            energy_control=_factor("energy_control", self.energy_control),
            duration_control=_factor("duration_control", self.duration_control),
            pitch_transform=transform,
            pitch=pitch,
            steps=None if self.steps is None else _whole("steps", self.steps, MAX_STEPS, 1),
            temperature=None
            if self.temperature is None
            else _factor("temperature", self.temperature, (0.0, MAX_TEMPERATURE)),
            fade_out=_whole("fade_out", self.fade_out),
            seed=_whole("seed", self.seed, MAX_SEED),
        )
        changed = settings.changed_controls()
        needed = {field.metadata["control"] for field in fields(settings) if field.name in changed}
        if lacking := sorted(needed - set(controls)):
            raise InputError(
                f"{model} has no control of {', '.join(lacking)} (it has:"
                f" {', '.join(sorted(controls)) or 'none'}); leave it out, or choose another model"
            )
        return settings

    @property
    def transform(self) -> PitchTransform | PitchContour | None:
        """The transform of pitch as a record."""
        return transform_of(self.pitch_transform)

    @property
    def changes_pitch(self) -> bool:
        """Whether the pitch is not what the model predicts."""
        return (self.pitch_control, self.transform, self.pitch) != (1, None, None)

    def changed_controls(self) -> dict[str, Any]:
        """Returns the fields for the acoustic model that differ from their defaults."""
        return {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if "control" in field.metadata and getattr(self, field.name) != field.default
        }

    def record(self) -> dict[str, Any]:
        """Returns the settings but speaker, lexicon and given pitch, ready for JSON."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        del values["speaker"], values["lexicon"], values["pitch"]
        if isinstance(self.transform, PitchContour):
            return values | {"pitch_transform": {"custom": self.transform.name}}
        plain = vars(_UNCHANGED)
        items = vars(self.transform or _UNCHANGED).items()
        changes = {name: value for name, value in items if value != plain[name]}
        return values | {"pitch_transform": changes}


RECORDED = tuple(Settings().record())  # names in a record


def _factor(name: str, value: object, limits: tuple[float, float] = CONTROL_RANGE) -> float:
    low, high = limits
    if isinstance(value, Real) and not isinstance(value, bool) and low <= float(value) <= high:
        return float(value)
    raise InputError(f"{name} is {value!r}; expected a number from {low:g} to {high:g}")


def _whole(name: str, value: object, most: int | None = None, least: int = 0) -> int:
    limit = f", {least} or more" if most is None else f" from {least} to {most}"
    if not (isinstance(value, int | np.integer) and least <= value <= (most or value)):
        raise InputError(f"{name} is {value!r}; expected a whole number{limit}")
    return int(value)
