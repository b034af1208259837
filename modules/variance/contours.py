"""Pitch and energy as parts of a network: a predictor, a scale and an embedding.

A contour has one value per phone or per frame. The scale is that of the predictor; values are
embedded by bins, or by a convolution over the values of phones.
"""

import math
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from modules.layers.basic import Dropout, MaskedConv1d, clear_padding
from modules.variance.adaptor import (
    Level,
    VariancePredictor,
    average_by_phone,
    interpolate_unvoiced,
    join_phones,
    regulate,
)
from modules.variance.pitch_transform import PitchTransform

Quantization = Literal["linear", "log"]


class ContourStats(NamedTuple):
    """Statistics of pitch (Hz) or energy, one value per speaker: (n_speakers,) each."""

    mean: Tensor
    std: Tensor
    minimum: Tensor
    maximum: Tensor


class SpeakerNorm(nn.Module):
    """Scale on which a speaker has mean 0 and standard deviation 1, (n_speakers,) each."""

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

    def multiplied(self, values: Tensor, factor: float | Tensor, speaker_ids: Tensor) -> Tensor:
        """Multiplies values on this scale by a factor on Hz or linear energy."""
        # there and back through Hz would round, and a rounded value may fall into another bin
        zero = self(torch.zeros_like(values), speaker_ids)
        return values * factor + zero * (1 - factor)


class LogScale(nn.Module):
    """Energy e as ln(1 + e), which needs no statistics, as in FastPitch."""

    def forward(self, values: Tensor, _speaker_ids: Tensor) -> Tensor:
        """Returns ln(1 + energy), (B, L)."""
        return values.log1p()

    def inverse(self, values: Tensor, _speaker_ids: Tensor) -> Tensor:
        """Undoes `forward`."""
        return values.expm1()

    def multiplied(self, values: Tensor, factor: float | Tensor, _speaker_ids: Tensor) -> Tensor:
        """Multiplies values on this scale by a factor on linear energy."""
        linear = values.expm1().clamp(min=0)
        # a factor of 1 leaves the prediction as it is, also where it is below 0
        return values + ((linear * factor).log1p() - linear.log1p())


class ContourControl(NamedTuple):
    """What is asked of a contour at inference, per phone at either level."""

    given: Tensor | None = None  # Hz or linear energy, (B, N), instead of the prediction
    factor: float | Tensor = 1.0  # on Hz or linear energy; one for all, or one per phone, (B, N)
    transform: PitchTransform | None = None  # of predicted pitch, before the factor
    voiced: Tensor | None = None  # (B, N) bool, the phones to transform; None: all

    def apply(
        self, predicted: Tensor, mask: Tensor, scale: SpeakerNorm | LogScale, speaker_ids: Tensor
    ) -> Tensor:
        """Returns the given, predicted or transformed values times the factor, scaled, (B, L)."""
        if self.given is not None:
            return scale(self.given * self.factor, speaker_ids)
        predicted = predicted.float()
        if self.transform is not None and isinstance(scale, SpeakerNorm):
            hz, mean = scale.inverse(predicted, speaker_ids), scale.mean[speaker_ids]
            hz = self.transform(hz, mean[:, None], mask.sum(dim=1), self.voiced)
            return scale(hz * self.factor, speaker_ids)
        return scale.multiplied(predicted, self.factor, speaker_ids)

    def per_frame(self, durations: Tensor, n_frames: int) -> "ContourControl":
        """Repeats given values and factors of phones (B, N) over their frames, (B, T)."""

        def repeat(values: Tensor) -> Tensor:
            per_phone = values.expand_as(durations).unsqueeze(2)  # (B, N, 1)
            return regulate(per_phone, durations, n_frames).squeeze(2)

        given = None if self.given is None else repeat(self.given.float())
        factor = repeat(self.factor.float()) if isinstance(self.factor, Tensor) else self.factor
        return self._replace(given=given, factor=factor)


class Contour(nn.Module):
    """Pitch or energy as a part of a network: predicted, and added to hidden vectors.

    Args:
        scale: Scale of the predictor, whose values are embedded.
        embedding: Vectors of bins, or without edges a convolution over values of phones.
        is_continuous: Whether all phones have a value, pitch being interpolated; else a phone
            without a known value, such as a voiceless one, has 0 on the scale, the speaker's mean,
            and so has one whose given value is 0.
        edges: Edges of the bins, on the scale ("linear") or in Hz or linear energy ("log").
        dropout: Dropout of the vectors of a convolution.
    """

    edges: Tensor | None

    def __init__(
        self,
        predictor: VariancePredictor,
        scale: SpeakerNorm | LogScale,
        embedding: nn.Embedding | MaskedConv1d,
        level: Level = "phone",
        *,
        is_continuous: bool = True,
        edges: Tensor | None = None,
        quantization: Quantization = "linear",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.predictor, self.norm, self.embedding = predictor, scale, embedding
        self.level, self.is_continuous, self.quantization = level, is_continuous, quantization
        self.register_buffer("edges", edges)
        self.dropout = Dropout(dropout)

    def forward(
        self,
        hidden: Tensor,
        target: Tensor,
        mask: Tensor,
        speaker_ids: Tensor,
        source: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Predicts the contour, and adds the vectors of the true one (teacher forcing).

        Args:
            hidden: Phones or frames, (B, L, H).
            target: On the predictor's scale, (B, L), as `target` gives it.
            mask: (B, L) bool, True = valid.
            source: Input of the predictor, (B, L, H'); None: `hidden`.

        Returns:
            The vectors with the contour, (B, L, H), and the prediction, (B, L); padding 0.
        """
        predicted = self.predictor(hidden if source is None else source, mask)
        return clear_padding(hidden + self.embed(target, mask, speaker_ids), mask), predicted

    def infer(
        self,
        hidden: Tensor,
        mask: Tensor,
        durations: Tensor,
        speaker_ids: Tensor,
        control: ContourControl = ContourControl(),  # noqa: B008  # it cannot be changed
        source: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Adds the vectors of the predicted or given contour; other arguments as of `forward`.

        Args:
            durations: Frames per phone, (B, N).
            control: With the default, it is the prediction.

        Returns:
            The vectors with the contour, (B, L, H), and the contour in Hz or linear energy, (B, L);
            padding 0.
        """
        if self.is_continuous:
            # A transform changes voiceless phones too: the contour of training continues through
            # them, and one that jumps there is new to the decoder, and a tenth of a shift is lost.
            control = control._replace(voiced=None)
        if self.level == "frame":
            control = control.per_frame(durations, mask.shape[1])
        predicted = self.predictor(hidden if source is None else source, mask)
        values = control.apply(predicted, mask, self.norm, speaker_ids)
        if control.given is not None and not self.is_continuous:
            values = values * (control.given > 0)
        hidden = clear_padding(hidden + self.embed(values, mask, speaker_ids), mask)
        return hidden, self.norm.inverse(values, speaker_ids).clamp(min=0) * mask

    def embed(self, values: Tensor, mask: Tensor, speaker_ids: Tensor) -> Tensor:
        """Returns the vectors of values on the predictor's scale: (B, L) -> (B, L, H)."""
        if self.edges is None:
            return self.dropout(self.embedding(values.unsqueeze(2), mask))
        if self.quantization == "log":
            values = self.norm.inverse(values, speaker_ids)
        return self.embedding(torch.bucketize(values, self.edges))

    def target(
        self, values: Tensor, known_mask: Tensor, durations: Tensor, speaker_ids: Tensor
    ) -> Tensor:
        """Returns the contour to be predicted, on the scale, (B, N) or (B, T) by level.

        Where none is known, and for phones without frames, it is 0, the speaker's mean. A phone of
        a contour that is not continuous has the mean of its known frames.

        Args:
            values: F0 in Hz, or energy, (B, T); 0 where not known; F0 of a continuous contour is
                interpolated.
            known_mask: (B, T) bool, False where there is no value: padding, unvoiced utterances.
            durations: Frames per phone, (B, N).
        """
        if self.level == "frame":
            return self.norm(values, speaker_ids) * known_mask
        share_known = average_by_phone(known_mask.to(values.dtype), durations)
        has_value = share_known > 0
        means = average_by_phone(values, durations)
        if not self.is_continuous:
            means = means / share_known.where(has_value, 1)
        return self.norm(means, speaker_ids) * has_value

    def continued(self, given: Tensor, lengths: Tensor, speaker_ids: Tensor) -> Tensor:
        """Fills the unvoiced phones of a given pitch as in training: Hz, (B, N), 0 = unvoiced.

        An item whose phones are all unvoiced gets the speaker's mean. A contour that is not
        continuous leaves them.
        """
        if not self.is_continuous or not isinstance(self.norm, SpeakerNorm):
            return given
        mean = self.norm.mean[speaker_ids][:, None].to(given)  # (B, 1)
        return interpolate_unvoiced(given.where((given > 0).any(1, keepdim=True), mean), lengths)

    def per_frame(
        self, values: Tensor, durations: Tensor, n_frames: int, control: ContourControl
    ) -> Tensor:
        """Returns Hz of frames, (B, T), from what `infer` returned: lines between phones.

        Of a contour that is not continuous, phones that are voiced, or have given Hz above 0.
        """
        if self.level == "frame":
            return values
        voiced = control.voiced if control.given is None else control.given > 0
        return join_phones(values, durations, None if self.is_continuous else voiced, n_frames)


def binned_contour(
    predictor: VariancePredictor,
    stats: ContourStats,
    level: Level,
    quantization: Quantization,
    *,
    hidden: int,
    n_bins: int,
) -> Contour:
    """Builds pitch or energy of speakers, quantised and embedded.

    The vectors start proportional to the normalised values of their bins. Neighbouring bins then
    mean nearly the same from the first update on, and a bin that training never sees resembles the
    last that it does; random vectors mean nothing there.

    Args:
        stats: Statistics of the training data, by speaker.
        quantization: Bins of equal width over the normalised range ("linear"), or of equal ratio
            over the range in Hz or linear energy ("log"). The first and the last bin are open.
        hidden: H, channels of the embedding.
    """
    norm, embedding = SpeakerNorm(stats.mean, stats.std), nn.Embedding(n_bins, hidden)
    if quantization == "linear":
        lowest = float(((stats.minimum - stats.mean) / stats.std).min())
        highest = float(((stats.maximum - stats.mean) / stats.std).max())
        edges = normalised = torch.linspace(lowest, highest, n_bins - 1)
    else:
        highest = max(float(stats.maximum.max()), 1e-3)  # an unvoiced corpus has a range of 0
        lowest = max(float(stats.minimum.min()), highest * 1e-4)  # 80 dB; silence has no logarithm
        edges = torch.linspace(math.log(lowest), math.log(highest), n_bins - 1).exp()
        normalised = (edges - stats.mean.float().mean()) / stats.std.float().mean()
    middles = (normalised[1:] + normalised[:-1]) / 2
    centres = torch.cat([normalised[:1], middles, normalised[-1:]])  # (n_bins,)
    direction = torch.randn(hidden)  # (H,)
    with torch.no_grad():
        embedding.weight.copy_(centres[:, None] * direction)
    return Contour(predictor, norm, embedding, level, edges=edges, quantization=quantization)


def convolved_contour(
    predictor: VariancePredictor,
    stats: ContourStats | None,
    hidden: int,
    kernel_size: int,
    dropout: float = 0.0,
) -> Contour:
    """Builds pitch or energy of phones, embedded by a convolution of an odd kernel.

    Args:
        stats: Statistics of frames, by speaker, of which mean and std are used, for a contour with
            gaps; None for an energy on a logarithmic scale.
        hidden: H, channels of the embedding.
    """
    scale = LogScale() if stats is None else SpeakerNorm(stats.mean, stats.std)
    embedding = MaskedConv1d(1, hidden, kernel_size)
    return Contour(predictor, scale, embedding, is_continuous=stats is None, dropout=dropout)
