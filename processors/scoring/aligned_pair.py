"""A recording and the same sentence spoken by a model, in its own timing, frame beside frame.

Both are brought to one sample rate: the lower of theirs, and 16,000 Hz at most. Silence before and
after does not count: frames stand beside each other from the first to the last that is no more than
40 dB below the loudest of its sound.
"""

from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property

import numpy as np

from processors.records import TimedPhone
from processors.scoring.acoustic_features import HIGHEST_RATE, AcousticFeatures
from processors.scoring.dtw import dtw_path
from processors.text.symbols import NOISE, PAUSES

_SMALLEST_MATCH = 0.5  # of the phones of either; with fewer it is another sentence
_FEWEST_VOICED = 10  # frames: 50 ms


@dataclass(frozen=True, eq=False)
class AlignedPair:
    """Two voices that say the same.

    Attributes:
        recorded: What was recorded.
        synthesised: What is judged.
        same_timing: Whether it is a copy, each sample of which stands for the one recorded there.
    """

    recorded: AcousticFeatures
    synthesised: AcousticFeatures
    same_timing: bool = False

    @cached_property
    def features(self) -> tuple[AcousticFeatures, AcousticFeatures]:
        """The recorded and the spoken one at their common sample rate."""
        rate = min(self.recorded.sample_rate, self.synthesised.sample_rate, HIGHEST_RATE)
        return self.recorded.at(rate), self.synthesised.at(rate)

    @cached_property
    def dtw_path(self) -> np.ndarray:
        """Frames beside each other by dynamic time warping of the mel-cepstra, (L, 2).

        Indices into the recorded and the spoken voice; none where one of them is silent.
        """
        theirs, ours = self.features
        starts = np.array([theirs.sound.start, ours.sound.start])
        if not self._has_sound:
            return np.zeros((0, 2), dtype=int)
        return starts + dtw_path(
            theirs.cepstra[slice(*theirs.sound)], ours.cepstra[slice(*ours.sound)]
        )

    @cached_property
    def path(self) -> np.ndarray:
        """Frames beside each other, (L, 2): those of the same time in a copy, else `warped`."""
        if not self.same_timing or not self._has_sound:
            return self.dtw_path
        theirs, ours = self.features
        start = min(theirs.sound.start, ours.sound.start)
        end = min(max(theirs.sound.end, ours.sound.end), theirs.n_frames, ours.n_frames)
        return np.repeat(np.arange(start, end)[:, None], 2, axis=1)

    @cached_property
    def phones(self) -> tuple[tuple[TimedPhone, TimedPhone], ...]:
        """Phones that both say, recorded and spoken, in order, without pauses.

        Matched by name and in order, without speech that was not transcribed; none where those of
        either are unknown, or fewer than half of them match.
        """
        theirs, ours = (
            [phone for phone in voice.phones if phone.name not in (*PAUSES, NOISE)]
            for voice in (self.recorded, self.synthesised)
        )
        names, names_hat = ([phone.name for phone in phones] for phones in (theirs, ours))
        blocks = SequenceMatcher(None, names, names_hat, autojunk=False).get_matching_blocks()
        matched = [
            (theirs[block.a + i], ours[block.b + i]) for block in blocks for i in range(block.size)
        ]
        if len(matched) < _SMALLEST_MATCH * max(len(theirs), len(ours)):
            return ()
        return tuple(matched)

    @cached_property
    def phone_path(self) -> np.ndarray:
        """Frames beside each other by the times of the phones, (L, 2); none without such times.

        Within each phone that both say, the shorter is stretched evenly to the longer.
        """
        if not self._has_sound:
            return np.zeros((0, 2), dtype=int)
        parts = [np.zeros((0, 2), dtype=int)]
        first = np.array([voice.times_s[0] for voice in self.features])
        limits = np.array([voice.n_frames - 1 for voice in self.features])
        frame_s = self.features[0].frame_s
        for both in self.phones:
            start, end = (
                (np.array([phone[i] for phone in both]) - first) / frame_s for i in (1, 2)
            )
            n = int(np.rint(end - start).max())
            shares = (np.arange(n)[:, None] + 0.5) / max(n, 1)  # (n, 1), the middle of each part
            frames = np.floor(start + shares * (end - start)).astype(int)  # (n, 2)
            parts.append(frames.clip(0, limits))
        return np.concatenate(parts)

    @cached_property
    def f0(self) -> np.ndarray:
        """Fundamental frequencies along the path, recorded and spoken, Hz, (L, 2)."""
        return self._beside([voice.f0 for voice in self.features])

    @cached_property
    def voiced_f0(self) -> np.ndarray:
        """Those of them where both are voiced, (V, 2); none if that is for less than 50 ms."""
        voiced = self.f0[(self.f0 > 0).all(axis=1)]
        return voiced if len(voiced) >= _FEWEST_VOICED else voiced[:0]

    @cached_property
    def energy(self) -> np.ndarray:
        """Levels along the path, recorded and spoken, dB, (L, 2)."""
        return self._beside([voice.energy for voice in self.features])

    @property
    def _has_sound(self) -> bool:
        return all(voice.sound.end for voice in self.features)

    def _beside(self, features: list[np.ndarray]) -> np.ndarray:
        """A feature (T,) of both along the path, (L, 2)."""
        return np.stack([values[self.path[:, i]] for i, values in enumerate(features)], axis=1)


def rmse(beside: np.ndarray) -> float | None:
    """Root mean square of the differences of pairs, (L, 2); None if there is none."""
    if not len(beside):
        return None
    return float(np.sqrt(np.mean((beside[:, 1] - beside[:, 0]) ** 2)))


def correlation(beside: np.ndarray) -> float | None:
    """Pearson's correlation of pairs, (L, 2), -1 to 1; None where one of the two never changes."""
    if not len(beside) or not np.ptp(beside, axis=0).all():
        return None
    return float(np.corrcoef(beside, rowvar=False)[0, 1])
