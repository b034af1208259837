"""What can be asked of the synthesis of a text, and whether a model can do it."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, fields, replace
from numbers import Real
from typing import Any

import numpy as np

from config.checks import CONTROL_RANGE, MOST_SEED, MOST_SHIFT_HZ
from models.base.acoustic import Control
from models.synthesizer.pitch import (
    PitchContour,
    Transform,
    changes_of,
    checked_pitch,
    transform_of,
)
from modules.variance.contour import PitchTransform
from utils.errors import InputError, nearest


def _needs(control: Control) -> dict[str, Control]:
    """Metadata of a field that needs a control of the model, whose `infer` takes it by name."""
    return {"control": control}


@dataclass(frozen=True)
class Settings:
    """How a text is spoken.

    Factors act on what the model predicts, from 0.1 to 10: 1.2 is 20 % higher, louder or slower.
    """

    speaker: str | None = None  # name; None: the model's only one; in batch mode, as recorded
    pitch_control: float = field(
        default=1.0, metadata=_needs("pitch")
    )  # factor on f0 in Hz, after the transform
    energy_control: float = field(default=1.0, metadata=_needs("energy"))
    duration_control: float = field(
        default=1.0, metadata=_needs("duration")
    )  # also of the pauses between sentences
    # of the predicted f0, around the speaker's mean: "flatten", "invert", a record, or a function
    # of Hz and lengths, which is called for each sentence; a contour stretches over the whole text
    pitch_transform: Transform | None = field(default=None, metadata=_needs("pitch_transform"))
    # Hz for each phone of `Synthesizer.phone_names`, 0 = unvoiced, instead of the predicted f0
    pitch: Sequence[float] | None = field(default=None, metadata=_needs("pitch"))
    fade_out: int = 0  # frames at the end of the wav that fade linearly
    # Of models that draw random numbers, such as Tacotron 2 and WaveGlow; from 0 to 2**63 - 1
    seed: int = 0

    @classmethod
    def of(cls, values: dict[str, Any]) -> "Settings":
        """Builds settings from fields by name."""
        names = [field.name for field in fields(cls)]
        for name in values:
            if name not in names:
                listed = ", ".join(names)
                meant = nearest(name, names)
                if name == "pace":  # as of the command line
                    meant = "; did you mean duration_control, which is 1 / pace?"
                raise InputError(f"no setting {name!r}{meant} (known: {listed})")
        return cls(**values)

    def checked(self, model: str, controls: Collection[Control]) -> "Settings":
        """Returns these settings after a check, with the transform and the pitch as records.

        A transform that changes nothing is left out.

        Raises:
            InputError: If a value has another type or is out of range, a transform and given pitch
                come together, or the model lacks a control that is asked for.
        """
        transform = transform_of(self.pitch_transform)
        if isinstance(transform, PitchTransform) and abs(transform.shift_hz) > MOST_SHIFT_HZ:
            raise InputError(
                f"pitch_transform shifts by {transform.shift_hz:g} Hz; expected"
                f" {-MOST_SHIFT_HZ:g} to {MOST_SHIFT_HZ:g}"
            )
        transform = None if transform == PitchTransform() else transform
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
            fade_out=_whole("fade_out", self.fade_out),
            seed=_whole("seed", self.seed, MOST_SEED),
        )
        if lacking := sorted(settings._asked() - set(controls)):
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
    def change_pitch(self) -> bool:
        """Whether the pitch is not what the model predicts."""
        return (self.pitch_control, self.transform, self.pitch) != (1, None, None)

    def changed_controls(self) -> dict[str, Any]:
        """The fields for the acoustic model that differ from their defaults."""
        return {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if "control" in field.metadata and getattr(self, field.name) != field.default
        }

    def record(self) -> dict[str, Any]:
        """The settings but speaker and given pitch, ready for JSON."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        del values["speaker"], values["pitch"]
        return values | {"pitch_transform": changes_of(self.transform)}

    def _asked(self) -> set[Control]:
        changed = self.changed_controls()
        return {field.metadata["control"] for field in fields(self) if field.name in changed}


RECORDED = tuple(Settings().record())  # names in a record


def _factor(name: str, value: object) -> float:
    low, high = CONTROL_RANGE
    if isinstance(value, Real) and not isinstance(value, bool) and low <= float(value) <= high:
        return float(value)
    raise InputError(f"{name} is {value!r}; expected a number from {low:g} to {high:g}")


def _whole(name: str, value: object, most: int | None = None) -> int:
    limit = ", 0 or more" if most is None else f" from 0 to {most}"
    if not (isinstance(value, int | np.integer) and 0 <= value <= (most or value)):
        raise InputError(f"{name} is {value!r}; expected a whole number{limit}")
    return int(value)
