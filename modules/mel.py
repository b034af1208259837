"""The one mel definition of extraction, losses and vocoders.

A mel is ln(max(F |STFT(wav)|, log_floor)) with F a filter bank: by default that of Slaney's
Auditory Toolbox (triangles of equal area, mel scale linear below 1 kHz and logarithmic above), as
`librosa.filters.mel` has it, or that of HTK (triangles of equal height, logarithmic scale), as
torchaudio has it. It is computed here so that the path to speech does not import librosa.
Also its inverse, to STFT magnitudes, and the conversion of mels to another definition.
"""

import math
from collections.abc import Collection
from dataclasses import asdict, dataclass, field
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

_HZ_PER_MEL = 200.0 / 3  # below the break
_BREAK_HZ = 1000.0
_BREAK_MEL = _BREAK_HZ / _HZ_PER_MEL
_LARGEST_FFT, _MAX_MELS = 32768, 1024  # the filter bank must fit into memory
_LOG_STEP = math.log(6.4) / 27.0  # above the break: 27 mels from 1 kHz to 6.4 kHz
_HTK_MELS, _HTK_HZ = 2595.0, 700.0  # mel = 2595 log10(1 + hz / 700)
_UNCOVERED = 1e-5  # of the sum of the filters at a bin

MelScale = Literal["slaney", "htk"]


@dataclass(frozen=True)
class MelConfig:
    """A log-mel spectrogram, stored in every checkpoint and every feature store."""

    sample_rate: int = 22050  # Hz
    n_fft: int = 1024  # STFT size, samples
    win_length: int = 1024  # Hann window (periodic), samples
    hop_length: int = 256  # samples between frames
    n_mels: int = 80  # bands
    f_min: float = 0.0  # lower edge of the lowest band, Hz
    f_max: float = 8000.0  # upper edge of the highest band, Hz
    # "centre": frame t is centred on sample t * hop (Tacotron 2, FastSpeech 2); "hifigan": on
    # sample t * hop + hop / 2 (HiFi-GAN)
    padding: Literal["centre", "hifigan"] = "centre"
    log_floor: float = 1e-5  # smallest band value before the logarithm
    # scale and height of the filters: "slaney", or "htk" (Vocos); files from before the field have
    # "slaney"
    scale: MelScale = field(default="slaney", metadata={"later": True})

    def __post_init__(self) -> None:
        if self.n_fft > _LARGEST_FFT or self.n_mels > _MAX_MELS:
            raise ValueError(
                f"n_fft {self.n_fft}, n_mels {self.n_mels}: expected at most {_LARGEST_FFT} and "
                f"{_MAX_MELS}"
            )
        if not 0 < self.hop_length <= self.win_length <= self.n_fft:
            raise ValueError(
                f"hop_length {self.hop_length}, win_length {self.win_length}, n_fft {self.n_fft}: "
                "expected 0 < hop_length <= win_length <= n_fft"
            )
        if not 0 <= self.f_min < self.f_max <= self.sample_rate / 2:
            raise ValueError(
                f"f_min {self.f_min}, f_max {self.f_max}: expected 0 <= f_min < f_max <= "
                f"{self.sample_rate / 2:g} Hz, half of the sample rate {self.sample_rate}"
            )
        if self.n_mels < 1 or not self.log_floor > 0:
            raise ValueError(
                f"n_mels {self.n_mels}, log_floor {self.log_floor:g}: expected both above 0"
            )

    @property
    def frame_s(self) -> float:
        """Seconds from one frame to the next."""
        return self.hop_length / self.sample_rate

    @property
    def magnitude_epsilon(self) -> float:
        """Added to the squared magnitude before the root: 1e-9 in HiFi-GAN, 0 elsewhere."""
        return 1e-9 if self.padding == "hifigan" and self.scale == "slaney" else 0.0

    @property
    def log_floor_value(self) -> float:
        """The log-mel of silence, and of padding: ln(log_floor)."""
        return math.log(self.log_floor)

    @property
    def edge_samples(self) -> tuple[int, int]:
        """Samples of reflected audio before the first and after the last sample."""
        if self.padding == "centre":
            return self.n_fft // 2, self.n_fft // 2
        missing = self.n_fft - self.hop_length
        return missing // 2, missing - missing // 2

    def differences(self, other: "MelConfig", ignore: Collection[str] = ()) -> list[str]:
        """Lists the fields that differ from another definition, as `n_fft 1024 and 2048`."""
        values, other_values = asdict(self), asdict(other)
        return [
            f"{key} {values[key]} and {other_values[key]}"
            for key in sorted(values.keys() - set(ignore))
            if values[key] != other_values[key]
        ]


def _mel_of_hz(hz: float, scale: MelScale) -> float:
    if scale == "htk":
        return _HTK_MELS * math.log10(1 + hz / _HTK_HZ)
    if hz < _BREAK_HZ:
        return hz / _HZ_PER_MEL
    return _BREAK_MEL + math.log(hz / _BREAK_HZ) / _LOG_STEP


def _hz_of_mel(mel: Tensor, scale: MelScale) -> Tensor:
    if scale == "htk":
        return _HTK_HZ * (10 ** (mel / _HTK_MELS) - 1)
    above = _BREAK_HZ * torch.exp(_LOG_STEP * (mel - _BREAK_MEL))
    return torch.where(mel < _BREAK_MEL, mel * _HZ_PER_MEL, above)


def mel_band_edges(config: MelConfig) -> Tensor:
    """Returns the edges of bands in Hz, (M + 2,) float64; band m reaches from edge m to m + 2."""
    low, high = (_mel_of_hz(hz, config.scale) for hz in (config.f_min, config.f_max))
    mels = torch.linspace(low, high, config.n_mels + 2, dtype=torch.float64)
    return _hz_of_mel(mels, config.scale)


def mel_filter_bank(config: MelConfig) -> Tensor:
    """Builds triangular filters, (M, n_fft // 2 + 1) float32, of equal area or, "htk", height.

    Raises:
        ValueError: If a band is narrower than the distance of the STFT's bins and stays empty.
    """
    edges = mel_band_edges(config)
    bins = torch.linspace(0, config.sample_rate / 2, config.n_fft // 2 + 1, dtype=torch.float64)
    widths = edges.diff()[:, None]  # (M + 1, 1) Hz
    distance = bins - edges[:, None]  # (M + 2, n_fft // 2 + 1) Hz
    rising = distance[:-2] / widths[:-1]
    falling = -distance[2:] / widths[1:]
    filters = torch.minimum(rising, falling).clamp(min=0)
    if config.scale == "slaney":
        filters = filters * 2 / (edges[2:] - edges[:-2])[:, None]
    empty = int((filters.amax(dim=1) == 0).sum())
    if empty:
        raise ValueError(
            f"{empty} of {config.n_mels} mel bands hold no STFT bin; use fewer bands (n_mels) "
            f"or a larger n_fft than {config.n_fft}"
        )
    return filters.float()


class MelSpectrogram(nn.Module):
    """Waveform to log-mel and energy by one STFT; differentiable."""

    filters: Tensor
    window: Tensor

    def __init__(self, config: MelConfig) -> None:
        super().__init__()
        self.config = config
        self.register_buffer("filters", mel_filter_bank(config), persistent=False)
        self.register_buffer("window", torch.hann_window(config.win_length), persistent=False)

    def forward(self, wav: Tensor) -> Tensor:
        """Computes the log-mel: (B, S) in [-1, 1] -> (B, M, T) float32, T = S // hop_length.

        Raises:
            ValueError: If the audio is too short to be reflected at its edges.
        """
        return self.log_mel(self.magnitude(wav))

    def mel_and_energy(self, wav: Tensor) -> tuple[Tensor, Tensor]:
        """Computes the log-mel, (B, M, T), and the L2 norm of the magnitudes per frame, (B, T)."""
        magnitude = self.magnitude(wav)
        return self.log_mel(magnitude), torch.linalg.vector_norm(magnitude, dim=1)

    def magnitude(self, wav: Tensor) -> Tensor:
        """Computes the STFT magnitude, (B, S) -> (B, n_fft // 2 + 1, T)."""
        _, S = wav.shape
        shortest = max(self.config.edge_samples[1] + 1, self.config.hop_length)
        if shortest > S:
            raise ValueError(
                f"audio of {S} samples is too short for a mel spectrogram: "
                f"{shortest} samples are the least with n_fft {self.config.n_fft}"
            )
        padded = F.pad(wav.float().unsqueeze(1), self.config.edge_samples, mode="reflect")
        spectrum = torch.stft(
            padded.squeeze(1),
            self.config.n_fft,
            hop_length=self.config.hop_length,
            win_length=self.config.win_length,
            window=self.window,
            center=False,
            return_complex=True,
        )
        # "centre" gives one frame more, centred on or after the end of the audio
        spectrum = spectrum[..., : S // self.config.hop_length]
        if self.config.magnitude_epsilon == 0:
            return spectrum.abs()  # its gradient at 0 is 0, where that of the root is infinite
        power = torch.view_as_real(spectrum).square().sum(dim=-1)
        return (power + self.config.magnitude_epsilon).sqrt()

    def log_mel(self, magnitude: Tensor) -> Tensor:
        """Computes the log-mel of STFT magnitudes, (B, n_fft // 2 + 1, T) -> (B, M, T)."""
        # the logarithm magnifies what half precision rounds away
        with torch.autocast(magnitude.device.type, enabled=False):
            return (self.filters @ magnitude).clamp(min=self.config.log_floor).log()


def mel_to_magnitude(bands: Tensor, filters: Tensor, updates: int = 30) -> Tensor:
    """Computes STFT magnitudes, (B, K, T), with the nearest mel bands, 0 outside their range.

    Bands, (B, M, T), are not logarithmic; filters are (M, K).
    """
    magnitude = fit_mel(spread_mel(bands, filters), bands, filters, updates)
    return magnitude * _covered(filters)


def spread_mel(bands: Tensor, filters: Tensor) -> Tensor:
    """Spreads mel bands over the bins of the STFT: the mean level of the bands around each bin.

    The pseudo-inverse of the filters, whose negative values must be cut, is a worse start for
    `fit_mel`. Bins outside the band of the mel get the level of the nearest bin inside it. Bands
    (B, M, T), not logarithmic, and filters (M, K) -> (B, K, T), at least 1e-5.
    """
    levels = bands / filters.sum(dim=1, keepdim=True)
    shares = filters / filters.sum(dim=0).clamp(min=_UNCOVERED)  # (M, K)
    inside, K = _covered(filters)[:, 0].int(), filters.shape[1]
    first, last = inside.argmax(), K - 1 - inside.flip(0).argmax()
    nearest = torch.arange(K, device=filters.device).clamp(first, last)
    return (shares[:, nearest].T @ levels).clamp(min=1e-5)


def fit_mel(magnitude: Tensor, bands: Tensor, filters: Tensor, updates: int) -> Tensor:
    """Moves magnitudes, (B, K, T), towards given mel bands, (B, M, T), by multiplicative updates.

    The updates of Lee and Seung (2001, "Algorithms for non-negative matrix factorization", theorem
    2) never raise the Kullback-Leibler divergence of the bands: closer to perceived loudness than
    the squared error, which the loudest bands dominate. Magnitudes outside the band of the mel
    stay as they are. Filters are (M, K).
    """
    covered = _covered(filters)
    weights = filters / filters.sum(dim=0).clamp(min=_UNCOVERED)  # (M, K)
    for _ in range(updates):
        ratio = bands / (filters @ magnitude).clamp(min=1e-9)
        magnitude = torch.where(covered, magnitude * (weights.T @ ratio), magnitude)
    return magnitude


def _covered(filters: Tensor) -> Tensor:
    """Returns whether each bin is in the range of the bands, (M, K) -> (K, 1)."""
    return (filters.sum(dim=0) > _UNCOVERED)[:, None]


class MelConverter(nn.Module):
    """Converts log-mels to another definition, for a vocoder that was trained on it.

    Magnitudes are estimated from the mel, and the other mel is computed from them. Above the band
    of the first mel nothing is known, which stays silent, and harmonics closer than its bands blur:
    the result is worse than a mel computed from the audio.
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
        """Converts (B, M, T); beyond the lengths of the target comes the last valid frame."""
        magnitude = mel_to_magnitude(mel.float().exp(), self.filters)  # (B, K, T)
        position = self._positions(mel_lengths)  # (B, T of the target)
        before = position.floor()
        share = (position - before)[:, None]  # (B, 1, T of the target)
        last = (mel_lengths - 1)[:, None]
        K = magnitude.shape[1]
        first, second = (
            magnitude.gather(2, at.long().minimum(last)[:, None].expand(-1, K, -1))
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


def _centre(mel: MelConfig) -> float:
    """Returns the sample that the first frame is centred on."""
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
