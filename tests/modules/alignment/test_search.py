import itertools
import math

import numpy as np
import pytest
import torch

from modules.alignment import search
from modules.alignment.search import (
    _search_batched,
    _search_by_item,
    argmax_durations,
    attended_durations,
    monotonic_durations,
)
from tests.modules.alignments import all_durations, log_likelihood, random_batch

SIZES = [(1, 1), (1, 6), (5, 5), (4, 9), (3, 10), (2, 7)]  # phones, frames


def search_in_python(log_attention, phone_lengths, mel_lengths):
    durations = np.zeros((len(log_attention), log_attention.shape[2]), np.int64)
    arrays = (log_attention.numpy(), phone_lengths.numpy(), mel_lengths.numpy())
    search._fill(*arrays, durations)
    return torch.from_numpy(durations)


SEARCHES = [_search_by_item, _search_batched, search_in_python]


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("seed", range(5))
def test_no_alignment_is_more_likely(search, seed):
    log_attention, phone_lengths, mel_lengths = random_batch(SIZES, seed=seed)
    found = search(log_attention, phone_lengths, mel_lengths)
    for item, durations, N, T in zip(log_attention, found, phone_lengths, mel_lengths, strict=True):
        ways = all_durations(int(N), int(T))
        best = max(ways, key=lambda way: float(log_likelihood(item, way)))
        assert durations.tolist() == [*best, *[0] * (len(durations) - len(best))]


@pytest.mark.parametrize("search", SEARCHES)
def test_of_equally_likely_ways_phones_begin_late_and_each_gets_a_frame(search):
    durations = search(torch.zeros(1, 6, 3), torch.tensor([3]), torch.tensor([6]))
    assert durations.tolist() == [[4, 1, 1]]
    log_attention = torch.full((1, 5, 3), -math.inf)
    log_attention[0, :, 0] = 0
    durations = search(log_attention, torch.tensor([3]), torch.tensor([5]))
    assert durations.sum() == 5
    assert (durations >= 1).all()


def test_the_ways_of_cpu_and_gpu_agree_on_long_items():
    batch = random_batch([(80, 400), (1, 90), (60, 60), (33, 380)], seed=1)
    torch.testing.assert_close(_search_batched(*batch), _search_by_item(*batch), rtol=0, atol=0)


def test_durations_sum_to_the_frames_whatever_the_padding_and_the_precision():
    log_attention, *lengths = random_batch([(20, 50), (7, 64)])
    durations = monotonic_durations(log_attention.requires_grad_(), *lengths)
    assert durations.sum(dim=1).tolist() == [50, 64]
    assert not durations.requires_grad
    padded = torch.nn.functional.pad(log_attention, (0, 3, 0, 5), value=0.0)
    torch.testing.assert_close(monotonic_durations(padded, *lengths)[:, :-3], durations)
    half = monotonic_durations(log_attention.bfloat16(), *lengths)
    assert half.sum(dim=1).tolist() == [50, 64]


@pytest.mark.parametrize("seed", range(5))
def test_no_monotonic_path_through_attention_is_more_likely(seed):
    generator = torch.Generator().manual_seed(seed)
    attention = torch.rand(2, 5, 4, generator=generator).softmax(dim=2)
    phone_lengths, mel_lengths = torch.tensor([4, 3]), torch.tensor([5, 4])
    found = attended_durations(attention, phone_lengths, mel_lengths)
    for weights, durations, N, T in zip(attention, found, phone_lengths, mel_lengths, strict=True):
        paths = itertools.combinations_with_replacement(range(int(N)), int(T))
        best = max(paths, key=lambda path: sum(weights[t, n].log() for t, n in enumerate(path)))
        assert durations.tolist() == [best.count(n) for n in range(4)]


def test_phones_that_attention_skips_have_no_frames_and_there_may_be_more_phones_than_frames():
    attention = torch.zeros(1, 4, 5)
    attention[0, [0, 1, 2, 3], [0, 0, 3, 3]] = 1.0
    found = attended_durations(attention, torch.tensor([5]), torch.tensor([4]))
    assert found.tolist() == [[2, 0, 0, 2, 0]]
    found = attended_durations(torch.eye(3)[None, :2], torch.tensor([3]), torch.tensor([2]))
    assert found.tolist() == [[1, 1, 0]]


def test_argmax_counts_frames_in_whatever_order():
    weights = torch.tensor(
        [[0.6, 0.4, 0.0, 0.0], [0.1, 0.2, 0.0, 0.7], [0.5, 0.3, 0.0, 0.2], [0.0, 1.0, 0.0, 0.0]]
    )
    assert argmax_durations(weights).tolist() == [2, 1, 0, 1]
