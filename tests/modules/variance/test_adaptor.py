import numpy as np
import pytest
import torch
from torch import nn

from modules.layers.basic import length_mask
from modules.variance.adaptor import (
    Contour,
    ContourControl,
    ContourStats,
    SpeakerNorm,
    VariancePredictor,
    average_by_phone,
    interpolate_unvoiced,
    join_phones,
    regulate,
    round_durations,
)
from modules.variance.pitch_transform import PitchTransform


def test_predictor_ignores_padding():
    torch.manual_seed(0)
    predictor = VariancePredictor(4, 8, 3, dropout=0.0)
    hidden = torch.randn(1, 5, 4)
    padded = torch.cat([hidden, torch.full((1, 3, 4), 9.0)], dim=1)
    values = predictor(padded, length_mask(torch.tensor([5]), 8))
    torch.testing.assert_close(values[:, :5], predictor(hidden, torch.ones(1, 5, dtype=torch.bool)))
    assert (values[:, 5:] == 0).all()


def test_a_predictor_has_as_many_convolutions_as_layers():
    predictor = VariancePredictor(4, 8, 3, dropout=0.0, n_layers=3)
    parts = {name.split(".")[0] for name in predictor.state_dict()}
    assert parts == {"linear", *(f"{part}_{n}" for part in ("conv", "norm") for n in (1, 2, 3))}
    hidden, mask = torch.randn(1, 5, 4), torch.ones(1, 5, dtype=torch.bool)
    expected = hidden
    for n in (1, 2, 3):
        conv, norm = predictor.get_submodule(f"conv_{n}"), predictor.get_submodule(f"norm_{n}")
        expected = norm(conv(expected).relu())
    torch.testing.assert_close(predictor(hidden, mask), predictor.linear(expected).squeeze(2))


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


def test_regulator_repeats_each_phone_for_its_duration():
    phones = torch.tensor([[[1.0], [2.0], [3.0]]])
    frames = regulate(phones, durations=torch.tensor([[2, 0, 1]]))
    assert frames.squeeze().tolist() == [1.0, 1.0, 3.0]


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


def test_the_gradient_of_a_phone_is_the_sum_over_its_frames():
    phones = torch.zeros(1, 3, 1, requires_grad=True)
    frames = regulate(phones, torch.tensor([[2, 0, 1]]), max_length=5)
    (frames.squeeze() * torch.tensor([1.0, 10, 100, 1000, 1000])).sum().backward()
    assert phones.grad.squeeze().tolist() == [11, 0, 100]


def test_length_is_the_longest_item_unless_given():
    durations = torch.tensor([[1, 1], [2, 3]])
    phones = torch.ones(2, 2, 1)
    assert regulate(phones, durations).shape == (2, 5, 1)
    assert regulate(phones, durations, max_length=3).squeeze().sum(dim=1).tolist() == [2, 3]


def test_durations_are_rounded_and_an_item_never_ends_without_a_frame():
    durations = torch.tensor([[1.4, 1.6, 0.0], [0.1, 0.4, 0.0], [0.0, 0.0, 0.0]])
    assert round_durations(durations).tolist() == [[1, 2, 0], [0, 1, 0], [1, 0, 0]]


def test_phones_end_at_the_largest_number_of_frames():
    durations = torch.tensor([[2.0, 3.0, 4.0], [1.0, 1.0, 0.0]])
    frames = round_durations(durations, max_frames=torch.tensor([4, 9]))
    assert frames.tolist() == [[2, 2, 0], [1, 1, 0]]


def test_durations_that_are_not_numbers_count_as_none():
    durations = torch.tensor([[torch.nan, 2.0], [torch.nan, torch.nan]])
    assert round_durations(durations).tolist() == [[0, 2], [1, 0]]


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
