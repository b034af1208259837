"""Harmonics of a voice in its mel, from F0.

A network that knows one pitch for each phone cannot tell in which bands the harmonics of a frame
are, and a mel loss then averages them away: its voices sound blurred. The ripple of an F0 is the
log-mel of a flat comb of harmonics less its envelope, and the network adds

    depth(hidden) * ripple(F0)

to the log-mel: it learns how strong the harmonics are, not where. The depth starts at 0.
`F0Residual` predicts F0 within phones, which straight lines between their values leave out.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from modules.layers.basic import Linear
from modules.mel import MelConfig, mel_band_edges, mel_filter_bank
from modules.variance import adaptor
from modules.variance.adaptor import regulate

LOWEST_HZ, HIGHEST_HZ = 60.0, 500.0
_N_PITCHES = 512  # 0.4 % apart
_MAIN_LOBE_BINS = 2  # of the Hann window, to each side
_FLOOR = 0.02  # between harmonics, of their magnitude: noise and changes of F0 in a frame
_SMOOTHING = 0.55  # standard deviation of the envelope's smoothing, in distances of harmonics
# with Adam, the factor of the learning rate: the depth has further to go than tuned weights
_GAIN = 3.0
_FILTERS, _KERNEL, _DROPOUT = 64, 7, 0.2  # of the predictor of the residual
_SEMITONES = 12  # of an octave
_SCALE = 4  # octaves of F0 around the mean of an utterance -> about 1


def comb_ripples(mel: MelConfig) -> Tensor:
    """Returns the log-mels of flat combs of harmonics, less their envelopes.

    Harmonics have the main lobe of the window, with random phases. The envelope is the log-mel
    smoothed over the bands by a Gaussian whose width follows the distance of the harmonics there.
    (512, M), for F0 at equal ratios from LOWEST_HZ to HIGHEST_HZ.
    """
    f0 = torch.linspace(math.log(LOWEST_HZ), math.log(HIGHEST_HZ), _N_PITCHES).exp()
    hz = torch.linspace(0, mel.sample_rate / 2, mel.n_fft // 2 + 1)
    below = (hz / f0[:, None]).floor()  # (512, n_fft // 2 + 1): number of the harmonic below
    reach = math.ceil(_MAIN_LOBE_BINS * mel.sample_rate / mel.win_length / LOWEST_HZ)
    power = torch.zeros_like(below)
    for number in (below + offset for offset in range(1 - reach, 1 + reach)):
        bins = (hz - number * f0[:, None]) * mel.win_length / mel.sample_rate
        sides = torch.sinc(bins - 1) + torch.sinc(bins + 1)
        lobe = (torch.sinc(bins) + sides / 2) * (bins.abs() < _MAIN_LOBE_BINS)  # 1 at 0
        power += lobe.square() * (number >= 1)
    magnitude = power.sqrt().clamp(min=_FLOOR)
    log_mel = (magnitude @ mel_filter_bank(mel).T).log()  # (512, M)
    edges = mel_band_edges(mel).float()
    bands_per_harmonic = 2 * f0[:, None] / (edges[2:] - edges[:-2])  # (512, M)
    deviation = (_SMOOTHING * bands_per_harmonic).clamp(min=1)
    band = torch.arange(mel.n_mels)
    distance = (band[:, None] - band) / deviation[:, :, None]  # (512, M, M)
    weights = (-distance.square() / 2).softmax(dim=2)
    return log_mel - (weights @ log_mel[:, :, None]).squeeze(2)


class HarmonicComb(nn.Module):
    """The ripples of F0 in log-mels."""

    ripples: Tensor

    def __init__(self, mel: MelConfig) -> None:
        super().__init__()
        self.register_buffer("ripples", comb_ripples(mel), persistent=False)

    def forward(self, f0: Tensor) -> Tensor:
        """Returns the ripple of each frame, interpolated in the table: Hz (B, T) -> (B, T, M).

        F0 is without gaps. Below 60 and above 500 Hz harmonics stay those of 60 and 500 Hz.
        """
        octaves = (f0.float().clamp(LOWEST_HZ, HIGHEST_HZ) / LOWEST_HZ).log2()
        rows = octaves * ((_N_PITCHES - 1) / math.log2(HIGHEST_HZ / LOWEST_HZ))
        lower = rows.long().clamp(0, _N_PITCHES - 2)
        below, above = (F.embedding(row, self.ripples) for row in (lower, lower + 1))
        return torch.lerp(below, above, (rows - lower).unsqueeze(2))


class HarmonicHead(nn.Module):
    """Adds the harmonics of F0 to a log-mel that is made from H channels."""

    def __init__(self, hidden: int, mel: MelConfig) -> None:
        super().__init__()
        self.comb = HarmonicComb(mel)
        self.depth = Linear(hidden, mel.n_mels)
        nn.init.zeros_(self.depth.weight)
        nn.init.zeros_(self.depth.bias)

    def forward(self, frames: Tensor, f0: Tensor) -> Tensor:
        """Computes what is added to the log-mel: (B, T, H), F0 (B, T) -> (B, T, M); 0 at first.

        F0 is in Hz, as `HarmonicComb` takes it.
        """
        return _GAIN * self.depth(frames) * self.comb(f0)


class F0Residual(nn.Module):
    """Predicts how far F0 is from lines that join the phones, in semitones; 0 before training.

    Its input is the frames (H channels), the lines and the position of each frame in its phone. The
    frames are detached: its loss trains no other layer.
    """

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.given = Linear(2, hidden)  # of the lines and the positions
        self.predictor = adaptor.VariancePredictor(hidden, _FILTERS, _KERNEL, _DROPOUT)
        nn.init.zeros_(self.predictor.linear.weight)
        nn.init.zeros_(self.predictor.linear.bias)

    def forward(self, frames: Tensor, lines: Tensor, durations: Tensor, mask: Tensor) -> Tensor:
        """Returns semitones to add to the lines, F0 in Hz that is joined between phones: (B, T).

        Frames are hidden vectors before the decoder, (B, T, H); durations are (B, N). Padding is 0.
        """
        octaves = lines.clamp(min=1).log2()
        mean = (octaves * mask).sum(1, keepdim=True) / mask.sum(1, keepdim=True)
        phones = torch.stack([durations.cumsum(dim=1) - durations, durations], dim=2).float()
        start, length = regulate(phones, durations, mask.shape[1]).unbind(dim=2)  # (B, T) each
        number = torch.arange(mask.shape[1], device=mask.device)
        position = ((number + 0.5 - start) / length.clamp(min=1) - 0.5) * mask  # -0.5 to 0.5
        contours = torch.stack([(octaves - mean) * _SCALE, position], dim=2)
        return self.predictor(frames.detach() + self.given(contours), mask)

    def l1_sum(self, frames: Tensor, f0: Tensor, durations: Tensor, mask: Tensor) -> Tensor:
        """Sums the absolute error in semitones over voiced frames; F0 in Hz, (B, T)."""
        means = adaptor.average_by_phone(adaptor.interpolate_unvoiced(f0, mask.sum(1)), durations)
        lines = adaptor.join_phones(means, durations, None, mask.shape[1])
        target = _SEMITONES * (f0.clamp(min=1) / lines.clamp(min=1)).log2()
        error = self(frames, lines, durations, mask).float() - target
        return (error.abs() * (f0 > 0) * mask).sum()

    def applied(self, frames: Tensor, lines: Tensor, durations: Tensor, mask: Tensor) -> Tensor:
        """Returns F0 in Hz, (B, T); arguments as of `forward`."""
        return lines * (self(frames, lines, durations, mask).float() / _SEMITONES).exp2()
