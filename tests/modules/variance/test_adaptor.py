import numpy as np
import pytest
import torch

from modules.layers.basic import length_mask
from modules.variance.adaptor import (
    VariancePredictor,
    average_by_phone,
    interpolate_unvoiced,
    join_phones,
    regulate,
    round_durations,
)


def test_a_predictor_has_as_many_convolutions_as_layers_and_ignores_padding():
    predictor, hidden = VariancePredictor(4, 8, 3, dropout=0.0, n_layers=3), torch.randn(1, 5, 4)
    padded = torch.cat([hidden, torch.full((1, 3, 4), 9.0)], dim=1)
    values = predictor(padded, length_mask(torch.tensor([5]), 8))
    torch.testing.assert_close(values[:, :5], predictor(hidden, torch.ones(1, 5, dtype=torch.bool)))
    assert (values[:, 5:] == 0).all()
    parts = {name.split(".")[0] for name in predictor.state_dict()}
    assert parts == {"linear", *(f"{part}_{n}" for part in ("conv", "norm") for n in (1, 2, 3))}
    expected = hidden
    for n in (1, 2, 3):
        conv, norm = predictor.get_submodule(f"conv_{n}"), predictor.get_submodule(f"norm_{n}")
        expected = norm(conv(expected).relu())
    torch.testing.assert_close(values[:, :5], predictor.linear(expected).squeeze(2))


def test_gaps_are_bridged_by_straight_lines_and_edges_are_held():
    f0 = torch.tensor([[0.0, 100, 0, 0, 130, 0], [0, 0, 200, 0, 77, 77]])
    contour = interpolate_unvoiced(f0, torch.tensor([6, 4]))
    expected = torch.tensor([[100.0, 100, 110, 120, 130, 130], [200, 200, 200, 200, 0, 0]])
    torch.testing.assert_close(contour, expected)
    f0 = torch.tensor([[0.0, 0, 0], [0, 50, 0]])  # an unvoiced item stays 0
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


def test_phones_are_joined_by_straight_lines_between_their_middles():
    hz = torch.tensor([[100.0, 999, 130, 0, 110], [200, 999, 100, 0, 0]])
    durations = torch.tensor([[3, 0, 3, 1, 1], [2, 2, 1, 0, 0]])
    known = torch.tensor([[True] * 5, [True, False, True, True, True]])
    expected = torch.tensor([[100.0, 100, 110, 120, 130, 70 / 3 + 100, 50 / 3 + 100, 110, 0]])
    torch.testing.assert_close(join_phones(hz[:1], durations[:1], None, 9), expected)
    together = join_phones(hz, durations, known, 9)
    torch.testing.assert_close(together[:1], expected)
    line = torch.tensor([200, 200, 200 - 100 / 3, 100 + 100 / 3, 100, 0, 0, 0, 0])
    torch.testing.assert_close(together[1], line)


def test_phones_get_the_exact_mean_of_their_frames_and_empty_phones_zero():
    values = torch.tensor([[1.0, 2, 3, 4, 5, 0], [9, 0, 0, 0, 0, 0]])
    durations = torch.tensor([[2, 0, 3], [1, 0, 0]])
    assert average_by_phone(values, durations).tolist() == [[1.5, 0, 4], [9, 0, 0]]
    means = average_by_phone(torch.full((1, 5600), 333.3), torch.full((1, 800), 7))
    torch.testing.assert_close(means, torch.full((1, 800), 333.3), rtol=1e-6, atol=0)


def test_regulator_repeats_each_phone_for_its_duration_up_to_the_longest_item_or_a_length():
    phones = torch.tensor([[[1.0], [2.0], [3.0]]])
    frames = regulate(phones, durations=torch.tensor([[2, 0, 1]]))
    assert frames.squeeze().tolist() == [1.0, 1.0, 3.0]
    durations, phones = torch.tensor([[1, 1], [2, 3]]), torch.ones(2, 2, 1)
    assert regulate(phones, durations).shape == (2, 5, 1)
    assert regulate(phones, durations, max_length=3).squeeze().sum(dim=1).tolist() == [2, 3]


def test_the_gradient_of_a_phone_is_the_sum_over_its_frames():
    phones = torch.zeros(1, 3, 1, requires_grad=True)
    frames = regulate(phones, torch.tensor([[2, 0, 1]]), max_length=5)
    (frames.squeeze() * torch.tensor([1.0, 10, 100, 1000, 1000])).sum().backward()
    assert phones.grad.squeeze().tolist() == [11, 0, 100]


@pytest.mark.parametrize("seed", range(5))
def test_regulator_gives_what_repeat_interleave_gives_item_by_item(seed):
    generator = torch.Generator().manual_seed(seed)
    phones = torch.randn(3, 7, 4, generator=generator)
    durations = torch.randint(0, 4, (3, 7), generator=generator)
    frames = regulate(phones, durations, max_length=30)
    for item, (vectors, counts) in enumerate(zip(phones, durations, strict=True)):
        expected = vectors.repeat_interleave(counts, dim=0)
        assert torch.equal(frames[item, : len(expected)], expected)
        assert (frames[item, len(expected) :] == 0).all()


NAN = torch.nan  # counts as none


@pytest.mark.parametrize(
    ("durations", "limits", "expected"),
    [
        ([[1.4, 1.6, 0], [0.1, 0.4, 0], [0, 0, 0]], None, [[1, 2, 0], [0, 1, 0], [1, 0, 0]]),
        ([[2, 3, 4], [1, 1, 0]], [4, 9], [[2, 2, 0], [1, 1, 0]]),
        ([[NAN, 2], [NAN, NAN]], None, [[0, 2], [1, 0]]),
    ],
)
def test_durations_are_rounded_to_a_frame_or_more_and_end_at_a_limit(durations, limits, expected):
    max_frames = None if limits is None else torch.tensor(limits)
    assert round_durations(torch.tensor(durations) * 1.0, max_frames).tolist() == expected
