"""Pitch or energy of phones, embedded by a convolution over their normalised values."""

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


class ConvolvedContour(nn.Module):
    """Pitch or energy of each phone: predicted, and embedded by a convolution of an odd kernel.

    It has the calls of `Contour`. A phone without a known value, such as a voiceless one, has 0,
    the speaker's mean. Of the statistics, those of frames, mean and std are used.
    """

    level: ClassVar[Level] = "phone"

    def __init__(
        self,
        predictor: VariancePredictor,
        stats: ContourStats,
        hidden: int,
        kernel_size: int,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.norm = SpeakerNorm(stats.mean, stats.std)
        self.predictor = predictor
        self.embedding = MaskedConv1d(1, hidden, kernel_size)
        self.dropout = Dropout(dropout)

    def target(
        self, values: Tensor, known_mask: Tensor, durations: Tensor, speaker_ids: Tensor
    ) -> Tensor:
        """Mean of the known frames of each phone, normalised, (B, N); arguments as of `Contour`."""
        share = average_by_phone(known_mask.to(values.dtype), durations)
        has_value = share > 0
        means = average_by_phone(values, durations) / share.where(has_value, 1)
        return self.norm(means, speaker_ids) * has_value

    def forward(
        self,
        hidden: Tensor,
        target: Tensor,
        mask: Tensor,
        speaker_ids: Tensor,
        source: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Predicts the contour, and adds the vectors of the true one, as `Contour.forward`."""
        predicted = self.predictor(hidden if source is None else source, mask)  # (B, N)
        return self._add(hidden, target, mask), predicted

    def infer(
        self,
        hidden: Tensor,
        mask: Tensor,
        durations: Tensor,
        speaker_ids: Tensor,
        control: ContourControl = ContourControl(),  # noqa: B008  # it cannot be changed
        source: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Adds the vectors of the predicted or given contour, as `Contour.infer`.

        A given 0 is a phone without a value.
        """
        predicted = self.predictor(hidden if source is None else source, mask)  # (B, N)
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

    def _add(self, hidden: Tensor, values: Tensor, mask: Tensor) -> Tensor:
        return add_convolved(self.embedding, hidden, values, mask, self.dropout)


def add_convolved(
    embedding: MaskedConv1d,
    phones: Tensor,
    values: Tensor,
    mask: Tensor,
    dropout: Dropout | None = None,
) -> Tensor:
    """Adds the vectors of values (B, N) to phones (B, N, H); padding 0."""
    vectors = embedding(values.unsqueeze(2), mask)  # (B, N, H)
    return clear_padding(phones + (vectors if dropout is None else dropout(vectors)), mask)


class PhoneEnergy(nn.Module):
    """Energy e of each phone as ln(1 + e), which needs no statistics, as in FastPitch."""

    def __init__(self, predictor: VariancePredictor, hidden: int, kernel_size: int) -> None:
        super().__init__()
        self.predictor = predictor
        self.embedding = MaskedConv1d(1, hidden, kernel_size)

    @staticmethod
    def target(energy: Tensor, durations: Tensor) -> Tensor:
        """ln(1 + mean of the frames) of each phone: (B, T), durations (B, N) -> (B, N)."""
        return average_by_phone(energy, durations).log1p()

    def forward(self, phones: Tensor, target: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Predicts ln(1 + energy), (B, N), and adds the vectors of the true one to the phones."""
        return add_convolved(self.embedding, phones, target, mask), self.predictor(phones, mask)

    def infer(
        self, phones: Tensor, mask: Tensor, given: Tensor | None, factor: float | Tensor
    ) -> tuple[Tensor, Tensor]:
        """Adds the vectors of the predicted or given linear energy, (B, N), multiplied by a factor.

        Returns:
            The phones with energy, (B, N, H), and the linear energy, (B, N); padding 0.
        """
        if given is None:
            predicted = self.predictor(phones, mask).float()
            linear = predicted.expm1().clamp(min=0)
            # a factor of 1 leaves the prediction as it is, also where it is below 0
            values = predicted + ((linear * factor).log1p() - linear.log1p())
        else:
            values = (given * factor).log1p()
        energy = values.expm1().clamp(min=0) * mask
        return add_convolved(self.embedding, phones, values, mask), energy
