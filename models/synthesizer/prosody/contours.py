"""Transforms of the pitch of a text, among them contours of factors over the whole text."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Literal, cast

import torch
from torch import Tensor

from config.controls import CONTROL_RANGE
from modules.variance.pitch_transform import PitchTransform
from utils.arrays import parse_number, read_numbers
from utils.errors import InputError
from utils.files import user_path

RAMP = "ramp:"
_NAMED = {"flatten": PitchTransform(flatten=True), "invert": PitchTransform(invert=True)}


@dataclass(frozen=True)
class PitchContour:
    """Factors on Hz, stretched over a text of any number of sentences by linear interpolation."""

    factors: tuple[float, ...]  # at equal distances from the start to the end of the text
    name: str  # for records: its specification

    def over(self, spans: Tensor) -> PitchTransform:
        """The transform of a batch of clauses.

        Args:
            spans: Where each clause starts and ends in the text, from 0 to 1, (B, 2).
        """
        return PitchTransform(custom=partial(self._multiplied, spans=spans))

    def _multiplied(self, pitch_hz: Tensor, lengths: Tensor, spans: Tensor) -> Tensor:
        """Pitch per phone or frame, (B, L), times the factors at its places in the text."""
        start, end = spans.to(pitch_hz).T[:, :, None]  # (B, 1) each
        index = torch.arange(pitch_hz.shape[1], device=pitch_hz.device)
        place = start + (end - start) * index / lengths[:, None].clamp(min=1)  # (B, L)
        factors = torch.tensor(self.factors).to(pitch_hz)
        last = len(factors) - 1
        position = place.clamp(max=1) * last
        left = position.long()
        right = (left + 1).clamp(max=last)
        return pitch_hz * torch.lerp(factors[left], factors[right], position - left)


TransformFunction = Callable[[Tensor, Tensor], Tensor]  # of Hz, (B, L), and lengths, (B,)
Transform = PitchTransform | PitchContour | TransformFunction | Literal["flatten", "invert"]


def contour_of(spec: str) -> PitchContour:
    """Reads a contour.

    Args:
        spec: `ramp:A:B`, from factor A to factor B, or a text file of one factor a line.

    Raises:
        InputError: If the file cannot be read, or a factor is no number from 0.1 to 10; the
            message names file and line.
    """
    if spec.startswith(RAMP):
        numbers = spec.removeprefix(RAMP).split(":")
        if len(numbers) != 2:
            raise InputError(f"{spec!r}: expected ramp:A:B, such as ramp:0.5:1.5")
        factors = {spec: [parse_number(number, spec) for number in numbers]}
    else:
        path = user_path(Path(spec))
        factors = {f"{path}, line {n}": [value] for n, value in read_numbers(path).items()}
    low, high = CONTROL_RANGE
    for place, values in factors.items():
        for value in values:
            if not low <= value <= high:
                raise InputError(
                    f"{place}: factor {value:g}; expected a number from {low:g} to {high:g}"
                )
    return PitchContour(tuple(value for values in factors.values() for value in values), spec)


def transform_of(given: Transform | None) -> PitchTransform | PitchContour | None:
    """Turns a transform of pitch in any of its forms into a record.

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
