import torch

from modules.layers.masking import clear_padding, length_mask


def test_mask_is_true_up_to_each_length():
    assert length_mask(torch.tensor([2, 0, 3])).tolist() == [
        [True, True, False],
        [False, False, False],
        [True, True, True],
    ]


def test_mask_reaches_the_padded_length():
    assert length_mask(torch.tensor([1, 2]), max_length=4).sum(dim=1).tolist() == [1, 2]
    assert length_mask(torch.tensor([1, 2]), max_length=4).shape == (2, 4)


def test_clear_padding_zeroes_only_what_is_masked():
    frames = torch.ones(1, 3, 2)
    mask = torch.tensor([[True, False, True]])
    assert clear_padding(frames, mask).sum(dim=2).tolist() == [[2, 0, 2]]
