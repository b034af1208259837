import numpy as np
import torch

from modules.variance.adaptor import ContourControl, ContourStats, VariancePredictor
from modules.variance.convolved_contour import ConvolvedContour

STATS = ContourStats.of(mean=200, std=50, minimum=80, maximum=400)
MASK = torch.ones(1, 4, dtype=torch.bool)
SPEAKER = torch.zeros(1, dtype=torch.long)


def contour(dropout: float = 0.0) -> ConvolvedContour:
    torch.manual_seed(0)
    return ConvolvedContour(VariancePredictor(6, 8, 3, 0.0), STATS, 6, 3, dropout)


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
    target = contour().target(values, values > 0, torch.tensor([durations]), SPEAKER)
    np.testing.assert_allclose(target[0].numpy(), expected, rtol=1e-5, atol=1e-6)


def test_the_prediction_is_made_from_the_encoded_phones():
    part, phones, other = contour().eval(), torch.randn(1, 4, 6), torch.randn(1, 4, 6)
    target = torch.randn(1, 4)
    added, predicted = part(phones, target, MASK, SPEAKER, source=other)
    torch.testing.assert_close(predicted, part.predictor(other, MASK))
    vectors = torch.nn.functional.conv1d(
        target[:, None], part.embedding.weight, part.embedding.bias, padding=1
    )
    torch.testing.assert_close(added, phones + vectors.mT)


def test_a_given_pitch_of_zero_is_a_voiceless_phone():
    part, phones = contour().eval(), torch.randn(1, 4, 6)
    given = torch.tensor([[250.0, 0, 200, 0]])
    durations = torch.ones(1, 4, dtype=torch.long)
    added, hz = part.infer(phones, MASK, durations, SPEAKER, ContourControl(given))
    expected, _ = part(phones, torch.tensor([[1.0, 0, 0, 0]]), MASK, SPEAKER)
    torch.testing.assert_close(added, expected)
    torch.testing.assert_close(hz, torch.tensor([[250.0, 200, 200, 200]]))


def test_dropout_of_the_vectors_ends_with_training():
    part, phones, values = contour(dropout=0.9), torch.randn(1, 4, 6), torch.randn(1, 4)
    first, second = (part.train()(phones, values, MASK, SPEAKER)[0] for _ in range(2))
    assert not torch.equal(first, second)
    spoken = [part.eval()(phones, values, MASK, SPEAKER)[0] for _ in range(2)]
    assert torch.equal(*spoken)


def test_the_pitch_of_frames_passes_over_phones_without_pitch():
    durations = torch.tensor([[1, 1, 1, 2]])
    hz = torch.tensor([[100.0, 200, 140, 200]])  # infer gives 200, the mean, where there is none
    voiced = torch.tensor([[True, False, True, False]])
    expected = torch.tensor([[100.0, 120, 140, 140, 140]])
    by_name = ContourControl(voiced=voiced)
    given = ContourControl(given=hz * voiced, voiced=~voiced)
    for control in (by_name, given):
        torch.testing.assert_close(contour().per_frame(hz, durations, 5, control), expected)
    everything = contour().per_frame(hz, durations, 5, ContourControl())
    torch.testing.assert_close(everything, torch.tensor([[100.0, 200, 140, 170, 200]]))
