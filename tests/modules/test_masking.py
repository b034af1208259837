import torch

from modules.masking import length_mask


def test_mask_is_true_up_to_each_length():
    assert length_mask(torch.tensor([2, 0, 3])).tolist() == [
        [True, True, False],
        [False, False, False],
        [True, True, True],
    ]


def test_mask_reaches_the_padded_length():
    assert length_mask(torch.tensor([1, 2]), max_length=4).sum(dim=1).tolist() == [1, 2]
    assert length_mask(torch.tensor([1, 2]), max_length=4).shape == (2, 4)
