"""Generated features for acoustic models: each symbol has a spectrum, a length and a pitch."""

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from modules.mel import MelConfig
from processors.dataset.generated.utterances import GeneratedStore
from processors.dataset.store import Prosody
from processors.records import Features, WordPhones
from processors.text.symbols import PAUSES
from utils.seed import derived_seed

_LEVEL, _SILENT_LEVEL = -6.0, -9.5  # mean log-mel of phones and of pauses
_VOICED = 0.7  # share of the symbols that are not pauses
_SKIPPED = 0.25  # share of the pauses that are not made
_DECLINATION = 0.15  # the pitch falls by this share in the course of an utterance


class _Sounds(NamedTuple):
    """What symbols sound like, in the order of their ids."""

    spectra: np.ndarray  # mean log-mel, (K, M)
    is_pause: np.ndarray  # (K,) bool
    lengths: np.ndarray  # relative, (K,)
    pitch: np.ndarray  # Hz, 0 = unvoiced, (K,)
    energy: np.ndarray  # mean L2 norm of the STFT magnitude, (K,)


class GeneratedFeatures(GeneratedStore):
    """Utterances that training reads like those of a FeatureStore; nothing is on disk.

    Any symbol may follow any other. Its mel is the symbol's mean spectrum with noise, its duration
    the symbol's length with noise, sometimes 0; so all of it can be learnt, but is not speech.
    An utterance is a function of (seed, id), and a symbol sounds the same everywhere.
    """

    def __init__(
        self,
        name: str,
        n_utterances: int,
        mel: MelConfig,
        symbols: Sequence[str],
        f0_range: tuple[float, float],
        *,
        timed: bool = True,
        seed: int = 0,
    ) -> None:
        super().__init__(name, n_utterances, mel, seed=seed)
        self.symbols = tuple(symbols)
        self.timed = timed
        self._f0_range = f0_range

    def read(self, key: str | int) -> Features:
        """Generates one utterance, by id or position."""
        position = self.index_of(key) if isinstance(key, str) else key
        N, T = int(self.phones_count[position]), int(self.frames[position])
        id, sounds = self.ids[position], self._sounds
        generator = np.random.default_rng(derived_seed("generated features", self.seed, id))
        chosen = generator.integers(len(self.symbols), size=N)
        lengths = sounds.lengths[chosen] * generator.lognormal(0, 0.3, N)
        skipped = sounds.is_pause[chosen] & (generator.uniform(size=N) < _SKIPPED)
        lengths[1:][skipped[1:]] = 0
        durations = _durations(lengths, T)
        spoken = np.repeat(chosen, durations)  # (T,)
        mel = sounds.spectra[spoken].T + generator.normal(0, 0.3, (self.mel.n_mels, T))
        f0 = sounds.pitch[spoken] * np.linspace(1, 1 - _DECLINATION, T)
        f0 *= generator.normal(1, 0.02, T)
        energy = sounds.energy[spoken] * generator.uniform(0.8, 1.2, T)
        return Features(
            id=id,
            speaker=self.speakers[position],
            phones=tuple(self.symbols[index] for index in chosen),
            durations=durations if self.timed else None,
            mel=np.maximum(mel, self.mel.log_floor_value).astype(np.float32),
            f0=np.where(f0 > 0, f0.clip(*self._f0_range), 0).astype(np.float32),
            energy=energy.astype(np.float32),
        )

    def read_phones(self, key: str | int) -> tuple[str, ...]:
        """The symbols of an utterance."""
        return self.read(key).phones

    def read_word_phones(self, _key: str | int) -> tuple[WordPhones, ...]:
        """None: no word is in both letters and phones."""
        return ()

    def read_prosody(self, key: str | int) -> Prosody:
        """Durations, f0 and energy of an utterance."""
        features = self.read(key)
        return Prosody(features.durations, features.f0, features.energy)

    @cached_property
    def _sounds(self) -> _Sounds:
        return _Sounds(*map(np.array, zip(*map(self._sound, self.symbols), strict=True)))

    def _sound(self, symbol: str) -> tuple[np.ndarray, bool, float, float, float]:
        """What a symbol sounds like, in the order of `_Sounds`."""
        bands = np.arange(self.mel.n_mels) / self.mel.n_mels
        if symbol in PAUSES:
            return np.full(len(bands), _SILENT_LEVEL), True, 0.4, 0.0, 1.0
        generator = np.random.default_rng(derived_seed("generated sound", symbol))
        places, heights = generator.uniform(0, 1, (3, 1)), generator.uniform(1.5, 4, (3, 1))
        formants = heights * np.exp(-(((bands - places) / 0.08) ** 2))  # (3, M)
        pitch = generator.uniform(160, 260) if generator.uniform() < _VOICED else 0.0
        length, energy = generator.uniform(0.5, 1.5), generator.uniform(10, 60)
        return _LEVEL - 2 * bands + formants.sum(axis=0), False, length, pitch, energy


def _durations(weights: np.ndarray, n_frames: int) -> np.ndarray:
    """Whole numbers of frames in proportion to weights, (N,), whose sum is `n_frames`."""
    ends = np.rint(np.cumsum(weights) / weights.sum() * n_frames).astype(np.int64)
    return np.diff(ends, prepend=0)
