"""The variance adaptor (Ren et al. 2021, arXiv:2006.04558).

Predictors, the length regulator, values of phones from those of frames, and pitch and energy as
parts of a network: statistics, controls, and an embedding of their bins. All work on whole batches,
without loops; without waiting for a GPU where the length is given.
"""

import math
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from modules.layers.basic import Dropout, Linear, MaskedConv1d, clear_padding, length_mask
from modules.variance.pitch_transform import PitchTransform

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
    """Length regulator: repeats each phone's vector for its duration.

    Ren et al. 2019, "FastSpeech", arXiv:1905.09263, eq. 1. Phones (B, N, H), durations (B, N) int64
    frames, 0 for padding -> (B, T, H), 0 beyond the sum of an item's durations. What exceeds T,
    `max_length`, is cut. Without it the longest item is looked up, which makes the host wait for a
    GPU.
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


class ContourStats(NamedTuple):
    """Statistics of pitch (Hz) or energy, one value per speaker: (n_speakers,) each."""

    mean: Tensor
    std: Tensor
    minimum: Tensor
    maximum: Tensor

    @classmethod
    def of(cls, mean: float, std: float, minimum: float, maximum: float) -> "ContourStats":
        """Statistics of a single speaker."""
        return cls(*(torch.tensor([value]) for value in (mean, std, minimum, maximum)))


class SpeakerNorm(nn.Module):
    """Values of a speaker scaled to mean 0 and standard deviation 1, (n_speakers,), and back."""

    mean: Tensor
    std: Tensor

    def __init__(self, mean: Tensor, std: Tensor) -> None:
        super().__init__()
        if not (std > 0).all():
            raise ValueError(f"standard deviations must be positive, not {std.tolist()}")
        self.register_buffer("mean", mean.detach().clone().float())
        self.register_buffer("std", std.detach().clone().float())

    def forward(self, values: Tensor, speaker_ids: Tensor) -> Tensor:
        """Normalises values (B, L) of speakers (B,)."""
        return (values - self.mean[speaker_ids][:, None]) / self.std[speaker_ids][:, None]

    def inverse(self, values: Tensor, speaker_ids: Tensor) -> Tensor:
        """Undoes `forward`."""
        return values * self.std[speaker_ids][:, None] + self.mean[speaker_ids][:, None]


class ContourControl(NamedTuple):
    """What is asked of a contour at inference, per phone at either level."""

    given: Tensor | None = None  # Hz or linear energy, (B, N), instead of the prediction
    factor: float | Tensor = 1.0  # on Hz or linear energy; one for all, or one per phone, (B, N)
    transform: PitchTransform | None = None  # of predicted pitch, before the factor
    voiced: Tensor | None = None  # (B, N) bool, the phones to transform; None: all

    def apply(
        self, predicted: Tensor, mask: Tensor, norm: SpeakerNorm, speaker_ids: Tensor
    ) -> Tensor:
        """The given, predicted or transformed values times the factor, normalised, (B, N)."""
        if self.given is not None:
            return norm(self.given * self.factor, speaker_ids)
        predicted = predicted.float()
        if self.transform is not None:
            hz, mean = norm.inverse(predicted, speaker_ids), norm.mean[speaker_ids]
            hz = self.transform(hz, mean[:, None], mask.sum(dim=1), self.voiced)
            return norm(hz * self.factor, speaker_ids)
        # there and back through Hz would round, and a rounded value may fall into another bin
        zero = norm(torch.zeros_like(predicted), speaker_ids)
        return predicted * self.factor + zero * (1 - self.factor)


def _linear_edges(stats: ContourStats, n_edges: int) -> Tensor:
    """Edges of equal distance over the normalised range of all speakers."""
    lowest = ((stats.minimum - stats.mean) / stats.std).min()
    highest = ((stats.maximum - stats.mean) / stats.std).max()
    return torch.linspace(float(lowest), float(highest), n_edges)


def _log_edges(stats: ContourStats, n_edges: int) -> Tensor:
    """Edges of equal ratio over the range of all speakers, in Hz or linear energy."""
    highest = max(float(stats.maximum.max()), 1e-3)  # an unvoiced corpus has a range of 0
    lowest = max(float(stats.minimum.min()), highest * 1e-4)  # 80 dB; silence has no logarithm
    return torch.linspace(math.log(lowest), math.log(highest), n_edges).exp()


class Contour(nn.Module):
    """Pitch or energy, per phone or per frame: predicted, quantised and embedded.

    Args:
        stats: Statistics of the training data, by speaker.
        quantization: Bins of equal width over the normalised range ("linear"), or of equal ratio
            over the range in Hz or linear energy ("log"). The first and the last bin are open.
        hidden: H, channels of the embedding.
    """

    edges: Tensor

    def __init__(
        self,
        predictor: VariancePredictor,
        stats: ContourStats,
        level: Level,
        quantization: Literal["linear", "log"],
        *,
        hidden: int,
        n_bins: int,
    ) -> None:
        super().__init__()
        self.predictor = predictor
        self.level = level
        self.quantization = quantization
        self.norm = SpeakerNorm(stats.mean, stats.std)
        edges_of = _linear_edges if quantization == "linear" else _log_edges
        self.register_buffer("edges", edges_of(stats, n_bins - 1))
        self.embedding = nn.Embedding(n_bins, hidden)
        self._embed_on_a_line(stats)

    def _embed_on_a_line(self, stats: ContourStats) -> None:
        """Starts with vectors that are proportional to the normalised values of their bins.

        Neighbouring bins then mean nearly the same from the first update on, and a bin that
        training never sees resembles the last that it does; random vectors mean nothing there.
        """
        edges = self.edges
        if self.quantization == "log":
            edges = (edges - stats.mean.float().mean()) / stats.std.float().mean()
        centres = torch.cat([edges[:1], (edges[1:] + edges[:-1]) / 2, edges[-1:]])  # (n_bins,)
        direction = torch.randn(self.embedding.embedding_dim)  # (H,)
        with torch.no_grad():
            self.embedding.weight.copy_(centres[:, None] * direction)

    def forward(
        self,
        hidden: Tensor,
        target: Tensor,
        mask: Tensor,
        speaker_ids: Tensor,
        source: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Predicts the contour, and adds the embedding of the true one (teacher forcing).

        Args:
            hidden: Phones or frames, (B, L, H).
            target: Normalised, (B, L), as `target` gives it.
            mask: (B, L) bool, True = valid.
            source: Input of the predictor, (B, L, H'); None: `hidden`.

        Returns:
            The vectors with the contour, (B, L, H), and the prediction, (B, L); padding 0.
        """
        predicted = self.predictor(hidden if source is None else source, mask)
        return clear_padding(hidden + self._embed(target, speaker_ids), mask), predicted

    def infer(
        self,
        hidden: Tensor,
        mask: Tensor,
        durations: Tensor,
        speaker_ids: Tensor,
        control: ContourControl = ContourControl(),  # noqa: B008  # it cannot be changed
        source: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Adds the embedding of the predicted or given contour.

        Args:
            hidden: Phones or frames, (B, L, H).
            mask: (B, L) bool, True = valid.
            durations: Frames per phone, (B, N).
            control: With the default, the prediction is used exactly. A transform changes voiceless
                phones too: the contour of training continues through them, and one that jumps there
                is new to the decoder, and a tenth of a shift is lost.
            source: Input of the predictor, (B, L, H'); None: `hidden`.

        Returns:
            The vectors with the contour, (B, L, H), and the contour in Hz or linear energy, (B, L);
            padding 0.
        """
        control = self._at_level(control, durations, mask)
        predicted = self.predictor(hidden if source is None else source, mask)
        values = control.apply(predicted, mask, self.norm, speaker_ids)
        hidden = clear_padding(hidden + self._embed(values, speaker_ids), mask)
        return hidden, self.norm.inverse(values, speaker_ids).clamp(min=0) * mask

    def _embed(self, normalised: Tensor, speaker_ids: Tensor) -> Tensor:
        """Looks up the vectors of the values' bins: (B, L) -> (B, L, H)."""
        values = normalised
        if self.quantization == "log":
            values = self.norm.inverse(normalised, speaker_ids)
        return self.embedding(torch.bucketize(values, self.edges))

    def target(
        self, values: Tensor, known_mask: Tensor, durations: Tensor, speaker_ids: Tensor
    ) -> Tensor:
        """The contour that is to be predicted, normalised, (B, N) or (B, T) by level.

        It is 0, the speaker's mean, for what is not known and for phones without frames.

        Args:
            values: Interpolated F0 in Hz, or energy, (B, T); 0 where not known.
            known_mask: (B, T) bool, False where there is no value: padding, unvoiced utterances.
            durations: Frames per phone, (B, N).
        """
        if self.level == "frame":
            return self.norm(values, speaker_ids) * known_mask
        share_known = average_by_phone(known_mask.to(values.dtype), durations)
        return self.norm(average_by_phone(values, durations), speaker_ids) * (share_known > 0)

    def continued(self, given: Tensor, lengths: Tensor, speaker_ids: Tensor) -> Tensor:
        """Fills the unvoiced phones of a given pitch as in training: Hz, (B, N), 0 = unvoiced.

        An item whose phones are all unvoiced gets the speaker's mean.
        """
        mean = self.norm.mean[speaker_ids][:, None].to(given)  # (B, 1)
        return interpolate_unvoiced(given.where((given > 0).any(1, keepdim=True), mean), lengths)

    def per_frame(
        self, values: Tensor, durations: Tensor, n_frames: int, _control: ContourControl
    ) -> Tensor:
        """Hz of frames, (B, T), from what `infer` returned; phones are joined by straight lines."""
        if self.level == "frame":
            return values
        return join_phones(values, durations, None, n_frames)

    def _at_level(self, control: ContourControl, durations: Tensor, mask: Tensor) -> ContourControl:
        """The control of all phones, its values (B, N) repeated over frames if need be."""
        control = control._replace(voiced=None)
        if self.level == "phone":
            return control

        def repeat(values: Tensor) -> Tensor:
            per_phone = values.expand_as(durations).unsqueeze(2)  # (B, N, 1)
            return regulate(per_phone, durations, mask.shape[1]).squeeze(2)

        given, factor = control.given, control.factor
        return control._replace(
            given=None if given is None else repeat(given.float()),
            factor=repeat(factor.float()) if isinstance(factor, Tensor) else factor,
        )
