"""Loudness of programmes (ITU-R BS.1770-4), as EBU R128 asks for it."""

import math
from collections.abc import Iterable

import numpy as np
from scipy.signal import sosfilt

LOUDNESS_LUFS = -23.0  # EBU R128
PEAK_DB = -1.0  # of samples, re full scale; EBU R128 has the same limit for true peaks
_STEP_S = 0.1  # a gating block has four steps, of which three are also in the next one
_STEPS = 4
_OFFSET_DB = -0.691  # BS.1770-4, eq. 2
_ABSOLUTE_GATE_LUFS = -70.0
_RELATIVE_GATE_LU = -10.0


def loudness(pieces: Iterable[np.ndarray], sample_rate: int) -> tuple[float, float]:
    """Measures one channel that comes in pieces, (n,) each.

    Returns:
        Integrated loudness in LUFS, -inf below the absolute gate and of less than 0.4 s, and the
        largest absolute sample.
    """
    sections = k_weighting(sample_rate)
    state, peak = np.zeros((len(sections), 2)), 0.0
    n_step = round(_STEP_S * sample_rate)
    rest, powers = np.zeros(0), []
    for piece in pieces:
        peak = max(peak, float(np.abs(piece).max(initial=0.0)))
        weighted, state = sosfilt(sections, piece, zi=state)
        rest = np.concatenate([rest, weighted])
        n_whole = len(rest) // n_step * n_step
        powers.append(np.square(rest[:n_whole]).reshape(-1, n_step).mean(axis=1))
        rest = rest[n_whole:]
    # gating of BS.1770-4, eq. 3 to 7
    steps = np.concatenate([np.zeros(0), *powers])  # power of each 0.1 s, (T,)
    if len(steps) < _STEPS:
        return -math.inf, peak
    blocks = np.convolve(steps, np.full(_STEPS, 1 / _STEPS), mode="valid")  # (T - 3,)
    blocks = blocks[blocks > 10 ** ((_ABSOLUTE_GATE_LUFS - _OFFSET_DB) / 10)]
    if not len(blocks):
        return -math.inf, peak
    relative_gate = float(blocks.mean()) * 10 ** (_RELATIVE_GATE_LU / 10)
    return _OFFSET_DB + 10 * math.log10(blocks[blocks > relative_gate].mean()), peak


def mastering_gain_db(lufs: float, peak: float) -> float:
    """Returns the gain to -23 LUFS, or less if a sample would exceed -1 dB; 0 for `lufs` -inf."""
    if not math.isfinite(lufs):
        return 0.0
    return min(LOUDNESS_LUFS - lufs, PEAK_DB - 20 * math.log10(peak))


def k_weighting(sample_rate: int) -> np.ndarray:
    """Designs the filters of BS.1770-4, annex 1, for any rate: second-order sections, (2, 6).

    The standard lists coefficients for 48 kHz only. These are the bilinear transforms of the analog
    filters behind them (B. De Man, "Evaluation of implementations of the EBU R128 loudness
    measurement", AES 145, 2018); at 48 kHz both agree to 1e-9.
    """
    k = math.tan(math.pi * 1681.974450955533 / sample_rate)
    q, gain = 0.7071752369554196, 10 ** (3.999843853973347 / 20)
    middle = gain**0.4996667741545416
    zeros = [gain + middle * k / q + k * k, 2 * (k * k - gain), gain - middle * k / q + k * k]
    shelf = np.array([*zeros, 1 + k / q + k * k, 2 * (k * k - 1), 1 - k / q + k * k])
    k, q = math.tan(math.pi * 38.13547087602444 / sample_rate), 0.5003270373238773
    poles = np.array([1 + k / q + k * k, 2 * (k * k - 1), 1 - k / q + k * k])
    return np.stack([shelf / shelf[3], [1, -2, 1, *poles / poles[0]]])
