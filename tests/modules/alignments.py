"""All monotonic alignments, one by one: what aligners are checked against."""

from collections.abc import Iterator
from itertools import combinations, pairwise

import torch
from torch import Tensor


def all_durations(n_phones: int, n_frames: int) -> Iterator[tuple[int, ...]]:
    """Every way to give each phone at least one frame."""
    for begins in combinations(range(1, n_frames), n_phones - 1):
        yield tuple(end - begin for begin, end in pairwise((0, *begins, n_frames)))


def log_likelihood(log_attention: Tensor, durations: tuple[int, ...]) -> Tensor:
    """That of one alignment; log_attention (T, N)."""
    path = torch.arange(len(durations)).repeat_interleave(torch.tensor(durations))
    return log_attention[torch.arange(len(path)), path].sum()


def random_batch(
    sizes: list[tuple[int, int]], *, padding: int = 2, seed: int = 0
) -> tuple[Tensor, Tensor, Tensor]:
    """Log-attention (B, T, N) with -inf for padded phones, phone_lengths, mel_lengths."""
    generator = torch.Generator().manual_seed(seed)
    phone_lengths, mel_lengths = torch.tensor(sizes).T
    N, T = int(phone_lengths.max()) + padding, int(mel_lengths.max()) + padding
    logits = 3 * torch.randn(len(sizes), T, N, generator=generator)
    padded = torch.arange(N) >= phone_lengths[:, None, None]
    log_attention = logits.masked_fill(padded, -torch.inf).log_softmax(dim=2)
    return log_attention, phone_lengths.contiguous(), mel_lengths.contiguous()
