"""Pitch or energy of phones, embedded by a convolution over their values."""

from typing import ClassVar

from torch import Tensor, nn

from modules.layers.basic import Dropout, MaskedConv1d, clear_padding
from modules.variance.adaptor import (
    ContourControl,
    ContourStats,
    Level,
    SpeakerNorm,
    VariancePredictor,
    average_by_phone,
    join_phones,
)


class _PhoneContour(nn.Module):
    """Values of phones, predicted and embedded by a convolution, with the calls of `Contour`."""

    level: ClassVar[Level] = "phone"

    def __init__(
        self, predictor: VariancePredictor, hidden: int, kernel_size: int, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.predictor = predictor
        self.embedding = MaskedConv1d(1, hidden, kernel_size)
        self.dropout = Dropout(dropout)

    def forward(
        self,
        hidden: Tensor,
        target: Tensor,
        mask: Tensor,
        _speaker_ids: Tensor,
        source: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Predicts the contour, and adds the vectors of the true one, as `Contour.forward`."""
        predicted = self._predict(hidden, mask, source)
        return self._add(hidden, target, mask), predicted

    def _predict(self, hidden: Tensor, mask: Tensor, source: Tensor | None) -> Tensor:
        """One value per phone, (B, N)."""
        predicted: Tensor = self.predictor(hidden if source is None else source, mask)
        return predicted

    def _add(self, hidden: Tensor, values: Tensor, mask: Tensor) -> Tensor:
        """Adds the vectors of values (B, N) to phones (B, N, H); padding 0."""
        vectors = self.embedding(values.unsqueeze(2), mask)  # (B, N, H)
        return clear_padding(hidden + self.dropout(vectors), mask)


class ConvolvedContour(_PhoneContour):
    """Pitch or energy of each phone: predicted, and embedded by a convolution of an odd kernel.

    A phone without a known value, such as a voiceless one, has 0, the speaker's mean. Of the
    statistics, those of frames, mean and std are used.
    """

    def __init__(
        self,
        predictor: VariancePredictor,
        stats: ContourStats,
        hidden: int,
        kernel_size: int,
        dropout: float = 0.0,
    ) -> None:
        super().__init__(predictor, hidden, kernel_size, dropout)
        self.norm = SpeakerNorm(stats.mean, stats.std)

    def target(
        self, values: Tensor, known_mask: Tensor, durations: Tensor, speaker_ids: Tensor
    ) -> Tensor:
        """Mean of the known frames of each phone, normalised, (B, N); arguments as of `Contour`."""
        share = average_by_phone(known_mask.to(values.dtype), durations)
        has_value = share > 0
        means = average_by_phone(values, durations) / share.where(has_value, 1)
        return self.norm(means, speaker_ids) * has_value

    def infer(
        self,
        hidden: Tensor,
        mask: Tensor,
        _durations: Tensor,
        speaker_ids: Tensor,
        control: ContourControl = ContourControl(),  # noqa: B008  # it cannot be changed
        source: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Adds the vectors of the predicted or given contour, as `Contour.infer`.

        A given 0 is a phone without a value.
        """
        predicted = self._predict(hidden, mask, source)
        values = control.apply(predicted, mask, self.norm, speaker_ids)
        if control.given is not None:
            values = values * (control.given > 0)
        linear = self.norm.inverse(values, speaker_ids).clamp(min=0) * mask
        return self._add(hidden, values, mask), linear

    def per_frame(
        self, values: Tensor, durations: Tensor, n_frames: int, control: ContourControl
    ) -> Tensor:
        """Hz of frames, (B, T): lines between phones that are voiced, or have given Hz above 0."""
        voiced = control.voiced if control.given is None else control.given > 0
        return join_phones(values, durations, voiced, n_frames)


class PhoneEnergy(_PhoneContour):
    """Energy e of each phone as ln(1 + e), which needs no statistics, as in FastPitch."""

    @staticmethod
    def target(
        values: Tensor, _known_mask: Tensor, durations: Tensor, _speaker_ids: Tensor
    ) -> Tensor:
        """ln(1 + mean of the frames) of each phone: (B, T), durations (B, N) -> (B, N)."""
        return average_by_phone(values, durations).log1p()

    def infer(
        self,
        hidden: Tensor,
        mask: Tensor,
        _durations: Tensor,
        _speaker_ids: Tensor,
        control: ContourControl,
        source: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Adds the vectors of the predicted or given energy, as `Contour.infer`."""
        if control.given is None:
            predicted = self._predict(hidden, mask, source).float()
            linear = predicted.expm1().clamp(min=0)
            # a factor of 1 leaves the prediction as it is, also where it is below 0
            values = predicted + ((linear * control.factor).log1p() - linear.log1p())
        else:
            values = (control.given * control.factor).log1p()
        return self._add(hidden, values, mask), values.expm1().clamp(min=0) * mask
