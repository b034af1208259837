import math
from itertools import groupby, product

import pytest
import torch

from modules.aligner_losses import binarization_sum, forward_sum, forward_sum_loss
from tests.modules.alignments import all_durations, log_likelihood, random_batch

SIZES = [(1, 1), (1, 4), (3, 3), (2, 6), (4, 6)]  # phones, frames
NO_BLANK = -1e9


def cost_of_all(log_attention, phone_lengths, mel_lengths, blank_logit=-1.0):
    """Negative log-likelihood of all ways through each item, one by one, (B,).

    A way says for every frame how many phones have begun, and whether it is a blank.
    """
    costs = []
    for item, N, T in zip(log_attention, phone_lengths.tolist(), mel_lengths.tolist(), strict=True):
        blanks = torch.full((T, 1), blank_logit)
        frames = torch.cat([blanks, item[:T, :N]], dim=1).log_softmax(dim=1)  # (T, 1 + N)
        ways = [
            frames[torch.arange(T), torch.tensor(labels)].sum()
            for labels in product(range(N + 1), repeat=T)
            if [label for label, _ in groupby(labels) if label] == list(range(1, N + 1))
        ]
        costs.append(-torch.stack(ways).logsumexp(dim=0))
    return torch.stack(costs)


def cost_of_alignments(log_attention, phone_lengths, mel_lengths):
    """As above, of the ways without blanks; what they are is written elsewhere."""
    return torch.stack(
        [
            -torch.stack(
                [log_likelihood(item, durations) for durations in all_durations(int(N), int(T))]
            ).logsumexp(dim=0)
            for item, N, T in zip(log_attention, phone_lengths, mel_lengths, strict=True)
        ]
    )


def test_forward_sum_adds_up_all_alignments():
    batch = random_batch([*SIZES, (5, 8), (2, 9)])
    torch.testing.assert_close(forward_sum(*batch, NO_BLANK), cost_of_alignments(*batch))


@pytest.mark.parametrize("blank_logit", [-1.0, 2.0, NO_BLANK])
def test_blanks_may_stand_anywhere(blank_logit):
    batch = random_batch(SIZES)
    expected = cost_of_all(*batch, blank_logit)
    torch.testing.assert_close(forward_sum(*batch, blank_logit), expected)


@pytest.mark.parametrize("blank_logit", [-1.0, NO_BLANK])
def test_gradients_are_those_of_all_alignments_and_zero_for_padding(blank_logit):
    log_attention, *lengths = random_batch(SIZES)
    gradients = []
    for cost in (forward_sum, cost_of_all):
        given = log_attention.clone().requires_grad_()
        cost(given, *lengths, blank_logit).sum().backward()
        gradients.append(given.grad)
    given, expected = gradients
    torch.testing.assert_close(given, expected, rtol=1e-4, atol=1e-6)
    for gradient, N, T in zip(given, *lengths, strict=True):
        assert (gradient[T:] == 0).all()
        assert (gradient[:, N:] == 0).all()


def test_loss_is_the_mean_per_frame():
    batch = random_batch(SIZES)
    n_frames = sum(frames for _, frames in SIZES)
    expected = float(cost_of_all(*batch).sum()) / n_frames
    assert float(forward_sum_loss(*batch)) == pytest.approx(expected)


def test_an_even_attention_costs_the_logarithm_of_the_phones_less_that_of_the_alignments():
    even = torch.full((1, 40, 3), 1 / 3).log()
    n_alignments = 39 * 38 / 2  # places of two borders among 39
    loss = forward_sum(even, torch.tensor([3]), torch.tensor([40]), NO_BLANK)
    assert float(loss) == pytest.approx(40 * math.log(3) - math.log(n_alignments))


def test_long_items_in_half_precision_have_the_loss_of_single_precision():
    log_attention, *lengths = random_batch([(150, 800), (20, 90)], padding=0)
    half = log_attention.bfloat16()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = forward_sum(half, *lengths)
    assert loss.dtype == torch.float32
    torch.testing.assert_close(loss, forward_sum(half.float(), *lengths))


def test_impossible_frames_leave_gradients_finite():
    log_attention, *lengths = random_batch([(3, 6)])
    log_attention[0, 2, 1] = -torch.inf
    log_attention.requires_grad_()
    forward_sum(log_attention, *lengths).sum().backward()
    assert log_attention.grad.isfinite().all()


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ([(3, 4), (5, 4)], "item 1 has 5 phones and 4 frames"),
        ([(0, 4)], "item 0 has 0 phones and 4 frames"),
    ],
)
def test_items_that_cannot_be_aligned_are_refused(sizes, message):
    phone_lengths, mel_lengths = torch.tensor(sizes).T
    with pytest.raises(ValueError, match=message):
        forward_sum(torch.zeros(len(sizes), 4, 5), phone_lengths, mel_lengths)


def test_binarization_is_the_cost_of_the_hard_alignment():
    log_attention, phone_lengths, _ = random_batch([(3, 6), (2, 8)])
    durations = torch.tensor([[1, 3, 2, 0, 0], [7, 1, 0, 0, 0]])
    expected = -sum(
        log_likelihood(item, tuple(given[:N].tolist()))
        for item, given, N in zip(log_attention, durations, phone_lengths, strict=True)
    )
    torch.testing.assert_close(binarization_sum(log_attention, durations), expected)
    louder = log_attention + torch.randn(2, 10, 1)
    torch.testing.assert_close(binarization_sum(louder, durations), expected)


def test_binarization_has_no_gradient_in_padding():
    log_attention, *_ = random_batch([(3, 6), (2, 8)])
    log_attention.requires_grad_()
    binarization_sum(log_attention, torch.tensor([[1, 3, 2, 0, 0], [7, 1, 0, 0, 0]])).backward()
    assert log_attention.grad.isfinite().all()
    assert log_attention.grad[0].abs().sum(dim=1).bool().tolist() == [True] * 6 + [False] * 4
    assert (log_attention.grad[0, :, 3:] == 0).all()
