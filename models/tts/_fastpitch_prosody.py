"""Pitch and energy of phones in FastPitch: predicted, and embedded by a convolution."""

from torch import Tensor, nn

from modules.conv import MaskedConv1d
from modules.masking import clear_padding
from modules.variance_adaptor import (
    ContourControl,
    ContourStats,
    SpeakerNorm,
    VariancePredictor,
    average_by_phone,
)


class PhonePitch(nn.Module):
    """Pitch of each phone, normalised by speaker; 0 for phones without a voiced frame.

    Args:
        predictor: Predicts it.
        stats: Of F0 in Hz, one value per speaker; mean and std are used.
        hidden: H.
        kernel_size: Of the convolution that embeds it.
    """

    def __init__(
        self, predictor: VariancePredictor, stats: ContourStats, hidden: int, kernel_size: int
    ) -> None:
        super().__init__()
        self.norm = SpeakerNorm(stats.mean, stats.std)
        self.predictor = predictor
        self.embedding = MaskedConv1d(1, hidden, kernel_size)

    def target(self, f0: Tensor, durations: Tensor, speaker_ids: Tensor) -> Tensor:
        """Mean of the voiced frames of each phone.

        Args:
            f0: (B, T) Hz, 0 = unvoiced.
            durations: (B, N) frames.
            speaker_ids: (B,).

        Returns:
            Normalised, (B, N).
        """
        share_voiced = average_by_phone((f0 > 0).to(f0), durations)
        voiced = share_voiced > 0
        means = average_by_phone(f0, durations) / share_voiced.where(voiced, 1)
        return self.norm(means, speaker_ids) * voiced

    def forward(self, phones: Tensor, target: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Predicts the pitch, and adds the vectors of the true one (teacher forcing).

        Args:
            phones: (B, N, H).
            target: Normalised, (B, N).
            mask: (B, N) bool, True = valid.

        Returns:
            The phones with pitch, (B, N, H), and the prediction, (B, N); padding 0.
        """
        return _embed(self.embedding, phones, target, mask), self.predictor(phones, mask)

    def infer(
        self, phones: Tensor, mask: Tensor, speaker_ids: Tensor, control: ContourControl
    ) -> tuple[Tensor, Tensor]:
        """Adds the vectors of the predicted or given pitch.

        Args:
            phones: (B, N, H).
            mask: (B, N) bool, True = valid.
            speaker_ids: (B,).
            control: What is asked of it; 0 Hz is unvoiced.

        Returns:
            The phones with pitch, (B, N, H), and the pitch in Hz, (B, N); padding 0.
        """
        predicted = self.predictor(phones, mask)
        values = control.apply(predicted, mask, self.norm, speaker_ids)
        if control.given is not None:
            values = values * (control.given > 0)
        f0 = self.norm.inverse(values, speaker_ids).clamp(min=0) * mask
        return _embed(self.embedding, phones, values, mask), f0


class PhoneEnergy(nn.Module):
    """Energy e of each phone as ln(1 + e), which needs no statistics.

    Args:
        predictor: Predicts it.
        hidden: H.
        kernel_size: Of the convolution that embeds it.
    """

    def __init__(self, predictor: VariancePredictor, hidden: int, kernel_size: int) -> None:
        super().__init__()
        self.predictor = predictor
        self.embedding = MaskedConv1d(1, hidden, kernel_size)

    @staticmethod
    def target(energy: Tensor, durations: Tensor) -> Tensor:
        """ln(1 + mean of the frames) of each phone: (B, T), durations (B, N) -> (B, N)."""
        return average_by_phone(energy, durations).log1p()

    def forward(self, phones: Tensor, target: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Predicts the energy, and adds the vectors of the true one (teacher forcing).

        Args:
            phones: (B, N, H).
            target: ln(1 + energy), (B, N).
            mask: (B, N) bool, True = valid.

        Returns:
            The phones with energy, (B, N, H), and the prediction, (B, N); padding 0.
        """
        return _embed(self.embedding, phones, target, mask), self.predictor(phones, mask)

    def infer(
        self, phones: Tensor, mask: Tensor, given: Tensor | None, factor: float | Tensor
    ) -> tuple[Tensor, Tensor]:
        """Adds the vectors of the predicted or given energy, multiplied by a factor.

        Args:
            phones: (B, N, H).
            mask: (B, N) bool, True = valid.
            given: Linear, (B, N), instead of the prediction.
            factor: On linear energy; one for all, or one per phone, (B, N).

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
        return _embed(self.embedding, phones, values, mask), energy


def _embed(embedding: MaskedConv1d, phones: Tensor, values: Tensor, mask: Tensor) -> Tensor:
    """Adds the vectors of values (B, N) to phones (B, N, H), mask (B, N); padding 0."""
    return clear_padding(phones + embedding(values.unsqueeze(2), mask), mask)
