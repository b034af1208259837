"""Griffin-Lim: a waveform from STFT magnitudes, or from a mel without a trained vocoder.

Fast Griffin-Lim (Perraudin, Balazs and Sondergaard 2013, "A fast Griffin-Lim algorithm",
algorithm 2): estimates phases that are consistent with the magnitudes.

It departs from the usual implementations in that
- the first phases are those of phase gradient integration instead of random ones: as good
  after 15 iterations as after 60 from random phases;
- it computes window by window: a window continues the sound of those before it, which stays as it
  is, and looks some frames ahead. Speech begins early and memory does not grow with its length;
- the audio before the first and after the last sample is free instead of a reflection;
- the items of a batch are computed one by one, so padding does not change the result.
"""

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from modules.execution.chunks import by_item, windows
from modules.mel import MelConfig, mel_filter_bank, mel_to_magnitude

_HANN = 0.25645  # C_g of the paper: squared width of the Gaussian that is nearest to a Hann window
_DOUBLINGS = 5  # peaks are found up to 2 ** 5 bins away
SMALLEST_MAGNITUDE = 1e-5  # before the logarithm
LEAST_WEIGHT = 1e-3  # of a sample that few windows of the STFT reach
MOMENTUM = 0.99  # 0 is the algorithm of Griffin and Lim (1984)
CHUNK_FRAMES = 128  # that a window adds to the sound
AHEAD_FRAMES = 16  # after them, so that their phases fit what follows


def integrate_phase(log_magnitude: Tensor, mel: MelConfig, first: Tensor | None = None) -> Tensor:
    """Computes phases that fit the magnitudes, without iterations.

    Phase gradient integration (Prusa, Balazs and Sondergaard 2017, "A Noniterative Method for
    Reconstruction of Phase From STFT Magnitude", arXiv:1609.00291). For a Gaussian window the
    derivatives of the phase over time and frequency are those of the log magnitude over frequency
    and time; a Hann window is close to a Gaussian. The phases are the integral of these
    derivatives. It departs from the paper in the paths: over time along the peaks of each frame,
    and from there over frequency to the bins around them. So no heap is needed, a frame depends
    only on frames up to the next one, and without iterations PESQ is higher than by the paper's
    paths (docs/benchmarks.md).

    Args:
        log_magnitude: Natural log, (T, n_fft // 2 + 1), T at least 1, without padding.
        mel: STFT size, window and hop.
        first: Phases of the first frame, (n_fft // 2 + 1,) float64; None: it begins here.

    Returns:
        Radians, (T, n_fft // 2 + 1) float64, relative to the first sample of each frame.
    """
    log_magnitude = log_magnitude.double()
    steps = phase_steps(log_magnitude, _slope(log_magnitude, 0), mel)
    if first is None:
        first = first_phases(log_magnitude[0], steps.from_lowest[0])
    frames = [first]
    for peak, advance, offset in zip(
        steps.peaks[1:], steps.advances, steps.from_lowest[1:], strict=True
    ):
        frames.append(((frames[-1] + advance)[peak] + offset).remainder(2 * math.pi))
    return torch.stack(frames)


class PhaseSteps(NamedTuple):
    """What leads from the phases of a frame to those of the next one."""

    peaks: Tensor  # the peak of each bin, (T, K) int64
    advances: Tensor  # at peaks, from each frame to the next, less `from_lowest`, (T - 1, K)
    from_lowest: Tensor  # from the lowest bin to each, (T, K)


def phase_steps(log_magnitude: Tensor, slope: Tensor, mel: MelConfig) -> PhaseSteps:
    """Integrates derivatives of the phases within frames and between neighbours; all (T, K)."""
    # gradient of the phase, in steps of one frame and of one bin
    scale = _HANN * mel.win_length**2 / (mel.hop_length * mel.n_fft)
    bins = torch.arange(log_magnitude.shape[1], device=log_magnitude.device)
    over_time = _slope(log_magnitude, 1) / scale
    over_time += 2 * math.pi * mel.hop_length / mel.n_fft * bins
    # relative to the first sample of the frame, half a window before its centre
    over_frequency = -scale * slope - math.pi
    from_lowest = F.pad((over_frequency[:, 1:] + over_frequency[:, :-1]) / 2, (1, 0)).cumsum(1)
    advances = (over_time[1:] + over_time[:-1]) / 2 - from_lowest[1:]
    return PhaseSteps(_peaks(log_magnitude), advances, from_lowest)


def first_phases(log_magnitude: Tensor, from_lowest: Tensor) -> Tensor:
    """Returns the phases of a frame without a past: 0 at its loudest bin; all (K,)."""
    return from_lowest - from_lowest[log_magnitude.argmax(dim=0, keepdim=True)]


def _slope(values: Tensor, dim: int) -> Tensor:
    """Computes central differences along a dimension, one-sided at its ends."""
    if values.shape[dim] == 1:
        return torch.zeros_like(values)
    return torch.gradient(values, dim=dim)[0]


def _peaks(log_magnitude: Tensor) -> Tensor:
    """Finds the peak that steepest ascent leads to from each bin, (T, K) -> (T, K) int64."""
    around = F.pad(log_magnitude, (1, 1), value=-math.inf).unfold(1, 3, 1)  # (T, K, 3)
    bins = torch.arange(log_magnitude.shape[1], device=log_magnitude.device)
    higher = bins + around.argmax(dim=2) - 1
    for _ in range(_DOUBLINGS):
        higher = higher.gather(1, higher)
    return higher


class _Past(NamedTuple):
    """What later frames need of the frames so far."""

    phases: Tensor  # of the last frame, before the iterations, (K,) float64
    wav: Tensor  # sums of the windowed frames beyond the end, (n_blocks - 1, hop_length)
    weight: Tensor  # of their squared windows, of the same shape


class MagnitudeVocoder(nn.Module):
    """A vocoder that computes magnitudes from a mel; Griffin-Lim finds their phases.

    Subclasses define `magnitudes`, which depend on `reach` frames of the mel on either side. 30
    iterations are enough for speech.
    """

    filters: Tensor
    window: Tensor

    def __init__(self, mel: MelConfig, iterations: int = 30, reach: int = 0) -> None:
        super().__init__()
        self.mel = mel
        self.iterations = iterations
        self.reach = reach
        self.register_buffer("filters", mel_filter_bank(mel), persistent=False)
        margin = mel.n_fft - mel.win_length
        window = F.pad(torch.hann_window(mel.win_length), (margin // 2, margin - margin // 2))
        self.register_buffer("window", window, persistent=False)

    def magnitudes(self, mel: Tensor) -> Tensor:
        """Computes STFT magnitudes, (1, M, T) float32 -> (1, n_fft // 2 + 1, T)."""
        raise NotImplementedError

    @torch.no_grad()
    def infer(self, mel: Tensor, mel_lengths: Tensor | None = None, *, seed: int = 0) -> Tensor:
        """Computes the waveforms, (B, T * hop_length), item by item; call `eval()` first."""
        return by_item(self.generate, mel, mel_lengths, self.mel.hop_length)

    @torch.no_grad()
    def generate(
        self, mel: Tensor | Iterable[Tensor], chunk_frames: int | None = None, *, seed: int = 0
    ) -> Iterator[Tensor]:
        """Computes a waveform in pieces (1, n); joined, they are that of `infer`.

        `chunk_frames` is without effect: the phases depend on the size of a window.
        """
        past, n_ahead = None, AHEAD_FRAMES
        n_skipped = self.mel.edge_samples[0]
        pieces = [mel] if isinstance(mel, Tensor) else mel
        for _, signal, (left, right) in windows(pieces, CHUNK_FRAMES, self.reach + n_ahead):
            magnitude = self.magnitudes(signal.float())[0].T  # (T, n_fft // 2 + 1)
            n = len(magnitude) - left - right
            first = left - (past is not None)  # one frame more, for the gradients
            frames = magnitude[first : left + n + min(right, n_ahead)]
            wav, past = self._continued(frames, n, past)  # (n * hop_length,)
            if right == 0:  # the end
                rest = (past.wav / past.weight.clamp(min=LEAST_WEIGHT)).flatten()
                wav = torch.cat((wav, rest[: self.mel.edge_samples[0]]))
            yield wav[None, n_skipped:].clamp(-1, 1)
            n_skipped = 0

    def _continued(self, magnitude: Tensor, n: int, past: _Past | None) -> tuple[Tensor, _Past]:
        """Synthesises `n` frames; the first of the magnitudes (T, K) is of the past, if any."""
        log_magnitude = magnitude.clamp(min=SMALLEST_MAGNITUDE).log()
        phases = integrate_phase(log_magnitude, self.mel, None if past is None else past.phases)
        if past is not None:
            magnitude, phases = magnitude[1:], phases[1:]
        squared = self.window.square().expand(len(magnitude), -1)
        weight = self._added(squared, None if past is None else past.weight)
        before = None if past is None else past.wav
        spectrum = self._consistent(magnitude, phases.float(), weight, before)
        wav = self._added(torch.fft.irfft(spectrum[:n], n=self.mel.n_fft) * self.window, before)
        weight = self._added(squared[:n], None if past is None else past.weight)
        done = wav[:n] / weight[:n].clamp(min=LEAST_WEIGHT)
        return done.flatten(), _Past(phases[n - 1], wav[n:], weight[n:])

    def _consistent(
        self, magnitude: Tensor, phases: Tensor, weight: Tensor, before: Tensor | None
    ) -> Tensor:
        """Iterates from the given phases; returns the spectrum, (T, K) complex."""
        n_fft, hop = self.mel.n_fft, self.mel.hop_length
        n_samples = (len(magnitude) - 1) * hop + n_fft
        weight = weight.clamp(min=LEAST_WEIGHT)
        spectrum = torch.polar(magnitude, phases)
        previous = torch.zeros(1, device=magnitude.device)
        for _ in range(self.iterations):
            frames = torch.fft.irfft(spectrum, n=n_fft) * self.window
            wav = (self._added(frames, before) / weight).flatten()[:n_samples]
            projected = torch.fft.rfft(wav.unfold(0, n_fft, hop) * self.window)
            # in real arithmetic: PyTorch's complex division and absolute value take twice the time
            consistent = torch.view_as_real(projected)
            moved = torch.sub(consistent, previous, alpha=MOMENTUM / (1 + MOMENTUM))
            real, imaginary = moved.unbind(2)
            power = (real * real).addcmul_(imaginary, imaginary)
            spectrum = torch.view_as_complex(moved) * power.clamp_(min=1e-32).rsqrt_().mul_(
                magnitude
            )
            previous = consistent
        return spectrum

    def _added(self, frames: Tensor, before: Tensor | None) -> Tensor:
        """Adds frames to the sum of those before: (T, n_fft) -> (T + n_blocks - 1, hop)."""
        T, n_fft = frames.shape
        hop = self.mel.hop_length
        n_blocks = -(-n_fft // hop)
        blocks = F.pad(frames, (0, n_blocks * hop - n_fft)).view(T, n_blocks, hop)
        wav = frames.new_zeros(T + n_blocks - 1, hop)
        if before is not None:
            wav[: n_blocks - 1] = before
        for number in range(n_blocks):
            wav[number : number + T] += blocks[:, number]
        return wav


class GriffinLim(MagnitudeVocoder):
    """Mel to waveform, deterministic and without trained weights."""

    def magnitudes(self, mel: Tensor) -> Tensor:
        """Computes STFT magnitudes, (1, M, T) -> (1, n_fft // 2 + 1, T)."""
        return mel_to_magnitude(mel.exp(), self.filters)
