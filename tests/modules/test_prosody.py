import numpy as np
import pytest
import torch

from modules.prosody import average_by_phone, interpolate_unvoiced


def test_gaps_are_bridged_by_straight_lines_and_edges_are_held():
    f0 = torch.tensor([[0.0, 100, 0, 0, 130, 0], [0, 0, 200, 0, 77, 77]])
    contour = interpolate_unvoiced(f0, torch.tensor([6, 4]))
    torch.testing.assert_close(
        contour,
        torch.tensor([[100.0, 100, 110, 120, 130, 130], [200, 200, 200, 200, 0, 0]]),
    )


def test_an_unvoiced_item_stays_zero_beside_a_voiced_one():
    f0 = torch.tensor([[0.0, 0, 0], [0, 50, 0]])
    assert interpolate_unvoiced(f0, torch.tensor([3, 3])).tolist() == [[0, 0, 0], [50, 50, 50]]


@pytest.mark.parametrize("seed", range(5))
def test_interpolation_is_numpys(seed):
    rng = np.random.default_rng(seed)
    f0 = rng.uniform(80, 400, (4, 50)) * (rng.random((4, 50)) < 0.3)
    lengths = rng.integers(20, 51, 4)
    contour = interpolate_unvoiced(torch.tensor(f0), torch.tensor(lengths)).numpy()
    for item, length in enumerate(lengths):
        voiced = np.flatnonzero(f0[item, :length])
        expected = np.interp(np.arange(length), voiced, f0[item, voiced])
        np.testing.assert_allclose(contour[item, :length], expected)
        assert (contour[item, length:] == 0).all()


def test_phones_get_the_mean_of_their_frames_and_empty_phones_zero():
    values = torch.tensor([[1.0, 2, 3, 4, 5, 0], [9, 0, 0, 0, 0, 0]])
    durations = torch.tensor([[2, 0, 3], [1, 0, 0]])
    assert average_by_phone(values, durations).tolist() == [[1.5, 0, 4], [9, 0, 0]]


def test_phone_means_are_exact_far_into_a_long_utterance():
    durations = torch.full((1, 800), 7)
    values = torch.full((1, 5600), 333.3)
    torch.testing.assert_close(
        average_by_phone(values, durations), torch.full((1, 800), 333.3), rtol=1e-6, atol=0
    )
