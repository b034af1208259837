import numpy as np
import pytest
import torch
from torch import nn

from modules.variance import contours
from modules.variance.adaptor import VariancePredictor
from modules.variance.contours import Contour, ContourControl, ContourStats, SpeakerNorm
from modules.variance.pitch_transform import PitchTransform

HZ = ContourStats(*torch.tensor([[200.0], [50], [100], [400]]))
FIRST = torch.tensor([0])


def contour(stats: ContourStats = HZ, level="phone", quantization="linear", n_bins=5) -> Contour:
    torch.manual_seed(0)
    predictor = VariancePredictor(4, 4, 3, 0.0)
    return contours.binned_contour(predictor, stats, level, quantization, hidden=4, n_bins=n_bins)


def bins_of(contour: Contour, hz: list[float]) -> list[int]:
    vectors = contour.embed(contour.norm(torch.tensor([hz]), FIRST), FIRST, FIRST)  # (1, L, 4)
    distance = (vectors[0, :, None] - contour.embedding.weight).abs().sum(dim=2)
    return distance.argmin(dim=1).tolist()


def test_each_speaker_is_normalised_by_its_own_statistics():
    norm = SpeakerNorm(torch.tensor([100.0, 200.0]), torch.tensor([10.0, 40.0]))
    values, speakers = torch.tensor([[110.0, 100], [160, 200]]), torch.tensor([0, 1])
    assert norm(values, speakers).tolist() == [[1, 0], [-1, 0]]
    torch.testing.assert_close(norm.inverse(norm(values, speakers), speakers), values)
    with pytest.raises(ValueError, match="must be positive"):
        SpeakerNorm(torch.tensor([1.0]), torch.tensor([0.0]))


def test_bins_have_equal_width_or_ratio_in_hz_and_open_ends():
    edges = contour().edges * 50 + 200
    torch.testing.assert_close(edges, torch.tensor([100.0, 200, 300, 400]))
    assert bins_of(contour(), [20, 101, 299, 301, 399, 999]) == [0, 1, 2, 3, 3, 4]
    logarithmic = contour(quantization="log", n_bins=4)
    torch.testing.assert_close(logarithmic.edges, torch.tensor([100.0, 200, 400]))
    assert bins_of(logarithmic, [50, 150, 250, 500]) == [0, 1, 2, 3]
    # bins span the ranges of all speakers
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
    nothing = torch.zeros(1, 4)
    assert (contour().target(nothing, nothing > 0, durations, FIRST) == 0).all()
    # silence is an energy of its own
    target = contour().target(nothing, nothing == 0, torch.tensor([[4, 0]]), FIRST)
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
    durations, per_phone = torch.tensor([[1, 2]]), torch.tensor([[0.5, 2.0]])
    frames = spoken_values(contour(level="frame"), durations, 3, factor=per_phone)
    assert frames == [[100, 400, 400]]
    assert spoken_values(contour(), durations, 2, factor=1.5) == [[300, 300]]


def test_values_that_are_given_replace_the_prediction_and_never_fall_below_zero():
    given = torch.tensor([[120.0, -3.0]])
    assert spoken_values(contour(), torch.tensor([[1, 1]]), 2, given=given) == [[120, 0]]
    per_frame = spoken_values(contour(level="frame"), torch.tensor([[1, 2]]), 3, given=given)
    assert per_frame == [[120, 0, 0]]


@pytest.mark.parametrize("factor", [1.0, torch.ones(1, 500)])
def test_a_factor_of_one_changes_no_bit_of_the_prediction(factor):
    torch.manual_seed(0)
    predicted = 10 * torch.randn(1, 500)  # below -4 they stand for negative Hz
    mask, norm = torch.ones(1, 500, dtype=torch.bool), contour().norm
    assert ContourControl(factor=factor).apply(predicted, mask, norm, FIRST).equal(predicted)


def test_transforms_act_on_all_phones_before_the_factor():
    control = {"transform": PitchTransform(shift_hz=40), "factor": 1.5}
    control["voiced"], durations = torch.tensor([[True, False]]), torch.tensor([[1, 2]])
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
    added, predicted = pitch(hidden, target, mask, FIRST, None)
    expected = hidden[0, :2] + pitch.embedding.weight[[1, 3]]
    torch.testing.assert_close(added[0], torch.cat([expected, torch.zeros(1, 4)]))
    torch.testing.assert_close(predicted, pitch.predictor(hidden, mask))


MASK = torch.ones(1, 4, dtype=torch.bool)


def convolved(dropout: float = 0.0) -> Contour:
    torch.manual_seed(0)
    return contours.convolved_contour(VariancePredictor(6, 8, 3, 0.0), HZ, 6, 3, dropout)


def test_the_target_is_the_mean_of_the_normalised_voiced_frames():
    f0 = np.array([0.0, 210, 230, 0, 0, 0, 150, 0, 170, 190])
    durations = [4, 2, 0, 4]
    expected, start = [], 0
    normalised = np.where(f0 == 0, 0, (f0 - 200) / 50)  # frames first, as TensorFlowTTS does
    for length in durations:
        frames = normalised[start : start + length]
        voiced = frames[frames != 0]
        expected.append(voiced.mean() if len(voiced) else 0.0)
        start += length
    values = torch.tensor(f0, dtype=torch.float32)[None]
    target = convolved().target(values, values > 0, torch.tensor([durations]), FIRST)
    np.testing.assert_allclose(target[0].numpy(), expected, rtol=1e-5, atol=1e-6)


def test_the_prediction_is_made_from_the_encoded_phones():
    part, phones, other = convolved().eval(), torch.randn(1, 4, 6), torch.randn(1, 4, 6)
    target = torch.randn(1, 4)
    added, predicted = part(phones, target, MASK, FIRST, source=other)
    torch.testing.assert_close(predicted, part.predictor(other, MASK))
    vectors = torch.nn.functional.conv1d(
        target[:, None], part.embedding.weight, part.embedding.bias, padding=1
    )
    torch.testing.assert_close(added, phones + vectors.mT)


def test_a_given_pitch_of_zero_is_a_voiceless_phone():
    part, phones = convolved().eval(), torch.randn(1, 4, 6)
    given = torch.tensor([[250.0, 0, 200, 0]])
    durations = torch.ones(1, 4, dtype=torch.long)
    added, hz = part.infer(phones, MASK, durations, FIRST, ContourControl(given))
    expected, _ = part(phones, torch.tensor([[1.0, 0, 0, 0]]), MASK, FIRST, None)
    torch.testing.assert_close(added, expected)
    torch.testing.assert_close(hz, torch.tensor([[250.0, 200, 200, 200]]))


def test_dropout_of_the_vectors_ends_with_training():
    part, phones, values = convolved(dropout=0.9), torch.randn(1, 4, 6), torch.randn(1, 4)
    first, second = (part.train()(phones, values, MASK, FIRST, None)[0] for _ in range(2))
    assert not torch.equal(first, second)
    spoken = [part.eval()(phones, values, MASK, FIRST, None)[0] for _ in range(2)]
    assert torch.equal(*spoken)


def test_the_pitch_of_frames_passes_over_phones_without_pitch():
    durations = torch.tensor([[1, 1, 1, 2]])
    hz = torch.tensor([[100.0, 200, 140, 200]])  # infer gives 200, the mean, where there is none
    voiced = torch.tensor([[True, False, True, False]])
    expected = torch.tensor([[100.0, 120, 140, 140, 140]])
    given = ContourControl(given=hz * voiced, voiced=~voiced)
    for control in (ContourControl(voiced=voiced), given):
        torch.testing.assert_close(convolved().per_frame(hz, durations, 5, control), expected)
    everything = convolved().per_frame(hz, durations, 5, ContourControl())
    torch.testing.assert_close(everything, torch.tensor([[100.0, 200, 140, 170, 200]]))
