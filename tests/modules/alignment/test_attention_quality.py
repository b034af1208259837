import pytest
import torch

from modules.alignment.attention_quality import (
    AttentionQuality,
    PathQuality,
    attention_qualities,
    path_quality,
)


def attention_of(places: list[int], n_phones: int = 12) -> torch.Tensor:
    """Attention on one phone in each frame, (1, T, N)."""
    return torch.nn.functional.one_hot(torch.tensor(places), n_phones).float()[None]


def quality_of(places: list[int], n_phones: int = 12, stopped: bool = True) -> AttentionQuality:
    lengths = torch.tensor([n_phones]), torch.tensor([len(places)])
    return attention_qualities(attention_of(places, n_phones), *lengths, torch.tensor([stopped]))[0]


@pytest.mark.parametrize(
    ("places", "expected", "fault"),
    [
        ([*range(12)], (1.0, 0, 0, True), ""),
        ([0, 1, 2, 5, 6, 7, 8, 9, 10, 11], (1.0, 2, 0, True), ""),
        ([0, 1, 8, 9, 10, 11], (1.0, 6, 0, True), "6 phones in a row are skipped"),
        ([0, 1, 2, 3, 4, 5], (1.0, 6, 0, True), "6 phones in a row are skipped"),
        ([*range(9), *range(2, 12)], (1.0, 0, 6, True), "6 phones in a row are repeated"),
        ([0, 1, 0, 2, 3, 2, *range(4, 12)], (1.0, 0, 1, True), ""),
    ],
)
def test_skipped_and_repeated_phones_are_counted(places, expected, fault):
    assert quality_of(places) == expected
    assert quality_of(places).fault == fault


def test_focus_is_the_mean_of_the_largest_weights():
    attention, two = torch.tensor([[[0.6, 0.4], [0.2, 0.8]]]), torch.tensor([2])
    (found,) = attention_qualities(attention, two, two, torch.tensor([True]))
    assert found.focus == pytest.approx(0.7)


def test_padding_is_not_measured():
    attention = torch.zeros(2, 14, 15)
    attention[0, :12, :12] = attention_of([*range(12)])[0]
    attention[1] = attention_of([*range(14)], 15)[0]
    lengths = torch.tensor([12, 15]), torch.tensor([12, 14])
    found = attention_qualities(attention, *lengths, torch.tensor([True, True]))
    assert [quality.skipped for quality in found] == [0, 1]


def test_the_best_of_several_readings_costs_least_and_one_that_does_not_end_most():
    whole, jumps = quality_of([*range(12)]), quality_of([0, 1, 8, 9, 10, 11])
    endless = quality_of([*range(12)], stopped=False)
    assert endless.fault == "it does not end"
    assert sorted([endless, jumps, whole], key=lambda one: one.cost) == [whole, jumps, endless]


def test_the_quality_of_a_path_is_what_lies_on_it_and_next_to_it():
    weights = torch.tensor(
        [
            [0.6, 0.3, 0.05, 0.05],  # path: 0
            [0.0, 1.0, 0.0, 0.0],  # 1
            [0.5, 0.5, 0.0, 0.0],  # 1
            [0.0, 0.0, 0.0, 1.0],  # 3
        ]
    )
    found = path_quality(weights, torch.tensor([1, 2, 0, 1]))
    expected = PathQuality(focus=3.1 / 4, coverage=3 / 4, diagonality=3.9 / 4)
    assert tuple(found) == pytest.approx(expected)
    assert found.least == pytest.approx(0.75)
    # attention that looks everywhere has poor focus and diagonality
    found = path_quality(torch.full((20, 10), 0.1), torch.full((10,), 2))
    assert tuple(found) == pytest.approx((0.1, 1.0, (2 * 0.2 + 8 * 0.3) / 10))
