"""From log-mels back to STFT magnitudes, and to the mels of another definition."""

import torch
from torch import Tensor, nn

from modules.mel import MelConfig, mel_filter_bank

_UNCOVERED = 1e-5  # of the sum of the filters at a bin


def mel_to_magnitude(bands: Tensor, filters: Tensor, updates: int = 30) -> Tensor:
    """Inverts a mel: STFT magnitudes with the nearest mel bands, 0 outside its band.

    Args:
        bands: Not logarithmic, (B, M, T).
        filters: (M, K).
        updates: Number of updates of `fit_mel`.

    Returns:
        (B, K, T).
    """
    magnitude = fit_mel(spread_mel(bands, filters), bands, filters, updates)
    return magnitude * _covered(filters)


def spread_mel(bands: Tensor, filters: Tensor) -> Tensor:
    """Spreads mel bands over the bins of the STFT: the mean level of the bands around each bin.

    The pseudo-inverse of the filters, whose negative values must be cut, is a worse start for
    `fit_mel`. Bins outside the band of the mel get the level of the nearest bin inside it.

    Args:
        bands: Not logarithmic, (B, M, T).
        filters: (M, K).

    Returns:
        (B, K, T), at least 1e-5.
    """
    levels = bands / filters.sum(dim=1, keepdim=True)
    shares = filters / filters.sum(dim=0).clamp(min=_UNCOVERED)  # (M, K)
    inside, K = _covered(filters)[:, 0].int(), filters.shape[1]
    first, last = inside.argmax(), K - 1 - inside.flip(0).argmax()
    nearest = torch.arange(K, device=filters.device).clamp(first, last)
    return (shares[:, nearest].T @ levels).clamp(min=1e-5)


def fit_mel(magnitude: Tensor, bands: Tensor, filters: Tensor, updates: int) -> Tensor:
    """Moves magnitudes towards given mel bands by multiplicative updates.

    The updates of Lee and Seung (2001, "Algorithms for non-negative matrix factorization", theorem
    2) never raise the Kullback-Leibler divergence of the bands: closer to perceived loudness than
    the squared error, which the loudest bands dominate.

    Args:
        magnitude: Positive, (B, K, T); outside the band of the mel it stays as it is.
        bands: Not logarithmic, (B, M, T).
        filters: (M, K).
        updates: Number of updates.

    Returns:
        (B, K, T).
    """
    covered = _covered(filters)
    weights = filters / filters.sum(dim=0).clamp(min=_UNCOVERED)  # (M, K)
    for _ in range(updates):
        ratio = bands / (filters @ magnitude).clamp(min=1e-9)
        magnitude = torch.where(covered, magnitude * (weights.T @ ratio), magnitude)
    return magnitude


def _covered(filters: Tensor) -> Tensor:
    """Whether a bin is in the band of the mel, (M, K) -> (K, 1)."""
    return (filters.sum(dim=0) > _UNCOVERED)[:, None]


class MelConverter(nn.Module):
    """Converts log-mels to another definition, for a vocoder that was trained on it.

    Magnitudes are estimated from the mel, and the other mel is computed from them. Above the band
    of the first mel nothing is known, which stays silent, and harmonics closer than its bands blur:
    the result is worse than a mel computed from the audio.

    Args:
        source: Definition of the input.
        target: Definition of the output.
    """

    filters: Tensor
    bands_of: Tensor

    def __init__(self, source: MelConfig, target: MelConfig) -> None:
        super().__init__()
        self.source = source
        self.target = target
        self.register_buffer("filters", mel_filter_bank(source), persistent=False)
        bands_of = mel_filter_bank(target) @ _bins_between(source, target)
        self.register_buffer("bands_of", bands_of, persistent=False)

    def lengths(self, mel_lengths: Tensor) -> Tensor:
        """Frames of the target that cover so many of the source, (B,) -> (B,) int64."""
        source, target = self.source, self.target
        per_frame = source.hop_length * target.sample_rate
        hop = target.hop_length * source.sample_rate
        return -(-mel_lengths * per_frame // hop)

    @torch.no_grad()
    def forward(self, mel: Tensor, mel_lengths: Tensor) -> Tensor:
        """Converts.

        Args:
            mel: Natural log, (B, M, T).

        Returns:
            (B, M of the target, frames of the longest item); beyond the lengths of the target,
            the last valid frame.
        """
        magnitude = mel_to_magnitude(mel.float().exp(), self.filters)  # (B, K, T)
        position = self._positions(mel_lengths)  # (B, T of the target)
        before = position.floor()
        share = (position - before)[:, None]  # (B, 1, T of the target)
        last = (mel_lengths - 1)[:, None]
        first, second = (
            magnitude.gather(2, _rows(at.long().minimum(last), magnitude))
            for at in (before, before + 1)
        )
        bands = self.bands_of @ torch.lerp(first, second, share)
        return bands.clamp(min=self.target.log_floor).log()

    def _positions(self, mel_lengths: Tensor) -> Tensor:
        """Positions of the target's frames in frames of the source, (B, T of the target)."""
        source, target = self.source, self.target
        frames = torch.arange(int(self.lengths(mel_lengths).max()), device=mel_lengths.device)
        seconds = (frames.double() * target.hop_length + _centre(target)) / target.sample_rate
        position = (seconds * source.sample_rate - _centre(source)) / source.hop_length
        return position.float().clamp(min=0).minimum((mel_lengths - 1)[:, None])


def _rows(frames: Tensor, magnitude: Tensor) -> Tensor:
    """(B, T) -> (B, K, T), an index for all bins."""
    return frames[:, None].expand(-1, magnitude.shape[1], -1)


def _centre(mel: MelConfig) -> float:
    """The sample that the first frame is centred on."""
    return mel.n_fft / 2 - mel.edge_samples[0]


def _bins_between(source: MelConfig, target: MelConfig) -> Tensor:
    """Interpolates magnitudes in frequency: (K of the target, K of the source)."""
    K_source, K = source.n_fft // 2 + 1, target.n_fft // 2 + 1
    hz = torch.arange(K, dtype=torch.float64) * target.sample_rate / target.n_fft
    position = hz * source.n_fft / source.sample_rate
    bins = torch.arange(K_source, dtype=torch.float64)
    weights = (1 - (bins - position[:, None]).abs()).clamp(min=0)
    # the same power per hertz, in another window and at another rate
    power = target.sample_rate * target.win_length / (source.sample_rate * source.win_length)
    return (weights * power**0.5).float()
