"""Pitch and energy as parts of a network: statistics, controls, predictors and embeddings.

A contour has one value per phone or per frame. It is embedded by bins, or by a convolution over the
values of phones.
"""

import math
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from modules.layers.basic import Dropout, MaskedConv1d, clear_padding
from modules.variance.adaptor import (
    VariancePredictor,
    average_by_phone,
    interpolate_unvoiced,
    join_phones,
    regulate,
)
from modules.variance.pitch_transform import PitchTransform

Level = Literal["phone", "frame"]


class ContourStats(NamedTuple):
    """Statistics of pitch (Hz) or energy, one value per speaker: (n_speakers,) each."""

    mean: Tensor
    std: Tensor
    minimum: Tensor
    maximum: Tensor


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


class PredictedContour(nn.Module):
    """Pitch or energy as a part of a network: predicted, and added to hidden vectors.

    Subclasses define the targets and the scale of the predictor, and the vectors of its values.
    """

    norm: SpeakerNorm

    def __init__(self, predictor: VariancePredictor, level: Level) -> None:
        super().__init__()
        self.predictor = predictor
        self.level = level

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
        return clear_padding(hidden + self._embed(target, mask, speaker_ids), mask), predicted

    def infer(
        self,
        hidden: Tensor,
        mask: Tensor,
        durations: Tensor,
        speaker_ids: Tensor,
        control: ContourControl = ContourControl(),  # noqa: B008  # it cannot be changed
        source: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Adds the vectors of the predicted or given contour.

        Args:
            hidden: Phones or frames, (B, L, H).
            mask: (B, L) bool, True = valid.
            durations: Frames per phone, (B, N).
            control: With the default, it is the prediction.
            source: Input of the predictor, (B, L, H'); None: `hidden`.

        Returns:
            The vectors with the contour, (B, L, H), and the contour in Hz or linear energy, (B, L);
            padding 0.
        """
        control = self._at_level(control, durations, mask)
        predicted = self.predictor(hidden if source is None else source, mask)
        values = self._asked(control, predicted, mask, speaker_ids)
        hidden = clear_padding(hidden + self._embed(values, mask, speaker_ids), mask)
        return hidden, self._linear(values, speaker_ids).clamp(min=0) * mask

    def target(
        self, values: Tensor, known_mask: Tensor, durations: Tensor, speaker_ids: Tensor
    ) -> Tensor:
        """The contour that is to be predicted, on the predictor's scale, (B, N) or (B, T) by level.

        Args:
            values: F0 in Hz, or energy, (B, T); 0 where not known.
            known_mask: (B, T) bool, False where there is no value: padding, unvoiced utterances.
            durations: Frames per phone, (B, N).
        """
        raise NotImplementedError

    def _at_level(
        self, control: ContourControl, _durations: Tensor, _mask: Tensor
    ) -> ContourControl:
        """The control of the values at the level of this contour."""
        return control

    def _asked(
        self, control: ContourControl, predicted: Tensor, mask: Tensor, speaker_ids: Tensor
    ) -> Tensor:
        """The given or predicted values, changed as asked, on the predictor's scale, (B, L)."""
        return control.apply(predicted, mask, self.norm, speaker_ids)

    def _embed(self, values: Tensor, mask: Tensor, speaker_ids: Tensor) -> Tensor:
        """The vectors of values on the predictor's scale: (B, L) -> (B, L, H)."""
        raise NotImplementedError

    def _linear(self, values: Tensor, speaker_ids: Tensor) -> Tensor:
        """Values on the predictor's scale in Hz or linear energy, (B, L)."""
        return self.norm.inverse(values, speaker_ids)


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


class Contour(PredictedContour):
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
        super().__init__(predictor, level)
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

    def _embed(self, normalised: Tensor, _mask: Tensor, speaker_ids: Tensor) -> Tensor:
        """Looks up the vectors of the values' bins: (B, L) -> (B, L, H)."""
        values = normalised
        if self.quantization == "log":
            values = self.norm.inverse(normalised, speaker_ids)
        return self.embedding(torch.bucketize(values, self.edges))

    def target(
        self, values: Tensor, known_mask: Tensor, durations: Tensor, speaker_ids: Tensor
    ) -> Tensor:
        """Normalised values, (B, N) or (B, T) by level; they must be interpolated F0, or energy.

        Where none is known, and for phones without frames, it is 0, the speaker's mean.
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
        """The control of all phones, its values (B, N) repeated over frames if need be.

        A transform changes voiceless phones too: the contour of training continues through them,
        and one that jumps there is new to the decoder, and a tenth of a shift is lost.
        """
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


class _PhoneContour(PredictedContour):
    """Values of phones, embedded by a convolution of an odd kernel."""

    def __init__(
        self, predictor: VariancePredictor, hidden: int, kernel_size: int, dropout: float = 0.0
    ) -> None:
        super().__init__(predictor, "phone")
        self.embedding = MaskedConv1d(1, hidden, kernel_size)
        self.dropout = Dropout(dropout)

    def _embed(self, values: Tensor, mask: Tensor, _speaker_ids: Tensor) -> Tensor:
        vectors: Tensor = self.dropout(self.embedding(values.unsqueeze(2), mask))
        return vectors


class ConvolvedContour(_PhoneContour):
    """Pitch or energy of each phone, embedded by a convolution over the normalised values.

    A phone without a known value, such as a voiceless one, has 0, the speaker's mean; so has one
    whose given value is 0. Of the statistics, those of frames, mean and std are used.
    """

    def __init__(
        self,
        predictor: VariancePredictor,
        stats: ContourStats,
        hidden: int,
        kernel_size: int,
        dropout: float = 0.0,
    ) -> None:
        super().__init__(predictor, hidden, kernel_size, dropout)
        self.norm = SpeakerNorm(stats.mean, stats.std)

    def target(
        self, values: Tensor, known_mask: Tensor, durations: Tensor, speaker_ids: Tensor
    ) -> Tensor:
        """Mean of the known frames of each phone, normalised, (B, N)."""
        share = average_by_phone(known_mask.to(values.dtype), durations)
        has_value = share > 0
        means = average_by_phone(values, durations) / share.where(has_value, 1)
        return self.norm(means, speaker_ids) * has_value

    def per_frame(
        self, values: Tensor, durations: Tensor, n_frames: int, control: ContourControl
    ) -> Tensor:
        """Hz of frames, (B, T): lines between phones that are voiced, or have given Hz above 0."""
        voiced = control.voiced if control.given is None else control.given > 0
        return join_phones(values, durations, voiced, n_frames)

    def _asked(
        self, control: ContourControl, predicted: Tensor, mask: Tensor, speaker_ids: Tensor
    ) -> Tensor:
        values = super()._asked(control, predicted, mask, speaker_ids)
        return values if control.given is None else values * (control.given > 0)


class PhoneEnergy(_PhoneContour):
    """Energy e of each phone as ln(1 + e), which needs no statistics, as in FastPitch."""

    def target(
        self, values: Tensor, _known_mask: Tensor, durations: Tensor, _speaker_ids: Tensor
    ) -> Tensor:
        """ln(1 + mean of the frames) of each phone, (B, N)."""
        return average_by_phone(values, durations).log1p()

    def _asked(
        self, control: ContourControl, predicted: Tensor, _mask: Tensor, _speaker_ids: Tensor
    ) -> Tensor:
        if control.given is not None:
            return (control.given * control.factor).log1p()
        predicted = predicted.float()
        linear = predicted.expm1().clamp(min=0)
        # a factor of 1 leaves the prediction as it is, also where it is below 0
        return predicted + ((linear * control.factor).log1p() - linear.log1p())

    def _linear(self, values: Tensor, _speaker_ids: Tensor) -> Tensor:
        return values.expm1()
