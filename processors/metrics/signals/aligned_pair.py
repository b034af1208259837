"""A recording and synthesised speech of the same sentence, aligned frame by frame.

Both are resampled to the lower of their sample rates, and to 16 kHz at most. Silence on either side
is excluded: paths run from the first to the last frame that is at most 40 dB below the loudest.

Dynamic time warping (Sakoe and Chiba 1978, "Dynamic programming algorithm optimization for spoken
word recognition") is exact and needs little memory: the table of steps is filled in blocks of rows;
the costs of the row above each block are kept, and the path is traced back block by block.
`librosa.sequence.dtw` finds the same path, but takes 20 bytes per cell: 320 MB per worker process
for two sentences of 20 s (16 MB here), and 290 GB for recordings of 600 s, the longest of vocoders.
"""

from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property

import numpy as np

from modules.compiled import compiled
from processors.metrics.signals.acoustic_features import HIGHEST_RATE, AcousticFeatures
from processors.records import TimedPhone
from processors.text.symbols import NOISE, PAUSES

_SMALLEST_MATCH = 0.5  # of the phones of either; with fewer it is another sentence
_FEWEST_VOICED = 10  # frames: 50 ms
_BLOCK_CELLS = 100_000_000  # bytes of steps
_NO_PATH = np.zeros((0, 2), dtype=int)
_DIAGONAL, _UP, _LEFT = 0, 1, 2  # the cell before: one less in both, in the row, in the column


@dataclass(frozen=True, eq=False)
class AlignedPair:
    """Two signals of the same sentence."""

    recorded: AcousticFeatures  # the recording
    synthesised: AcousticFeatures  # the speech that is scored
    same_timing: bool = False  # whether it is a copy, sample by sample

    @cached_property
    def features(self) -> tuple[AcousticFeatures, AcousticFeatures]:
        """Features of recording and synthesised speech at their common sample rate."""
        rate = min(self.recorded.sample_rate, self.synthesised.sample_rate, HIGHEST_RATE)
        return self.recorded.at(rate), self.synthesised.at(rate)

    @cached_property
    def dtw_path(self) -> np.ndarray:
        """Corresponding frames by dynamic time warping of the mel-cepstra, (L, 2).

        Indices into the recording and the synthesised speech; empty where either is silent.
        """
        if not self._has_sound:
            return _NO_PATH
        starts = np.array([side.sound.start for side in self.features])
        return starts + dtw_path(*(side.cepstra[side.sound] for side in self.features))

    @cached_property
    def path(self) -> np.ndarray:
        """Corresponding frames, (L, 2): of the same time in a copy, else `dtw_path`."""
        if not self.same_timing or not self._has_sound:
            return self.dtw_path
        start = min(side.sound.start for side in self.features)
        sound_end = max(side.sound.stop for side in self.features)
        end = min(sound_end, *(side.n_frames for side in self.features))
        return np.repeat(np.arange(start, end)[:, None], 2, axis=1)

    @cached_property
    def phones(self) -> tuple[tuple[TimedPhone, TimedPhone], ...]:
        """Corresponding phones, recorded and synthesised, without pauses and untranscribed noise.

        Matched by name and in order; empty where those of either are unknown, or fewer than half
        of them match.
        """
        phones, phones_hat = (
            [phone for phone in side.phones if phone.name not in (*PAUSES, NOISE)]
            for side in (self.recorded, self.synthesised)
        )
        names, names_hat = ([phone.name for phone in tier] for tier in (phones, phones_hat))
        matched: list[tuple[TimedPhone, TimedPhone]] = []
        matcher = SequenceMatcher(None, names, names_hat, autojunk=False)
        for a, b, n in matcher.get_matching_blocks():
            matched += zip(phones[a : a + n], phones_hat[b : b + n], strict=True)
        is_same = len(matched) >= _SMALLEST_MATCH * max(len(phones), len(phones_hat))
        return tuple(matched) if is_same else ()

    @cached_property
    def phone_path(self) -> np.ndarray:
        """Corresponding frames by the times of the phones, (L, 2); empty without such times.

        The shorter of two corresponding phones is stretched linearly to the longer.
        """
        if not self._has_sound:
            return _NO_PATH
        parts = [_NO_PATH]
        first = np.array([side.times_s[0] for side in self.features])
        limits = np.array([side.n_frames - 1 for side in self.features])
        frame_s = self.features[0].frame_s
        for both in self.phones:
            start, end = ((np.array([p[i] for p in both]) - first) / frame_s for i in (1, 2))
            n = int(np.rint(end - start).max())
            shares = (np.arange(n)[:, None] + 0.5) / max(n, 1)  # (n, 1), the middle of each part
            frames = np.floor(start + shares * (end - start)).astype(int)  # (n, 2)
            parts.append(frames.clip(0, limits))
        return np.concatenate(parts)

    @cached_property
    def f0(self) -> np.ndarray:
        """Fundamental frequencies along the path, recorded and synthesised, Hz, (L, 2)."""
        return self._along_path([side.f0 for side in self.features])

    @cached_property
    def voiced_f0(self) -> np.ndarray:
        """The part of `f0` that is voiced in both, (V, 2); empty if it is less than 50 ms."""
        voiced = self.f0[(self.f0 > 0).all(axis=1)]
        return voiced if len(voiced) >= _FEWEST_VOICED else voiced[:0]

    @cached_property
    def energy(self) -> np.ndarray:
        """Levels along the path, recorded and synthesised, dB, (L, 2)."""
        return self._along_path([side.energy for side in self.features])

    @property
    def _has_sound(self) -> bool:
        return all(side.sound.stop for side in self.features)

    def _along_path(self, features: list[np.ndarray]) -> np.ndarray:
        """Returns a feature (T,) of both along the path, (L, 2)."""
        return np.stack([values[self.path[:, i]] for i, values in enumerate(features)], axis=1)


def dtw_path(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Returns the path with the smallest sum of Euclidean distances from both starts to both ends.

    Of equal costs it prefers the diagonal step. (N, D) and (M, D) -> indices into both, (L, 2).
    """
    N, M = len(a), len(b)
    if N == 0 or M == 0:
        return _NO_PATH
    rows = min(N, max(1, _BLOCK_CELLS // M))
    blocks = [np.ascontiguousarray(a[start : start + rows]) for start in range(0, N, rows)]
    b, steps = np.ascontiguousarray(b), np.empty((rows, M), dtype=np.uint8)
    above = [np.append(0.0, np.full(M, np.inf))]  # before column 0, then by column: (M + 1,)
    for block in blocks:
        above.append(_fill(block, b, above[-1], steps))
    path: list[tuple[int, int]] = []
    row, column = N - 1, M - 1
    for k in reversed(range(len(blocks))):
        if k < len(blocks) - 1:  # the last block is still there
            _fill(blocks[k], b, above[k], steps)
        while row >= k * rows:
            path.append((row, column))
            step = steps[row - k * rows, column]
            row -= step != _LEFT
            column -= step != _UP
    return np.array(path[::-1])


@compiled
def _fill(a: np.ndarray, b: np.ndarray, above: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Fills the steps to each cell of a block, (N, M); returns the costs of its last row, (M + 1,).

    `above` are the costs of the row before the block, (M + 1,).
    """
    costs = above.copy()
    for i in range(len(a)):
        diagonal, costs[0] = costs[0], np.inf
        for j in range(len(b)):
            square = 0.0
            for d in range(a.shape[1]):
                square += (a[i, d] - b[j, d]) ** 2
            left, up = costs[j], costs[j + 1]
            straight = min(left, up)
            if diagonal <= straight:
                steps[i, j] = _DIAGONAL
            else:
                steps[i, j] = _LEFT if left < up else _UP
            costs[j + 1] = min(diagonal, straight) + np.sqrt(square)
            diagonal = up
    return costs
