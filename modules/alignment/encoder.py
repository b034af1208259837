"""The attention that learns which phone each frame belongs to, its prior and its losses.

Badlani et al. 2021, "One TTS Alignment To Rule Them All", arXiv:2108.10447, section 2, with the
sizes and parameter names of `attention.` in NVIDIA's FastPitch 1.1 (without `attn_proj`, which is
not used there). It departs from FastPitch 1.1 in that
- keys come from single phones. A key that sees its neighbours may encode the sounds of the phone
  before it: all boundaries then move by a part of a phone, at no cost to the losses;
- padding is cleared before each convolution: an utterance gives the same result alone and in a
  batch;
- the prior of a frame is a distribution over the phones of the text; that of FastPitch has one more
  place that is cut off, so that the last frame seems to lie beyond the text. The prior is computed
  as the paper defines it and not interpolated from a table of rounded sizes;
- a speaker embedding may be added to the phones.

The prior helps at the start only, and the binarization loss, for models that read the soft
attention, makes boundaries less exact (docs/benchmarks.md, "Durations learned during training").
"""

import math
from collections import OrderedDict
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from modules.layers.basic import MaskedConv1d, clear_padding, length_mask

PRIOR_FLOOR = 1e-8  # added to the prior's probabilities, so that long pauses may leave the diagonal
_LOG_ZERO = -1e9  # minus infinity would make gradients of padding NaN


class AlignmentEncoder(nn.Module):
    """Phones (H channels) and a mel to a soft attention, compared in C channels."""

    def __init__(
        self, phone_channels: int, n_mels: int, attention_channels: int, temperature: float
    ) -> None:
        super().__init__()
        self.temperature = temperature
        self.key_proj = nn.Sequential(
            _convolution(phone_channels, 2 * phone_channels, 1, "relu"),
            nn.ReLU(),
            _convolution(2 * phone_channels, attention_channels, 1, "linear"),
        )
        self.query_proj = nn.Sequential(
            _convolution(n_mels, 2 * n_mels, 3, "relu"),
            nn.ReLU(),
            _convolution(2 * n_mels, n_mels, 1, "linear"),
            nn.ReLU(),
            _convolution(n_mels, attention_channels, 1, "linear"),
        )

    def forward(
        self,
        phones: Tensor,
        mel: Tensor,
        phone_lengths: Tensor,
        mel_lengths: Tensor,
        speakers: Tensor | None = None,
    ) -> Tensor:
        """Compares every frame with every phone, in float32 even under autocast.

        Args:
            phones: Embeddings without positions and neighbours, (B, N, H).
            mel: Natural log, (B, T, M).
            speakers: Embeddings of the speakers, (B, H), added to their phones.

        Returns:
            Log-probability of each phone per frame, (B, T, N) float32, -inf for padded phones,
            undefined for padded frames.
        """
        phone_mask = length_mask(phone_lengths, phones.shape[1])
        frame_mask = length_mask(mel_lengths, mel.shape[1])
        if speakers is not None:
            phones = phones + speakers[:, None]
        keys = self.key_proj(clear_padding(phones, phone_mask))  # (B, N, C)
        queries = self.query_proj(clear_padding(mel, frame_mask))  # (B, T, C)
        with torch.autocast(mel.device.type, enabled=False):
            queries, keys = queries.float(), keys.float()
            # |query - key|^2 less |query|^2; differences of all pairs would take C times the
            # memory: 0.6 GB for 16 items of 800 x 150
            lengths = keys.square().sum(dim=2)[:, None]
            distances = torch.baddbmm(lengths, queries, keys.mT, alpha=-2)  # (B, T, N)
            logits = -self.temperature * distances
            return logits.masked_fill(~phone_mask[:, None], -math.inf).log_softmax(dim=2)


def _convolution(
    channels: int, next_channels: int, kernel_size: int, gain: Literal["relu", "linear"]
) -> nn.Module:
    """Returns a convolution under the name `conv`, as in NVIDIA's checkpoints."""
    conv = MaskedConv1d(channels, next_channels, kernel_size)
    nn.init.xavier_uniform_(conv.weight, nn.init.calculate_gain(gain))
    return nn.Sequential(OrderedDict(conv=conv))


def beta_binomial_log_prior(
    phone_lengths: Tensor, mel_lengths: Tensor, n_phones: int, n_frames: int, scale: float = 1.0
) -> Tensor:
    """Computes a log-prior of phones per frame around the diagonal (Badlani et al., sec. 2).

    Phone k of N (from 0) at frame t of T (from 1) is BetaBinomial(N - 1, scale * t,
    scale * (T + 1 - t)), to which `PRIOR_FLOOR` is added. Nothing is cached: a batch of 16 of
    800 x 150 costs less than its forward-sum loss, lengths hardly repeat, and one array per
    utterance would be 6 GB for 13,000.

    Returns:
        (B, n_frames, n_phones) float32, 0 for padding; a larger scale is narrower.
    """
    device = phone_lengths.device
    # terms of some thousands cancel; Apple's GPUs have no float64
    exact = torch.float32 if device.type == "mps" else torch.float64
    phones = torch.arange(n_phones, device=device)  # (N,)
    frames = torch.arange(1, n_frames + 1, device=device)  # (T,)
    last = (phone_lengths - 1)[:, None, None].to(exact)  # (B, 1, 1)
    remaining = (last - phones).clamp(min=0)  # (B, 1, N)
    alpha = scale * frames.to(exact)[:, None]  # (T, 1)
    beta = scale * (mel_lengths[:, None] + 1 - frames).clamp(min=1).to(exact)[..., None]  # (B,T,1)
    choices = torch.lgamma(last + 1) - torch.lgamma(phones.to(exact) + 1)
    choices = choices - torch.lgamma(remaining + 1)
    taken = torch.lgamma(alpha + phones) - torch.lgamma(alpha)  # (T, N), the same for all items
    left = torch.lgamma(beta + remaining) - torch.lgamma(beta)  # (B, T, N)
    total = torch.lgamma(alpha + beta + last) - torch.lgamma(alpha + beta)  # (B, T, 1)
    log_prior = (choices + taken + left - total).float()
    log_prior = torch.logaddexp(log_prior, log_prior.new_tensor(math.log(PRIOR_FLOOR)))
    frame_mask = length_mask(mel_lengths, n_frames)[..., None]
    return log_prior * (frame_mask & length_mask(phone_lengths, n_phones)[:, None])


def require_enough_frames(phone_lengths: Tensor, mel_lengths: Tensor) -> None:
    """Raises a ValueError if an item has no phone, or more phones than frames; waits for a GPU."""
    pairs = zip(phone_lengths.tolist(), mel_lengths.tolist(), strict=True)
    for item, (phones, frames) in enumerate(pairs):
        if not 1 <= phones <= frames:
            need = "an alignment needs one phone or more, and a frame for each"
            found = f"item {item} has {phones} phones and {frames} frames"
            raise ValueError(f"{found}; {need}: leave this utterance out")


def forward_sum(
    log_attention: Tensor, phone_lengths: Tensor, mel_lengths: Tensor, blank_logit: float = -1.0
) -> Tensor:
    """Computes the negative log-likelihood of all monotonic alignments: (B,) nats, float32.

    An alignment is monotonic: it starts with the first phone, ends with the last, and every phone
    has at least one frame (else a ValueError). This is connectionist temporal classification whose
    labels are the places in the text. As in NVIDIA's code, a blank competes with the phones of each
    frame. With it a phone gains nothing from frames that it does not fit; without it (-1e9) single
    phones absorb their neighbours. After 130 updates on six minutes of LJSpeech half of the
    boundaries are within 58 ms of MFA's with it, and within 360 ms without. It has to stay: a
    blank_logit that falls to -12 between updates 200 and 350 makes 17 ms more than 100.

    Args:
        log_attention: From `AlignmentEncoder`, (B, T, N); normalised again with the blank.
        blank_logit: Logit of the blank, on the scale of log_attention.
    """
    require_enough_frames(phone_lengths, mel_lengths)
    B, _, N = log_attention.shape
    logits = F.pad(log_attention.float().clamp(min=_LOG_ZERO), (1, 0), value=blank_logit)
    return F.ctc_loss(
        logits.transpose(0, 1).log_softmax(dim=2),  # (T, B, N + 1)
        torch.arange(1, N + 1, device=logits.device).expand(B, N),
        mel_lengths,
        phone_lengths,
        reduction="none",
    )


def binarization_sum(log_attention: Tensor, durations: Tensor) -> Tensor:
    """Computes the distance of soft attention, log-probabilities (B, T, N), to durations.

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
