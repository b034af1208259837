"""Energy of phones in FastPitch: predicted, and embedded by a convolution."""

from torch import Tensor, nn

from modules.layers.basic import MaskedConv1d
from modules.variance.adaptor import VariancePredictor, average_by_phone
from modules.variance.convolved_contour import add_convolved


class PhoneEnergy(nn.Module):
    """Energy e of each phone as ln(1 + e), which needs no statistics.

    Args:
        predictor: Predicts it.
        hidden: H.
        kernel_size: Kernel of the convolution that embeds it.
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
        """Predicts ln(1 + energy), (B, N), and adds the vectors of the true one to the phones."""
        return add_convolved(self.embedding, phones, target, mask), self.predictor(phones, mask)

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
        return add_convolved(self.embedding, phones, values, mask), energy
