"""The most likely monotonic alignment, by dynamic programming (Viterbi).

Kim et al. 2020, "Glow-TTS", arXiv:2005.11129; Badlani et al. 2021, arXiv:2108.10447. An alignment
starts with the first phone, ends with the last, and every phone has at least one frame. Of equally
likely alignments, the one whose phones begin latest is chosen.

`attended_durations` is for the attention of a decoder, which may have skipped phones;
`argmax_durations` counts frames without a search, as NVIDIA's FastPitch 1.0 does.
"""

import math
from collections.abc import Callable
from functools import cache

import numpy as np
import torch
from torch import Tensor

from modules.alignment.encoder import require_enough_frames

_LEAST_ATTENTION = 1e-6  # less is no evidence: a path may cross it


def monotonic_durations(
    log_attention: Tensor, phone_lengths: Tensor, mel_lengths: Tensor
) -> Tensor:
    """Finds the frames of each phone in the most likely alignment, by the faster implementation.

    From `AlignmentEncoder`, (B, T, N) -> (B, N) int64, at least 1, 0 for padding; they sum to the
    mel_lengths. An item without a phone, or with more phones than frames, is a ValueError.
    """
    require_enough_frames(phone_lengths, mel_lengths)
    search = _search_by_item if log_attention.device.type == "cpu" else _search_batched
    return search(log_attention.detach().float(), phone_lengths, mel_lengths)


def _search_by_item(log_attention: Tensor, phone_lengths: Tensor, mel_lengths: Tensor) -> Tensor:
    """Finds them on CPUs, item by item; numba compiles the loop at the first call (seconds)."""
    B, _, N = log_attention.shape
    durations = np.zeros((B, N), dtype=np.int64)
    _compiled()(
        log_attention.contiguous().numpy(), phone_lengths.numpy(), mel_lengths.numpy(), durations
    )
    return torch.from_numpy(durations)


@cache
def _compiled() -> Callable[..., None]:
    from modules.compiled import compiled  # here: numba takes time to import

    return compiled(_fill)


def _fill(
    log_attention: np.ndarray,
    phone_lengths: np.ndarray,
    mel_lengths: np.ndarray,
    durations: np.ndarray,
) -> None:
    """Fills durations (B, N) from log_attention (B, T, N), and lengths (B,)."""
    B, T_longest, N_longest = log_attention.shape
    moved = np.empty((T_longest, N_longest), np.bool_)  # whether a phone begins at this frame
    for item in range(B):
        N, T = phone_lengths[item], mel_lengths[item]
        # column 0 is before the first phone, where only the first frame may be
        scores = np.full((2, N + 1), -np.inf, np.float32)
        scores[0, 1] = log_attention[item, 0, 0]
        for t in range(1, T):
            before, now = scores[(t - 1) % 2], scores[t % 2]
            # phones beyond t cannot have begun; those before N - T + t cannot reach the end
            for n in range(max(0, N - T + t), min(t + 1, N)):
                moved[t, n] = before[n] >= before[n + 1]
                now[n + 1] = max(before[n], before[n + 1]) + log_attention[item, t, n]
        n = N - 1
        for t in range(T - 1, -1, -1):
            durations[item, n] += 1
            if n > 0 and moved[t, n]:
                n -= 1


@torch.no_grad()
def _search_batched(log_attention: Tensor, phone_lengths: Tensor, mel_lengths: Tensor) -> Tensor:
    """Finds them on GPUs: of all items of the batch at once, frame by frame."""
    B, T, N = log_attention.shape
    # column 0 is before the first phone, where only the first frame may be
    scores = log_attention.new_full((T, B, N + 1), -math.inf)
    scores[0, :, 1] = log_attention[:, 0, 0]
    for t in range(1, T):
        best = torch.maximum(scores[t - 1, :, :-1], scores[t - 1, :, 1:])
        torch.add(best, log_attention[:, t], out=scores[t, :, 1:])
    moved = scores[:-1, :, :-1] >= scores[:-1, :, 1:]  # (T - 1, B, N): a phone begins at t + 1
    frames = torch.arange(T, device=log_attention.device)[:, None]  # (T, 1)
    valid = frames < mel_lengths  # (T, B)
    steps = (moved & valid[1:, :, None]).long()
    steps[..., 0] = 0
    path = (phone_lengths - 1).expand(T, B).clone()  # (T, B): the phone of each frame
    for t in range(T - 1, 0, -1):
        path[t - 1] = path[t] - steps[t - 1].gather(1, path[t][:, None])[:, 0]
    return torch.zeros_like(log_attention[:, 0], dtype=torch.long).scatter_add(
        1, path.T, valid.T.long()
    )


@torch.no_grad()
def attended_durations(attention: Tensor, phone_lengths: Tensor, mel_lengths: Tensor) -> Tensor:
    """Frames of each phone in the most likely monotonic path through the attention of a decoder.

    Unlike that of `monotonic_durations` the path may begin and end at any phone and skip others,
    as the attention may have: these get no frame. Weights (B, T, N) -> (B, N) int64, which sum to
    the mel_lengths.
    """
    _, T, N = attention.shape
    frames, phones = (torch.arange(size, device=attention.device) for size in (T, N))
    valid = frames < mel_lengths[:, None]  # (B, T)
    score = attention.float().clamp(min=_LEAST_ATTENTION).log()
    score = score.masked_fill(~valid[:, :, None], 0.0)  # after the end, staying costs nothing
    score = score.masked_fill((phones >= phone_lengths[:, None])[:, None], -math.inf)
    best, origins = score[:, 0], []  # of a path that ends at each phone, (B, N)
    for t in range(1, T):
        reached, origin = best.cummax(dim=1)  # by staying, or from any phone before
        best = reached + score[:, t]
        origins.append(origin)
    path = [best.argmax(dim=1, keepdim=True)]
    for origin in reversed(origins):
        path.append(origin.gather(1, path[-1]))
    places = torch.cat(path[::-1], dim=1)  # (B, T): the phone of each frame
    return torch.zeros_like(best, dtype=torch.long).scatter_add(1, places, valid.long())


def argmax_durations(attention: Tensor) -> Tensor:
    """Counts the frames in which each phone has the largest weight, (T, N) -> (N,) int64.

    The durations of NVIDIA's FastPitch 1.0 (Łańcucki 2021, arXiv:2006.06873, section 2.1); 0 is
    allowed, and phones may be in any order.
    """
    return torch.bincount(attention.argmax(dim=1), minlength=attention.shape[1])
