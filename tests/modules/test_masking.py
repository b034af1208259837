import torch

from modules.masking import BatchPadding, TailPadding, length_mask


def test_mask_is_true_up_to_each_length():
    assert length_mask(torch.tensor([2, 0, 3])).tolist() == [
        [True, True, False],
        [False, False, False],
        [True, True, True],
    ]


def test_mask_reaches_the_padded_length():
    assert length_mask(torch.tensor([1, 2]), max_length=4).sum(dim=1).tolist() == [1, 2]
    assert length_mask(torch.tensor([1, 2]), max_length=4).shape == (2, 4)


def test_padding_of_a_batch_is_silenced_at_every_rate():
    padding = BatchPadding(length_mask(torch.tensor([1, 3]))[:, None])
    signal = torch.ones(2, 1, 3)
    assert padding.silence(signal).tolist() == [[[1, 0, 0]], [[1, 1, 1]]]
    assert padding.upsampled(2).silence(torch.ones(2, 1, 6)).sum(dim=2).tolist() == [[2], [6]]
    assert signal.sum() == 6


def test_padding_at_the_tail_is_silenced_in_place():
    signal = torch.ones(2, 1, 6)
    assert TailPadding(1).upsampled(2).silence(signal) is signal
    assert signal.tolist() == [[[1, 1, 1, 1, 0, 0]]] * 2
    assert TailPadding(0).silence(torch.ones(1, 1, 3)).sum() == 3
