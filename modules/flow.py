"""Conditional flow matching with straight paths (Lipman et al. 2023, arXiv:2210.02747).

A network learns the velocity of a flow that carries normal noise at time 0 to frames at time 1.
Synthesis follows the flow by Euler's method in a few steps.
"""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch._higher_order_ops.scan import scan

SIGMA = 1e-4  # standard deviation of the noise that is left at time 1
_WORD = 2**32  # random bits are whole numbers below it, in int64
_PHONES = 2**16  # positions of a text whose hash is that of no other phone and position
_HIGH = 0x9E3779B1  # of the upper half of a seed


def path_point(noise: Tensor, target: Tensor, times: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the points of straight paths at times (B,) and their velocities, (B, T, M) each.

    Lipman et al. 2023, eq. 22 and 23: x = (1 - (1 - sigma) t) noise + t target.
    """
    t = times[:, None, None]
    point = torch.lerp(noise, target, t) + SIGMA * t * noise
    return point, target - (1 - SIGMA) * noise


def solve(
    velocity: Callable[..., Tensor],
    start: Tensor,
    conditions: Sequence[Tensor],
    n_steps: int,
    *,
    scans: bool = False,
) -> Tensor:
    """Follows a flow from time 0 to 1 by Euler's method in equal steps.

    Args:
        velocity: Takes points (B, T, M), the conditions and times (B,), and returns (B, T, M).
        start: The points at time 0, (B, T, M).
        scans: Whether an exported graph has the steps as a scan, and so the network once.
    """
    if scans:

        def follow(point: Tensor, time: Tensor) -> tuple[Tensor, Tensor]:
            moved = velocity(point, *conditions, time.expand(len(point))).float() / n_steps
            return point + moved, time.clone()

        return scan(follow, start, torch.arange(n_steps) / n_steps)[0]
    point = start
    for step in range(n_steps):
        times = start.new_full((len(start),), step / n_steps)
        point = point + velocity(point, *conditions, times).float() / n_steps
    return point


def time_features(times: Tensor, n_channels: int) -> Tensor:
    """Returns sines and cosines of times from 0 to 1, (B,) -> (B, n_channels), an even number."""
    n_rates = n_channels // 2
    # angular frequencies from 1000 down to 0.1 per unit of time, as for a thousand diffusion steps
    rates = torch.arange(n_rates, device=times.device) * (-math.log(10000.0) / (n_rates - 1))
    angles = 1000 * times.float()[:, None] * rates.exp()
    return torch.cat([angles.sin(), angles.cos()], dim=1)


def seeds_of_phones(phone_ids: Tensor, seed: int | Tensor) -> Tensor:
    """Returns a seed of each item for `frame_noise`, (B, N) -> (B,); padding, 0, does not count.

    Args:
        seed: From 0 to 2^63 - 1; one for all, or (B,).
    """
    places = torch.arange(phone_ids.shape[1], device=phone_ids.device)
    terms = _mixed(phone_ids * _PHONES + places) * (phone_ids > 0)  # (B, N)
    return _mixed((terms.sum(dim=1) + seed + (seed // _WORD) * _HIGH) % _WORD)


def frame_noise(seeds: Tensor, n_frames: int, n_channels: int) -> Tensor:
    """Draws normal noise, (B, T, M), whose values are a function of seed, frame and channel.

    Unlike that of PyTorch's generators it does not depend on the batch, the length or the device,
    and can be part of a graph: counters are mixed to random bits, and two of them make a normal
    number (Box and Muller 1958).

    Args:
        seeds: (B,) int64, from 0 to 2^32 - 1.
    """
    counters = torch.arange(n_frames * n_channels, device=seeds.device).view(n_frames, n_channels)
    first = _mixed((_mixed(counters) + seeds[:, None, None]) % _WORD)  # (B, T, M)
    second = _mixed((first + seeds[:, None, None] + 1) % _WORD)
    radius = (-2 * ((first + 1).float() / _WORD).log()).clamp(min=0).sqrt()
    return radius * (second.float() * (2 * math.pi / _WORD)).cos()


def _mixed(bits: Tensor) -> Tensor:
    """Mixes numbers below 2^32 one to one, so that each bit of the input changes half of the bits.

    The xor-shift-multiply hash of 32 bits with the least bias that is known (Wellons 2018, "Hash
    function prospecting"); its multipliers are below 2^31, so that products fit into int64.
    """
    bits = bits ^ (bits // 2**16)
    bits = bits * 0x21F0AAAD % _WORD
    bits = bits ^ (bits // 2**15)
    bits = bits * 0x735A2D97 % _WORD
    return bits ^ (bits // 2**15)
