"""Phases of an STFT from its magnitudes, without iterations and without training.

Phase gradient integration (Prusa, Balazs and Sondergaard 2017, "A Noniterative Method for
Reconstruction of Phase From STFT Magnitude", arXiv:1609.00291). For a Gaussian window the
derivatives of the phase over time and frequency are those of the log magnitude over frequency and
time; a Hann window is close to a Gaussian. The phases are the integral of these derivatives. It
departs from the paper in the paths: over time along the peaks of each frame, and from there over
frequency to the bins around them. So no heap is needed, a frame depends only on frames up to the
next one, and without iterations PESQ is higher than by the paper's paths (docs/benchmarks.md).
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from modules.mel import MelConfig

_HANN = 0.25645  # C_g of the paper: squared width of the Gaussian that is nearest to a Hann window
_DOUBLINGS = 5  # peaks are found up to 2 ** 5 bins away


def integrate_phase(log_magnitude: Tensor, mel: MelConfig, first: Tensor | None = None) -> Tensor:
    """Computes phases that fit the magnitudes.

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
    """The derivatives of the phases, integrated within frames and between neighbours.

    Args:
        log_magnitude: Natural log, (T, K) float64.
        slope: Change of the log magnitude per frame, (T, K).
    """
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
    """Phases of a frame without a past: 0 at its loudest bin; all (K,)."""
    return from_lowest - from_lowest[log_magnitude.argmax(dim=0, keepdim=True)]


def _slope(values: Tensor, dim: int) -> Tensor:
    """Central differences along a dimension, one-sided at its ends."""
    if values.shape[dim] == 1:
        return torch.zeros_like(values)
    return torch.gradient(values, dim=dim)[0]


def _peaks(log_magnitude: Tensor) -> Tensor:
    """The peak that steepest ascent leads to from each bin, (T, K) -> (T, K) int64."""
    around = F.pad(log_magnitude, (1, 1), value=-math.inf).unfold(1, 3, 1)  # (T, K, 3)
    bins = torch.arange(log_magnitude.shape[1], device=log_magnitude.device)
    higher = bins + around.argmax(dim=2) - 1
    for _ in range(_DOUBLINGS):
        higher = higher.gather(1, higher)
    return higher
