"""Generated data with the lengths of LJSpeech: training and benchmarks without a corpus.

For acoustic models, each symbol has a spectrum, a length and a pitch; for vocoders, recordings are
harmonics and noise that change as in speech.
"""

from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from config.preprocess import PreprocessConfig
from modules.mel import MelConfig, MelSpectrogram
from preprocessors.manifest import Splits
from processors.audio.frames import from_pcm16, to_pcm16
from processors.dataset.store import FeatureStore, MelWavStore, Prosody
from processors.records import Features, MelWav, WordPhones
from processors.text.symbols import PAUSES
from utils.errors import InputError
from utils.seed import derived_seed

# Frames of 256 samples at 22,050 Hz and phones of 13,092 utterances of LJSpeech, shortest first:
# its audio, its MFA alignments.
_LENGTHS = Path(__file__).with_name("ljspeech_lengths.csv.gz")
_FRAME_S = 256 / 22050
_MAX_VALID = 16  # utterances: a validation takes seconds
N_LJSPEECH = 13092

_LEVEL, _SILENT_LEVEL = -6.0, -9.5  # mean log-mel of phones and of pauses
_VOICED = 0.7  # share of the symbols that are not pauses
_SKIPPED = 0.25  # share of the pauses that are not made
_DECLINATION = 0.15  # the pitch falls by this share in the course of an utterance

_SECONDS = 20.0  # of the recording of which all are parts; the longest has 10
_SOUND_S = 0.1  # mean length of a sound
_HARMONICS = 16


def ljspeech_lengths(n_utterances: int, mel: MelConfig) -> tuple[np.ndarray, np.ndarray]:
    """Returns lengths spread evenly over those of LJSpeech, from the shortest to the longest.

    Returns:
        Frames, (K,) int64, and phones, (K,) int64, at most as many as frames.
    """
    if not 2 <= n_utterances <= N_LJSPEECH:  # to train and to validate
        raise InputError(f"{n_utterances} generated utterances: expected 2 to {N_LJSPEECH}")
    table = np.loadtxt(_LENGTHS, delimiter=",", skiprows=1, dtype=np.int64)
    frames, phones = table[np.linspace(0, len(table) - 1, n_utterances).round().astype(int)].T
    scaled = np.rint(frames * _FRAME_S * mel.sample_rate / mel.hop_length).astype(np.int64)
    return np.maximum(scaled, phones), phones


def split_evenly(ids: Sequence[str]) -> Splits:
    """Splits off a fiftieth of ids in order of length, at most 16, for validation."""
    n_valid = max(1, min(_MAX_VALID, len(ids) // 50))
    edges = np.linspace(0, len(ids), n_valid + 1)
    valid = [ids[int(middle)] for middle in (edges[1:] + edges[:-1]) / 2]
    return Splits([id for id in ids if id not in set(valid)], valid, [], [])


class GeneratedStore:
    """What generated utterances have in common with a `Store`, whose attributes they have.

    `name` is that of the dataset that they replace, and of their only speaker; `folder` is a name
    for messages. Another seed gives other utterances of the same lengths, the shortest first.
    """

    def __init__(self, name: str, n_utterances: int, mel: MelConfig, *, seed: int = 0) -> None:
        self.folder = Path("generated data") / name  # for messages
        self.mel = mel
        self.ids = tuple(f"generated-{number:05d}" for number in range(n_utterances))
        self.speakers = (name,) * n_utterances
        self.frames, self.phones_count = ljspeech_lengths(n_utterances, mel)
        self.seconds = self.frames * mel.hop_length / mel.sample_rate
        self.split = split_evenly(self.ids)
        self.seed = seed

    def index_of(self, key: str | int) -> int:
        """Returns the position of an utterance that is given by its id or position."""
        return int(key.rpartition("-")[2]) if isinstance(key, str) else key

    def reading_order(self, ids: Iterable[str]) -> list[str]:
        """Returns ids, sorted: nothing is on disk."""
        return sorted(ids)


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
        config: PreprocessConfig,
        symbols: Sequence[str],
        *,
        seed: int = 0,
    ) -> None:
        super().__init__(name, n_utterances, config.mel, seed=seed)
        self.symbols = tuple(symbols)
        self.timed = config.has_aligner
        self._f0_range = config.f0_min, config.f0_max

    def read(self, key: str | int) -> Features:
        """Generates one utterance, by id or position."""
        position = self.index_of(key)
        N, T = int(self.phones_count[position]), int(self.frames[position])
        id, sounds = self.ids[position], self._sounds
        generator = np.random.default_rng(derived_seed("generated features", self.seed, id))
        chosen = generator.integers(len(self.symbols), size=N)
        lengths = sounds.lengths[chosen] * generator.lognormal(0, 0.3, N)
        skipped = sounds.is_pause[chosen] & (generator.uniform(size=N) < _SKIPPED)
        lengths[1:][skipped[1:]] = 0
        # whole numbers of frames in proportion to the lengths, whose sum is T
        ends = np.rint(np.cumsum(lengths) / lengths.sum() * T).astype(np.int64)
        durations = np.diff(ends, prepend=0)
        spoken = np.repeat(chosen, durations)  # (T,)
        mel = sounds.spectra[spoken].T + generator.normal(0, 0.3, (self.mel.n_mels, T))
        f0 = sounds.pitch[spoken] * np.linspace(1, 1 - _DECLINATION, T)
        f0 *= generator.normal(1, 0.02, T)
        energy = sounds.energy[spoken] * generator.uniform(0.8, 1.2, T)
        f0 = np.where(f0 > 0, f0.clip(*self._f0_range), 0)
        mel = np.maximum(mel, self.mel.log_floor_value)
        phones = tuple(self.symbols[index] for index in chosen)
        timed, speaker = durations if self.timed else None, self.speakers[position]
        contours = f0.astype(np.float32), energy.astype(np.float32)
        return Features(id, speaker, phones, timed, mel.astype(np.float32), *contours)

    def read_phones(self, key: str | int) -> tuple[str, ...]:
        """Returns the symbols of an utterance."""
        return self.read(key).phones

    def read_word_phones(self, _key: str | int) -> tuple[WordPhones, ...]:
        """Returns none: no word is in both letters and phones."""
        return ()

    def read_prosody(self, key: str | int) -> Prosody:
        """Returns durations, f0 and energy of an utterance."""
        features = self.read(key)
        return Prosody(features.durations, features.f0, features.energy)

    @cached_property
    def _sounds(self) -> _Sounds:
        return _Sounds(*map(np.array, zip(*map(self._sound, self.symbols), strict=True)))

    def _sound(self, symbol: str) -> tuple[np.ndarray, bool, float, float, float]:
        """Draws the sound of a symbol, in the order of `_Sounds`."""
        bands = np.arange(self.mel.n_mels) / self.mel.n_mels
        if symbol in PAUSES:
            return np.full(len(bands), _SILENT_LEVEL), True, 0.4, 0.0, 1.0
        generator = np.random.default_rng(derived_seed("generated sound", symbol))
        centres, heights = generator.uniform(0, 1, (3, 1)), generator.uniform(1.5, 4, (3, 1))
        formants = heights * np.exp(-(((bands - centres) / 0.08) ** 2))  # (3, M)
        pitch = generator.uniform(160, 260) if generator.uniform() < _VOICED else 0.0
        length, energy = generator.uniform(0.5, 1.5), generator.uniform(10, 60)
        return _LEVEL - 2 * bands + formants.sum(axis=0), False, length, pitch, energy


class GeneratedRecordings(GeneratedStore):
    """Recordings that training reads like those of a MelWavStore; nothing is on disk.

    All are parts of one sound, made once per process, with its mel; which part is a function of
    (seed, id).
    """

    def read(self, key: str | int, first: int = 0, n_frames: int | None = None) -> MelWav:
        """Generates one recording, or some frames of it, by id or position."""
        position = self.index_of(key)
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
        steps = to_pcm16(_babble(n_frames * self.mel.hop_length, self.mel.sample_rate, self.seed))
        wav = torch.from_numpy(from_pcm16(steps))[None]  # (1, S)
        return MelSpectrogram(self.mel)(wav)[0].numpy(), steps


def _babble(n_samples: int, sample_rate: int, seed: int) -> np.ndarray:
    """Generates a voice that changes pitch and harmonics ten times a second, (S,) in [-1, 1]."""
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


# what datasets read utterances from
FeatureSource = FeatureStore | GeneratedFeatures
RecordingSource = MelWavStore | GeneratedRecordings
