"""The variance adaptor (Ren et al. 2021, arXiv:2006.04558), and the output of acoustic models.

Predictors, the length regulator, and values of phones from those of frames. All work on whole
batches, without loops; without waiting for a GPU where the length is given.
"""

from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from modules.layers.basic import Dropout, Linear, MaskedConv1d, clear_padding, length_mask

Level = Literal["phone", "frame"]


class VariancePredictor(nn.Module):
    """Convolutions (odd kernels) with ReLU, LayerNorm and dropout, and a map to one value.

    Without layers there is only the map, of filter_size channels.
    """

    def __init__(
        self, hidden: int, filter_size: int, kernel_size: int, dropout: float, n_layers: int = 2
    ) -> None:
        super().__init__()
        self.n_layers = n_layers
        for number in range(1, n_layers + 1):
            channels = hidden if number == 1 else filter_size
            self.add_module(f"conv_{number}", MaskedConv1d(channels, filter_size, kernel_size))
            self.add_module(f"norm_{number}", nn.LayerNorm(filter_size))
        self.linear = Linear(filter_size, 1)
        self.dropout = Dropout(dropout)

    def forward(self, hidden: Tensor, mask: Tensor) -> Tensor:
        """Predicts one value per phone or frame: (B, L, H) -> (B, L), padding 0."""
        for number in range(1, self.n_layers + 1):
            conv, norm = self.get_submodule(f"conv_{number}"), self.get_submodule(f"norm_{number}")
            hidden = self.dropout(norm(F.relu(conv(hidden, mask))))
        return clear_padding(self.linear(hidden), mask).squeeze(2)


def regulate(phones: Tensor, durations: Tensor, max_length: int | None = None) -> Tensor:
    """Repeats each phone's vector for its duration: the length regulator.

    Ren et al. 2019, "FastSpeech", arXiv:1905.09263, eq. 1. Phones (B, N, H), durations (B, N) int64
    frames, 0 for padding -> (B, T, H), 0 beyond the sum of an item's durations. What exceeds T,
    `max_length`, is cut; without it the longest item is looked up, and the host waits for a GPU.
    """
    B, N, H = phones.shape
    ends = durations.cumsum(dim=1)  # (B, N): first frame after each phone
    if max_length is None:
        max_length = int(ends[:, -1].max())
    frames = torch.arange(max_length, device=phones.device).repeat(B, 1)  # (B, T)
    owners = torch.searchsorted(ends, frames, right=True)  # (B, T), N beyond the last phone
    owners = owners + torch.arange(B, device=phones.device)[:, None] * (N + 1)
    # one lookup in a table whose rows are the phones, and a row of zeros after each item's last
    return F.embedding(owners, F.pad(phones, (0, 0, 0, 1)).reshape(B * (N + 1), H))


def round_durations(durations: Tensor, max_frames: Tensor | None = None) -> Tensor:
    """Rounds durations to whole frames (half to even), at least one per item: (B, N), int64.

    Padding is 0; NaN, of a network that diverged, counts as 0. An item that rounds to 0 frames gets
    one, in its longest phone. Phones end at `max_frames`, (B,), at the latest.
    """
    durations = durations.nan_to_num(0)
    frames = durations.round().long()
    if max_frames is not None:
        ends = frames.cumsum(dim=1).minimum(max_frames[:, None])
        frames = ends.diff(dim=1, prepend=torch.zeros_like(ends[:, :1]))
    empty = frames.sum(dim=1, keepdim=True) == 0
    return frames.scatter_add(1, durations.argmax(dim=1, keepdim=True), empty.long())


def interpolate_unvoiced(f0: Tensor, lengths: Tensor) -> Tensor:
    """Interpolates the unvoiced gaps, 0 Hz, of a pitch contour linearly: (B, T) -> (B, T).

    Before the first and after the last voiced frame the nearest voiced value is held. An item
    without a voiced frame stays 0, as does what is beyond the lengths.
    """
    _, T = f0.shape
    frames = torch.arange(T, device=f0.device).expand_as(f0)
    valid = length_mask(lengths, T)
    voiced = (f0 > 0) & valid
    count = voiced.cumsum(dim=1)  # (B, T) voiced frames up to here
    # frame by number: -1 before the first voiced one, T after the last; T + 1 is never looked up
    numbers = F.pad(torch.full_like(frames, T), (1, 1), value=-1)
    numbers = numbers.scatter(1, torch.where(voiced, count, T + 1), frames)
    before, after = numbers.gather(1, count), numbers.gather(1, count + ~voiced)
    left = torch.where(before < 0, after, before).clamp(max=T - 1)
    right = torch.where(after == T, before, after).clamp(min=0)
    share = (frames - left).to(f0.dtype) / (right - left).clamp(min=1)
    contour = torch.lerp(f0.gather(1, left), f0.gather(1, right), share)
    return contour * (valid & voiced.any(dim=1, keepdim=True))


def join_phones(
    values: Tensor, durations: Tensor, known_mask: Tensor | None, max_length: int
) -> Tensor:
    """Joins values of phones by straight lines between the middles of the phones.

    Before the first and after the last of them the value is held. F0 in Hz, (B, N), durations in
    frames, (B, N) -> (B, T), 0 beyond the sum of an item's durations. Phones without frames, or
    outside the known mask, have no value.
    """
    ends = durations.cumsum(dim=1)
    middles = ends - (durations + 1) // 2  # (B, N)
    has_value = durations > 0 if known_mask is None else (durations > 0) & known_mask
    middles = middles.where(has_value, max_length)
    frames = values.new_zeros(len(values), max_length + 1).scatter(1, middles, values)
    return interpolate_unvoiced(frames[:, :max_length], ends[:, -1])


def average_by_phone(values: Tensor, durations: Tensor) -> Tensor:
    """Averages contours (B, T) over the frames of phones, (B, N) -> (B, N), 0 without any."""
    # sums of a thousand frames of some hundred Hz lose tenths of a hertz in float32
    sums = F.pad(values.double().cumsum(dim=1), (1, 0))  # (B, T + 1)
    ends = durations.cumsum(dim=1)
    totals = sums.gather(1, ends) - sums.gather(1, ends - durations)
    return (totals / durations.clamp(min=1)).to(values.dtype)


class TtsOutput(NamedTuple):
    """A synthesised mel and its prosody. Padding is 0 except in the mel.

    Models that align by attention find durations in it, and predict no pitch and energy.
    """

    mel: Tensor  # (B, M, T), the log floor beyond the lengths
    mel_lengths: Tensor  # (B,)
    durations: Tensor  # (B, N) frames
    pitch: Tensor | None = None  # Hz, (B, N), or (B, T) where pitch_level is "frame"
    energy: Tensor | None = None  # (B, N) or (B, T), by energy_level
    pitch_level: Level = "phone"
    energy_level: Level = "phone"
    alignment: Tensor | None = None  # attention, (B, T, N): weights of the phones in each frame
    gate: Tensor | None = None  # (B, T), probability that speech ends with this frame
    stopped: Tensor | None = None  # (B,) bool; False where a limit ended the speech, not the model
    prior: Tensor | None = None  # (B, M, T), the mean mel that a flow drew the mel from

    def contours_per_frame(self) -> tuple[Tensor | None, Tensor | None]:
        """Returns pitch and energy per frame, (B, T) each; values of phones are repeated."""

        def per_frame(values: Tensor | None, level: Level) -> Tensor | None:
            if values is None or level == "frame":
                return values
            return regulate(values.unsqueeze(2), self.durations, self.mel.shape[2]).squeeze(2)

        return per_frame(self.pitch, self.pitch_level), per_frame(self.energy, self.energy_level)


def finished_mel(mel_hat: Tensor, frame_mask: Tensor, log_floor: float) -> Tensor:
    """Finishes a mel (B, T, M): (B, M, T) float32, the log floor beyond the lengths."""
    return mel_hat.float().mT.masked_fill(~frame_mask[:, None], log_floor)


def resolve_speakers(speaker_ids: Tensor | None, n_speakers: int, lengths: Tensor) -> Tensor:
    """Returns the speaker ids of a batch, by default those of a single-speaker model.

    The lengths, any (B,) of the batch, give size and device.

    Raises:
        ValueError: If the model has several speakers and no ids are given.
    """
    if speaker_ids is None and n_speakers > 1:
        raise ValueError(f"a voice of {n_speakers} speakers needs speaker_ids")
    return torch.zeros_like(lengths) if speaker_ids is None else speaker_ids
