"""What can be asked of the prosody of a text, and whether a model can do it."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import fields
from inspect import signature
from typing import Literal, NamedTuple, cast

from torch import Tensor

from models.base.acoustic import Control
from models.synthesizer.prosody.contours import PitchContour
from models.synthesizer.prosody.given_pitch import checked_pitch
from modules.pitch_transform import PitchTransform
from utils.control_flags import CONTROL_RANGE, MOST_SHIFT_HZ
from utils.errors import InputError

_NAMED = {"flatten": PitchTransform(flatten=True), "invert": PitchTransform(invert=True)}
TransformFunction = Callable[[Tensor, Tensor], Tensor]  # of Hz, (B, L), and lengths, (B,)
Transform = PitchTransform | PitchContour | TransformFunction | Literal["flatten", "invert"]


class Controls(NamedTuple):
    """Prosody of a text. Factors act on what the model predicts: 1.2 is 20 % higher or louder."""

    pitch: float = 1.0  # on Hz, after the transform
    energy: float = 1.0
    duration: float = 1.0  # 1.2 is 20 % slower
    transform: PitchTransform | PitchContour | None = None  # of predicted pitch
    given_pitch: Sequence[float] | None = None  # Hz per phone, 0 = unvoiced, instead of predicted

    def checked(self, model: str, known: Collection[Control]) -> "Controls":
        """Returns these controls after a check; a transform that changes nothing is left out.

        Given pitch becomes a tuple.

        Args:
            model: Its name, for messages.
            known: The controls that it has.

        Raises:
            InputError: If a factor is no number from 0.1 to 10, a shift is beyond 500 Hz, a
                transform and given pitch come together, given pitch is no list of Hz, or the model
                lacks a control that is asked for.
        """
        low, high = CONTROL_RANGE
        for name in ("pitch", "energy", "duration"):
            value = getattr(self, name)
            if not (isinstance(value, int | float) and low <= value <= high):
                raise InputError(f"{name}_control is {value!r}; expected {low:g} to {high:g}")
        controls = self._replace(transform=None) if self.transform == PitchTransform() else self
        if (
            isinstance(self.transform, PitchTransform)
            and abs(self.transform.shift_hz) > MOST_SHIFT_HZ
        ):
            raise InputError(
                f"pitch_transform shifts by {self.transform.shift_hz:g} Hz; expected"
                f" {-MOST_SHIFT_HZ:g} to {MOST_SHIFT_HZ:g}"
            )
        if controls.transform is not None and self.given_pitch is not None:
            raise InputError(
                "a pitch transform acts on predicted pitch, and the pitch of this text is given;"
                " leave one of them out"
            )
        if self.given_pitch is not None:
            controls = controls._replace(given_pitch=checked_pitch(self.given_pitch))
        if lacking := sorted(controls._asked() - set(known)):
            raise InputError(
                f"{model} has no control of {', '.join(lacking)} (it has:"
                f" {', '.join(sorted(known)) or 'none'}); leave it out, or choose another model"
            )
        return controls

    @property
    def change_pitch(self) -> bool:
        """Whether the pitch is not what the model predicts."""
        return (self.pitch, self.transform, self.given_pitch) != (1, None, None)

    def _asked(self) -> set[Control]:
        asked: dict[Control, bool] = {
            "pitch": self.pitch != 1 or self.given_pitch is not None,
            "energy": self.energy != 1,
            "duration": self.duration != 1,
            "pitch_transform": self.transform is not None,
        }
        return {name for name, wanted in asked.items() if wanted}


def transform_of(given: Transform | None) -> PitchTransform | PitchContour | None:
    """Turns a transform of pitch in any of its forms into a record.

    Args:
        given: A record, the name of a transform without a value, or a custom function.

    Raises:
        InputError: If it is something else.
    """
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


def record_of(transform: PitchTransform | PitchContour | None) -> dict[str, bool | float | str]:
    """Settings of a transform that differ from their defaults, ready for JSON."""
    if isinstance(transform, PitchContour):
        return {"custom": transform.name}
    changed = transform or PitchTransform()
    values = {
        field.name: (getattr(changed, field.name), field.default) for field in fields(changed)
    }
    return {name: value for name, (value, default) in values.items() if value != default}
