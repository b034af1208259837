"""Pitch and energy as parts of a network: transforms, statistics, controls, embedded bins."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from modules.layers.basic import clear_padding, length_mask
from modules.variance.adaptor import VariancePredictor, average_by_phone, join_phones, regulate

Level = Literal["phone", "frame"]


@dataclass(frozen=True)
class PitchTransform:
    """Flattens, inverts, amplifies, then shifts a contour f; m is the speaker's mean.

    The transforms of FastPitch (Łańcucki 2021, arXiv:2006.06873), on Hz. Voiceless phones and
    pauses have no pitch, so that their values are left alone.

    Args:
        flatten: m, a monotone.
        invert: 2 m - f.
        amplify: m + amplify (f - m); 0 flattens, a negative factor inverts.
        shift_hz: f + shift_hz.
        custom: f' of the contour f, (B, L) Hz, and its lengths, (B,); excludes the others.

    Raises:
        ValueError: If a number is not finite, or `custom` is given together with another transform.
    """

    flatten: bool = False
    invert: bool = False
    amplify: float = 1.0
    shift_hz: float = 0.0
    custom: Callable[[Tensor, Tensor], Tensor] | None = None

    def __post_init__(self) -> None:
        for name in ("amplify", "shift_hz"):
            value = getattr(self, name)
            if not (isinstance(value, int | float) and math.isfinite(value)):
                raise ValueError(f"{name} is {value!r}; expected a finite number")
        others = (self.flatten, self.invert, self.amplify, self.shift_hz)
        if self.custom is not None and others != (False, False, 1, 0):
            raise ValueError("custom excludes flatten, invert, amplify and shift_hz; choose one")

    def __call__(
        self, pitch_hz: Tensor, mean_hz: Tensor, lengths: Tensor, voiced: Tensor | None = None
    ) -> Tensor:
        """Transforms the voiced positions of a contour: Hz (B, L) -> (B, L), perhaps below 0.

        Args:
            mean_hz: Mean of the speaker, (B, 1).
            lengths: Valid positions per item, (B,).
            voiced: (B, L) bool, where the pitch is heard; None: everywhere.

        Raises:
            ValueError: If `custom` gives another shape, or values that are not finite.
        """
        changed = length_mask(lengths, pitch_hz.shape[1])
        if voiced is not None:
            changed = changed & voiced
        if self.custom is None:
            transformed = self._around(pitch_hz, mean_hz)
        else:
            transformed = self.custom(pitch_hz, lengths)
            _check(transformed, pitch_hz, changed)
        return torch.where(changed, transformed, pitch_hz)

    def _around(self, pitch_hz: Tensor, mean_hz: Tensor) -> Tensor:
        """The contour (B, L) with its deviations from the mean (B, 1) changed, and shifted."""
        factor = 0.0 if self.flatten else -self.amplify if self.invert else self.amplify
        return mean_hz + factor * (pitch_hz - mean_hz) + self.shift_hz


def _check(transformed: Tensor, pitch_hz: Tensor, used: Tensor) -> None:
    if not isinstance(transformed, Tensor) or transformed.shape != pitch_hz.shape:
        shape = tuple(pitch_hz.shape)
        raise ValueError(f"the custom pitch transform gives no tensor of the shape {shape}")
    if not transformed[used].isfinite().all():
        raise ValueError("the custom pitch transform gives values that are not finite")


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
