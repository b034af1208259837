"""Transforms of a pitch contour at inference, those of FastPitch (Łańcucki 2021, arXiv:2006.06873).

They act on Hz. Voiceless phones and pauses have no pitch, so that their values are left alone.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from modules.layers.basic import length_mask


@dataclass(frozen=True)
class PitchTransform:
    """Flattens, inverts, amplifies, then shifts a contour f; m is the speaker's mean.

    Raises:
        ValueError: If a number is not finite, or `custom` is given together with another transform.
    """

    flatten: bool = False  # m, a monotone
    invert: bool = False  # 2 m - f
    amplify: float = 1.0  # m + amplify (f - m); 0 flattens, a negative factor inverts
    shift_hz: float = 0.0  # f + shift_hz
    # f' of the contour f, (B, L) Hz, and its lengths, (B,); excludes the others
    custom: Callable[[Tensor, Tensor], Tensor] | None = None

    def __post_init__(self) -> None:
        for name in ("amplify", "shift_hz"):
            value = getattr(self, name)
            if not (isinstance(value, int | float) and math.isfinite(value)):
                raise ValueError(f"{name} is {value!r}; expected a finite number")
        others = (self.flatten, self.invert, self.amplify, self.shift_hz)
        if self.custom is not None and others != (False, False, 1, 0):
            raise ValueError("custom excludes flatten, invert, amplify and shift_hz; choose one")

    def __call__(
        self, pitch_hz: Tensor, mean_hz: Tensor, lengths: Tensor, voiced: Tensor | None = None
    ) -> Tensor:
        """Transforms the voiced positions of a contour: Hz (B, L) -> (B, L), perhaps below 0.

        Args:
            mean_hz: Mean of the speaker, (B, 1).
            lengths: Valid positions per item, (B,).
            voiced: (B, L) bool, where the pitch is heard; None: everywhere.

        Raises:
            ValueError: If `custom` gives another shape, or values that are not finite.
        """
        changed = length_mask(lengths, pitch_hz.shape[1])
        if voiced is not None:
            changed = changed & voiced
        if self.custom is None:
            factor = -self.amplify if self.invert else self.amplify
            if self.flatten:
                factor = 0.0
            transformed = mean_hz + factor * (pitch_hz - mean_hz) + self.shift_hz
        else:
            transformed = self.custom(pitch_hz, lengths)
            gives = "the custom pitch transform gives"
            returned, expected = type(transformed).__name__, _shape_of(pitch_hz)
            if isinstance(transformed, Tensor):
                returned = _shape_of(transformed)
            if returned != expected:
                raise ValueError(f"{gives} {returned}; expected {expected}")
            if not transformed[changed].isfinite().all():
                raise ValueError(f"{gives} values that are not finite")
        return torch.where(changed, transformed, pitch_hz)


def _shape_of(values: Tensor) -> str:
    return f"a tensor of the shape {tuple(values.shape)}"
