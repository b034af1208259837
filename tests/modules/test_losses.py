import torch

from modules.losses import l1_sum, mse_sum
from modules.masking import length_mask

MASK = length_mask(torch.tensor([2, 1]), 3)


def test_l1_sums_the_mean_over_bands_over_valid_frames():
    predicted = torch.tensor([[[1.0, 3], [0, 2], [9, 9]], [[4, 4], [9, 9], [9, 9]]])
    assert l1_sum(predicted, torch.zeros_like(predicted), MASK) == 2 + 1 + 4


def test_mse_sums_squares_over_valid_positions():
    predicted = torch.tensor([[1.0, 2, 9], [3, 9, 9]])
    assert mse_sum(predicted, torch.zeros_like(predicted), MASK) == 1 + 4 + 9


def test_half_precision_predictions_give_float32_losses():
    predicted = torch.full((2, 3), 200.0, dtype=torch.bfloat16)
    loss = mse_sum(predicted, torch.zeros(2, 3), MASK)
    assert loss.dtype == torch.float32
    assert loss == 3 * 200.0**2
