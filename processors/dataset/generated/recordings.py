"""Generated recordings for vocoders: harmonics and noise that change as in speech."""

from functools import cached_property

import numpy as np
import torch

from modules.mel import MelConfig, MelSpectrogram
from processors.audio.pcm import from_pcm16, to_pcm16
from processors.dataset.generated.utterances import GeneratedStore
from processors.records import MelWav
from utils.seed import derived_seed

_SECONDS = 20.0  # of the recording of which all are parts; the longest has 10
_SOUND_S = 0.1  # mean length of a sound
_HARMONICS = 16


class GeneratedRecordings(GeneratedStore):
    """Recordings that training reads like those of a MelWavStore; nothing is on disk.

    All are parts of one sound, made once per process, with its mel; which part is a function of
    (seed, id).
    """

    def __init__(self, name: str, n_utterances: int, mel: MelConfig, *, seed: int = 0) -> None:
        super().__init__(name, n_utterances, mel, seed=seed)

    def read(self, key: str | int, first: int = 0, n_frames: int | None = None) -> MelWav:
        """Generates one recording, or some frames of it, by id or position."""
        position = self.index_of(key) if isinstance(key, str) else key
        id, T, hop = self.ids[position], int(self.frames[position]), self.mel.hop_length
        last = T if n_frames is None else min(T, first + n_frames)
        mel, wav = self._sound
        offset = derived_seed("generated recording", self.seed, id) % (mel.shape[1] - T + 1)
        start, end = offset + first, offset + last
        part = np.ascontiguousarray(mel[:, start:end])
        return MelWav(id, self.speakers[position], part, wav[start * hop : end * hop], first * hop)

    @cached_property
    def _sound(self) -> tuple[np.ndarray, np.ndarray]:
        """Mel (M, T) and wav (T * hop_length,) int16 of which all recordings are parts."""
        n_frames = int(_SECONDS * self.mel.sample_rate / self.mel.hop_length)
        wav = _babble(n_frames * self.mel.hop_length, self.mel.sample_rate, self.seed)
        steps = to_pcm16(wav)
        heard = torch.from_numpy(from_pcm16(steps))[None]  # (1, S)
        return MelSpectrogram(self.mel)(heard)[0].numpy(), steps


def _babble(n_samples: int, sample_rate: int, seed: int) -> np.ndarray:
    """A voice that changes pitch, harmonics and noise ten times a second, (S,) in [-1, 1]."""
    generator = np.random.default_rng(derived_seed("generated voice", seed))
    most = 10 + int(2 * n_samples / sample_rate / _SOUND_S)  # sounds, twice as many as needed
    ends = np.cumsum(generator.gamma(4, _SOUND_S / 4 * sample_rate, most))
    sound = np.searchsorted(ends, np.arange(n_samples))  # (S,), number of the sound
    n_sounds = int(sound[-1]) + 1
    f0 = generator.uniform(120, 260, n_sounds)
    loudness = generator.dirichlet(np.full(_HARMONICS, 0.5), n_sounds)  # (sounds, harmonics)
    voiced = generator.uniform(size=n_sounds) < 0.75
    phase = 2 * np.pi * np.cumsum(f0[sound]) / sample_rate  # (S,)
    wav = np.where(voiced, 0.01, 0.1)[sound] * generator.standard_normal(n_samples)
    for number in range(_HARMONICS):
        wav += 0.4 * (voiced * loudness[:, number])[sound] * np.sin((number + 1) * phase)
    return wav.clip(-1, 1)
