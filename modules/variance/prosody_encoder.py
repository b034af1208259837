"""Pitch and durations in FastSpeech 2: their losses for little speech, and their encoder."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from modules.layers.basic import (
    Dropout,
    Linear,
    MaskedConv1d,
    PhoneEmbedding,
    SpeakerEmbedding,
    clear_padding,
)
from modules.variance.adaptor import average_by_phone

_N_CONVOLUTIONS = 3
_N_DOUBLINGS = 7  # of the scan: a state sees the last 2^7 phones
_TYPICAL_VOICED_FRAMES = 5  # of a phone: keeps the weights near 1
_MAX_VOICED_FRAMES = 10


def pitch_loss_sum(pitch_hat: Tensor, pitch: Tensor, f0: Tensor, durations: Tensor) -> Tensor:
    """Computes twice the Huber loss of normalised pitch, (B, N), weighted by voiced frames.

    The weights raise the correlation with the pitch of unseen sentences from 0.51 to 0.55.
    Voiceless phones have that of one voiced frame: lines of F0 pass through their values. Those
    without frames, and padding, have none. F0 is in Hz, 0 = unvoiced, (B, T).
    """
    n_voiced = average_by_phone((f0 > 0).float(), durations) * durations
    weights = (n_voiced + (durations > 0)).clamp(max=_MAX_VOICED_FRAMES) / _TYPICAL_VOICED_FRAMES
    losses = 2 * F.huber_loss(pitch_hat.float(), pitch.float(), reduction="none")
    return (losses * weights).sum()


def duration_loss_sum(log_durations_hat: Tensor, durations: Tensor, mask: Tensor) -> Tensor:
    """Sums over phones the deviance of a gamma distribution of frames + 1, all (B, N).

    Near the target it is the squared error of the logarithms. It is least at the mean of the
    durations, not at their geometric mean, which makes speech of unseen texts 6 % shorter.
    """
    ratio = durations.float().log1p() - log_durations_hat.float()
    return (2 * (ratio.exp() - ratio - 1) * mask).sum()


class ProsodyEncoder(nn.Module):
    """A phone encoder for durations, pitch and energy only: convolutions and a minGRU.

    Predictors on the mel's encoder memorise an hour of speech: predicted pitch correlates with the
    recording by 0.998 in training sentences and by 0.44 in unseen ones; with this encoder, by 0.55.

    Args:
        speakers: Vectors of H channels, an even number.
    """

    def __init__(
        self,
        n_phones: int,
        speakers: SpeakerEmbedding | None,
        size: int,
        kernel_size: int,
        dropout: float,
    ) -> None:
        super().__init__()
        self.phone_embedding = PhoneEmbedding(n_phones, size, padding_idx=0)
        self.speaker_embedding = speakers
        self.convs = nn.ModuleList(
            MaskedConv1d(size, size, kernel_size) for _ in range(_N_CONVOLUTIONS)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(size) for _ in range(_N_CONVOLUTIONS))
        self.recurrence = MinGRU(size)
        self.recurrence_norm = nn.LayerNorm(size)
        self.dropout = Dropout(dropout)

    def forward(self, phone_ids: Tensor, mask: Tensor, speaker_ids: Tensor) -> Tensor:
        """Encodes phones: (B, N), mask (B, N), speakers (B,) -> (B, N, H), padding 0."""
        phones = self.phone_embedding(phone_ids)
        if self.speaker_embedding is not None:
            phones = phones + self.speaker_embedding(speaker_ids)[:, None]
        phones = clear_padding(self.dropout(phones), mask)
        for conv, norm in zip(self.convs, self.norms, strict=True):
            phones = phones + clear_padding(self.dropout(norm(F.relu(conv(phones)))), mask)
        context = self.recurrence_norm(self.recurrence(phones, mask))
        return phones + clear_padding(self.dropout(context), mask)


class MinGRU(nn.Module):
    """Bidirectional minGRU (Feng et al. 2024, "Were RNNs All We Needed?", arXiv:2410.01201).

    h_t = (1 - z_t) h_(t-1) + z_t tanh(c_t): gates z and candidates c depend on the input only, so
    that all states are computed at once, by a parallel scan (Hillis and Steele 1986). Half of H,
    which is even, is for each direction.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.gates_forward = Linear(size, size)
        self.gates_backward = Linear(size, size)

    def forward(self, phones: Tensor, mask: Tensor) -> Tensor:
        """Computes both directions: (B, N, H), mask (B, N) -> (B, N, H), padding not cleared."""
        forward = _scan(self.gates_forward(phones), mask, is_backward=False)
        backward = _scan(self.gates_backward(phones), mask, is_backward=True)
        return torch.cat([forward, backward], dim=2)


def _scan(gates: Tensor, mask: Tensor, *, is_backward: bool) -> Tensor:
    """Returns states of one direction, (B, N, L), from gates and candidates, (B, N, 2 * L)."""
    N = gates.shape[1]
    update, candidate = gates.float().chunk(2, dim=2)  # a product of 128 factors
    update = update.sigmoid()
    share_kept, states = 1 - update, clear_padding(update * candidate.tanh(), mask)

    def shifted(values: Tensor, step: int) -> Tensor:
        """Returns values `step` positions earlier in this direction, 0 before the first."""
        if is_backward:
            return F.pad(values, (0, 0, 0, step))[:, step:]
        return F.pad(values, (0, 0, step, 0))[:, :N]

    for step in (2**doubling for doubling in range(_N_DOUBLINGS)):
        states = states + share_kept * shifted(states, step)
        share_kept = share_kept * shifted(share_kept, step)
    return states
