import math

import pytest
import torch
from torch import nn

from modules.variance.adaptor import VariancePredictor
from modules.variance.contour import (
    Contour,
    ContourControl,
    ContourStats,
    PitchTransform,
    SpeakerNorm,
)

HZ = ContourStats.of(mean=200, std=50, minimum=100, maximum=400)
FIRST = torch.tensor([0])


def contour(stats: ContourStats = HZ, level="phone", quantization="linear", n_bins=5) -> Contour:
    torch.manual_seed(0)
    predictor = VariancePredictor(4, 4, 3, 0.0)
    return Contour(
        predictor, hidden=4, stats=stats, level=level, quantization=quantization, n_bins=n_bins
    )


def bins_of(contour: Contour, hz: list[float]) -> list[int]:
    vectors = contour._embed(contour.norm(torch.tensor([hz]), FIRST), FIRST)  # (1, L, 4)
    distance = (vectors[0, :, None] - contour.embedding.weight).abs().sum(dim=2)
    return distance.argmin(dim=1).tolist()


def test_each_speaker_is_normalised_by_its_own_statistics():
    norm = SpeakerNorm(torch.tensor([100.0, 200.0]), torch.tensor([10.0, 40.0]))
    values = torch.tensor([[110.0, 100], [160, 200]])
    speakers = torch.tensor([0, 1])
    assert norm(values, speakers).tolist() == [[1, 0], [-1, 0]]
    torch.testing.assert_close(norm.inverse(norm(values, speakers), speakers), values)


def test_a_deviation_of_zero_is_refused():
    with pytest.raises(ValueError, match="must be positive"):
        SpeakerNorm(torch.tensor([1.0]), torch.tensor([0.0]))


def test_linear_bins_have_equal_width_and_open_ends():
    edges = contour().edges * 50 + 200
    torch.testing.assert_close(edges, torch.tensor([100.0, 200, 300, 400]))
    assert bins_of(contour(), [20, 101, 299, 301, 399, 999]) == [0, 1, 2, 3, 3, 4]


def test_log_bins_have_equal_ratio_in_hz():
    logarithmic = contour(quantization="log", n_bins=4)
    torch.testing.assert_close(logarithmic.edges, torch.tensor([100.0, 200, 400]))
    assert bins_of(logarithmic, [50, 150, 250, 500]) == [0, 1, 2, 3]


def test_bins_span_the_ranges_of_all_speakers():
    stats = ContourStats(*torch.tensor([[100.0, 200], [10, 50], [80, 150], [120, 500]]))
    edges = contour(stats).edges
    assert (float(edges[0]), float(edges[-1])) == pytest.approx((-2, 6))


@pytest.mark.parametrize("quantization", ["linear", "log"])
def test_the_vectors_of_bins_start_in_proportion_to_their_normalised_values(quantization):
    made = contour(quantization=quantization, n_bins=7)
    hz = made.edges if quantization == "log" else made.edges * 50 + 200
    centres = torch.cat([hz[:1], (hz[1:] + hz[:-1]) / 2, hz[-1:]])
    normalised = (centres - 200) / 50
    weight = made.embedding.weight.detach()
    unit = weight[-1] / normalised[-1]
    torch.testing.assert_close(weight, normalised[:, None] * unit)
    assert unit.abs().min() > 0.01


def test_targets_are_phone_means_and_the_mean_where_nothing_is_known():
    f0 = torch.tensor([[150.0, 250, 250, 300]])
    durations = torch.tensor([[2, 0, 1, 1]])
    target = contour().target(f0, f0 > 0, durations, FIRST)
    torch.testing.assert_close(target, torch.tensor([[0.0, 0, 1, 2]]))
    unvoiced = torch.zeros(1, 4)
    assert (contour().target(unvoiced, unvoiced > 0, durations, FIRST) == 0).all()


def test_silence_is_an_energy_of_its_own():
    energy, known = torch.zeros(1, 4), torch.ones(1, 4, dtype=torch.bool)
    target = contour().target(energy, known, torch.tensor([[4, 0]]), FIRST)
    assert target.tolist() == [[-4, 0]]


def spoken_values(contour: Contour, durations: torch.Tensor, length: int, **control):
    """The contour in Hz where the predictor gives the mean, 200 Hz."""
    nn.init.zeros_(contour.predictor.linear.weight)
    nn.init.zeros_(contour.predictor.linear.bias)
    mask = torch.ones(1, length, dtype=torch.bool)
    hidden = torch.zeros(1, length, 4)
    _, values = contour.infer(hidden, mask, durations, FIRST, ContourControl(**control))
    return values.tolist()


def test_factors_act_on_hz_and_per_phone_factors_reach_their_frames():
    durations = torch.tensor([[1, 2]])
    per_phone = torch.tensor([[0.5, 2.0]])
    frames = spoken_values(contour(level="frame"), durations, 3, factor=per_phone)
    assert frames == [[100, 400, 400]]
    assert spoken_values(contour(), durations, 2, factor=1.5) == [[300, 300]]


@pytest.mark.parametrize("factor", [1.0, torch.ones(1, 500)])
def test_a_factor_of_one_changes_no_bit_of_the_prediction(factor):
    torch.manual_seed(0)
    predicted = 10 * torch.randn(1, 500)  # below -4 they stand for negative Hz
    mask, norm = torch.ones(1, 500, dtype=torch.bool), contour().norm
    assert ContourControl(factor=factor).apply(predicted, mask, norm, FIRST).equal(predicted)


def test_values_that_are_given_replace_the_prediction_and_never_fall_below_zero():
    given = torch.tensor([[120.0, -3.0]])
    assert spoken_values(contour(), torch.tensor([[1, 1]]), 2, given=given) == [[120, 0]]
    per_frame = spoken_values(contour(level="frame"), torch.tensor([[1, 2]]), 3, given=given)
    assert per_frame == [[120, 0, 0]]


def test_transforms_act_on_all_phones_before_the_factor():
    control = {
        "transform": PitchTransform(shift_hz=40),
        "voiced": torch.tensor([[True, False]]),
        "factor": 1.5,
    }
    durations = torch.tensor([[1, 2]])
    assert spoken_values(contour(), durations, 2, **control) == [[360, 360]]
    frames = spoken_values(contour(level="frame"), durations, 3, **control)
    assert frames == [[360, 360, 360]]


def test_a_custom_transform_gets_the_contour_at_its_level():
    seen = []

    def doubled(hz, lengths):
        seen.append((hz.tolist(), lengths.tolist()))
        return 2 * hz

    control = {"transform": PitchTransform(custom=doubled)}
    spoken_values(contour(), torch.tensor([[1, 2]]), 2, **control)
    spoken_values(contour(level="frame"), torch.tensor([[1, 2]]), 3, **control)
    assert seen == [([[200, 200]], [2]), ([[200, 200, 200]], [3])]


def test_the_embedding_of_the_values_is_added_and_padding_stays_zero():
    pitch, hidden = contour(), torch.randn(1, 3, 4)
    mask = torch.tensor([[True, True, False]])
    target = pitch.norm(torch.tensor([[120.0, 320, 120]]), FIRST)
    added, predicted = pitch(hidden, target, mask, FIRST)
    expected = hidden[0, :2] + pitch.embedding.weight[[1, 3]]
    torch.testing.assert_close(added[0], torch.cat([expected, torch.zeros(1, 4)]))
    torch.testing.assert_close(predicted, pitch.predictor(hidden, mask))


PITCH = torch.tensor([[100.0, 250, 180, 0], [300, 300, 0, 0]])
MEAN = torch.tensor([[200.0], [250]])
LENGTHS = torch.tensor([3, 2])


def transformed(**settings) -> list[list[float]]:
    return PitchTransform(**settings)(PITCH, MEAN, LENGTHS).tolist()


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
    shifted = PitchTransform(shift_hz=40)(PITCH, MEAN, LENGTHS, voiced)
    assert shifted.tolist() == [[140, 250, 220, 0], [300, 340, 0, 0]]


def test_a_custom_transform_gets_contour_and_lengths():
    def ramp(hz, lengths):
        return hz * (torch.arange(hz.shape[1]) / lengths[:, None] + 0.5)

    expected = [[50, 250 * (1 / 3 + 0.5), 180 * (2 / 3 + 0.5), 0], [150, 300, 0, 0]]
    for row, wanted in zip(transformed(custom=ramp), expected, strict=True):
        assert row == pytest.approx(wanted)


def test_a_custom_transform_excludes_the_others():
    for other in ({"flatten": True}, {"invert": True}, {"amplify": 2}, {"shift_hz": 1}):
        with pytest.raises(ValueError, match="custom excludes flatten, invert, amplify"):
            PitchTransform(custom=lambda hz, _: hz, **other)


@pytest.mark.parametrize("name", ["amplify", "shift_hz"])
@pytest.mark.parametrize("value", [math.nan, math.inf, "2", None])
def test_numbers_must_be_finite(name, value):
    with pytest.raises(ValueError, match=f"{name} is .*; expected a finite number"):
        PitchTransform(**{name: value})


def test_a_custom_transform_must_give_numbers_of_the_same_shape():
    with pytest.raises(ValueError, match=r"gives no tensor of the shape \(2, 4\)"):
        transformed(custom=lambda hz, _: hz[:, 1:])
    with pytest.raises(ValueError, match="gives values that are not finite"):
        transformed(custom=lambda hz, _: hz.log() * math.inf)
    with pytest.raises(ValueError, match="gives no tensor"):
        transformed(custom=lambda hz, _: hz.numpy())
    padding_only = transformed(custom=lambda hz, _: hz.where(hz > 0, math.nan))
    assert padding_only == PITCH.tolist()
