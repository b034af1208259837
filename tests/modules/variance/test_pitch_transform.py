import math

import pytest
import torch

from modules.variance.pitch_transform import PitchTransform

HZ = torch.tensor([[100.0, 250, 180, 0], [300, 300, 0, 0]])
MEAN = torch.tensor([[200.0], [250]])
LENGTHS = torch.tensor([3, 2])


def transformed(**settings) -> list[list[float]]:
    return PitchTransform(**settings)(HZ, MEAN, LENGTHS).tolist()


@pytest.mark.parametrize(
    ("settings", "first", "second"),
    [
        ({}, [100, 250, 180], [300, 300]),
        ({"flatten": True}, [200, 200, 200], [250, 250]),
        ({"invert": True}, [300, 150, 220], [200, 200]),
        ({"amplify": 1.5}, [50, 275, 170], [325, 325]),
        ({"shift_hz": -50}, [50, 200, 130], [250, 250]),
        ({"invert": True, "amplify": 2, "shift_hz": 10}, [410, 110, 250], [160, 160]),
        ({"flatten": True, "invert": True, "amplify": 3, "shift_hz": 7}, [207] * 3, [257] * 2),
    ],
)
def test_contours_change_around_the_mean_of_their_speaker_and_padding_does_not(
    settings, first, second
):
    assert transformed(**settings) == [[*first, 0], [*second, 0, 0]]


def test_voiceless_positions_keep_their_values():
    voiced = torch.tensor([[True, False, True, True], [False, True, True, True]])
    shifted = PitchTransform(shift_hz=40)(HZ, MEAN, LENGTHS, voiced)
    assert shifted.tolist() == [[140, 250, 220, 0], [300, 340, 0, 0]]


def test_a_custom_transform_gets_contour_and_lengths():
    def ramp(hz, lengths):
        return hz * (torch.arange(hz.shape[1]) / lengths[:, None] + 0.5)

    expected = [[50, 250 * (1 / 3 + 0.5), 180 * (2 / 3 + 0.5), 0], [150, 300, 0, 0]]
    for row, wanted in zip(transformed(custom=ramp), expected, strict=True):
        assert row == pytest.approx(wanted)


def test_a_custom_transform_excludes_the_others_and_must_give_numbers_of_the_same_shape():
    for other in ({"flatten": True}, {"invert": True}, {"amplify": 2}, {"shift_hz": 1}):
        with pytest.raises(ValueError, match="custom excludes flatten, invert, amplify"):
            PitchTransform(custom=lambda hz, _: hz, **other)
    for message, custom in {
        r"gives a tensor of the shape \(2, 3\); expected": lambda hz, _: hz[:, 1:],
        "gives values that are not finite": lambda hz, _: hz.log() * math.inf,
        "gives ndarray; expected a tensor": lambda hz, _: hz.numpy(),
    }.items():
        with pytest.raises(ValueError, match=message):
            transformed(custom=custom)
    padding_only = transformed(custom=lambda hz, _: hz.where(hz > 0, math.nan))
    assert padding_only == HZ.tolist()


@pytest.mark.parametrize("name", ["amplify", "shift_hz"])
@pytest.mark.parametrize("value", [math.nan, math.inf, "2", None])
def test_numbers_must_be_finite(name, value):
    with pytest.raises(ValueError, match=f"{name} is .*; expected a finite number"):
        PitchTransform(**{name: value})
