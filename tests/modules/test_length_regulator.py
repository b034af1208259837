import pytest
import torch

from modules.length_regulator import regulate, whole_frames


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
    assert whole_frames(durations).tolist() == [[1, 2, 0], [0, 1, 0], [1, 0, 0]]
