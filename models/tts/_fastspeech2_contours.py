"""Pitch and energy in FastSpeech 2: their settings, and what builds and trains them."""

from dataclasses import dataclass, fields
from typing import Literal

from torch import Tensor

from config.checks import require_at_least, require_odd, require_share
from modules.layers.basic import length_mask
from modules.variance.adaptor import VariancePredictor, interpolate_unvoiced
from modules.variance.contour import Contour, ContourStats, Level
from modules.variance.convolved_contour import ConvolvedContour


@dataclass(frozen=True)
class VariancePredictorConfig:
    """Predictors of duration, pitch and energy."""

    filter_size: int = 256
    kernel_size: int = 3  # odd
    dropout: float = 0.5
    # Predict from a phone encoder of their own, of filter_size channels, not from the mel's: for an
    # hour of speech or less, which predictors on that memorise. Needs both levels "phone" and kind
    # "bins"; predicted energy does not follow a changed pitch.
    own_encoder: bool = False

    def __post_init__(self) -> None:
        require_at_least(self, 1, "filter_size")
        require_odd(self, "kernel_size")
        require_share(self, "dropout")
        if self.own_encoder and self.filter_size % 2:
            raise ValueError(
                f"filter_size is {self.filter_size}, expected an even number with own_encoder: half"
                " of it is for each direction of the recurrence"
            )


_OF_CONVOLUTION = ("kernel_size", "dropout")  # keys that only kind `convolution` reads


@dataclass(frozen=True)
class VarianceEmbeddingConfig:
    """Vectors of pitch and energy."""

    # bins of equal width, or of equal ratio in Hz and energy
    pitch_quantization: Literal["linear", "log"] = "linear"
    energy_quantization: Literal["linear", "log"] = "linear"
    n_bins: int = 256
    # `bins`: each value has the vector of its bin, and energy is predicted from phones with pitch.
    # `convolution`, of TensorFlowTTS: vectors by a convolution over the means of voiced frames, at
    # level "phone"; pitch and energy are predicted from the same phones.
    kind: Literal["bins", "convolution"] = "bins"
    kernel_size: int = 9  # of the convolution, odd
    dropout: float = 0.5  # of the convolution's vectors

    def __post_init__(self) -> None:
        require_at_least(self, 2, "n_bins")
        require_odd(self, "kernel_size")
        require_share(self, "dropout")
        for key in fields(self):
            value, is_read = (
                getattr(self, key.name),
                (key.name in _OF_CONVOLUTION) == self.is_convolved,
            )
            if key.name != "kind" and value != key.default and not is_read:
                raise ValueError(
                    f"{key.name} is {value}, but kind {self.kind} does not read it; remove it or"
                    f" set it to its default, {key.default}"
                )

    @property
    def is_convolved(self) -> bool:
        """Whether a convolution embeds pitch and energy."""
        return self.kind == "convolution"


def build_contour(
    config: VarianceEmbeddingConfig,
    predictor: VariancePredictor,
    stats: ContourStats,
    level: Level,
    quantization: Literal["linear", "log"],
    hidden: int,
) -> Contour | ConvolvedContour:
    """Builds the part of the network for pitch or energy.

    Args:
        config: The `variance_embedding` section.
        stats: Statistics of the training data, by speaker.
        level: One value per phone or per frame.
        hidden: H, channels of the vectors.
    """
    if config.is_convolved:
        return ConvolvedContour(predictor, stats, hidden, config.kernel_size, config.dropout)
    return Contour(predictor, stats, level, quantization, hidden=hidden, n_bins=config.n_bins)


def contour_targets(
    pitch: Contour | ConvolvedContour,
    energy: Contour | ConvolvedContour,
    f0: Tensor,
    energies: Tensor,
    durations: Tensor,
    mel_lengths: Tensor,
    speaker_ids: Tensor,
) -> dict[str, Tensor]:
    """Targets of the predictors of pitch and energy.

    Args:
        f0: (B, T) Hz, 0 = unvoiced; interpolated for bins, left out for a convolution.
        energies: (B, T).
        durations: (B, N) frames.

    Returns:
        "pitch" and "energy", (B, N) or (B, T), normalised.
    """
    if isinstance(pitch, Contour):
        f0 = interpolate_unvoiced(f0, mel_lengths)
    has_energy = energies > 0
    if isinstance(energy, Contour):
        has_energy = length_mask(mel_lengths, f0.shape[1])
    return {
        "pitch": pitch.target(f0, f0 > 0, durations, speaker_ids),
        "energy": energy.target(energies, has_energy, durations, speaker_ids),
    }


def continued(
    given: Tensor, pitch: Contour | ConvolvedContour, lengths: Tensor, speaker_ids: Tensor
) -> Tensor:
    """Fills the unvoiced phones of a given pitch, as in training: with bins, not by convolution.

    Args:
        given: Hz, (B, N), 0 = unvoiced.

    Returns:
        (B, N); the speaker's mean if all phones of an item are unvoiced.
    """
    if isinstance(pitch, ConvolvedContour):
        return given
    mean = pitch.norm.mean[speaker_ids][:, None].to(given)  # (B, 1)
    return interpolate_unvoiced(given.where((given > 0).any(1, keepdim=True), mean), lengths)
