"""Datasets over stores, for training: utterances, crops, recordings and segments."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np
import torch
from torch.nn import functional as F
from torch.utils.data import Dataset

from processors.audio.frames import from_pcm16
from processors.dataset.batch import TtsItem, VocoderItem
from processors.dataset.generated import FeatureSource, RecordingSource
from processors.dataset.sampler import Draw
from processors.records import Features, MelWav
from processors.text import letters
from processors.text.voice_phones import Vocabulary
from utils.errors import InputError
from utils.seed import derived_seed

S = TypeVar("S", FeatureSource, RecordingSource)


class FeatureDataset(Dataset[TtsItem]):
    """Utterances of feature stores, by `Draw(epoch, item)`. May be copied to worker processes.

    Speaker names are in the order of their ids. With `crop_phones` items are random runs of so many
    phones with their frames, a function of (seed, epoch, utterance id). Words that have letters and
    phones have phones with the probability `p_arpabet`, by (seed, epoch, utterance id, index of
    the word).
    """

    def __init__(
        self,
        stores: Sequence[FeatureSource],
        ids: Sequence[Sequence[str]],
        vocabulary: Vocabulary,
        speakers: Sequence[str],
        *,
        crop_phones: int = 0,
        p_arpabet: float = 0.0,
        seed: int = 0,
    ) -> None:
        if crop_phones and (untimed := [store for store in stores if not store.timed]):
            fault = f"{untimed[0].folder} holds no durations, which crops need"
            raise InputError(f"{fault}: set train.crop_phones to 0")
        self._vocabulary = vocabulary
        self._speaker_ids = {name: index for index, name in enumerate(speakers)}
        self._crop_phones = crop_phones
        self._p_arpabet = p_arpabet
        self._seed = seed
        self._places = _places(stores, ids)
        self.ids = tuple(id for chosen in ids for id in chosen)
        self.lengths = np.zeros(len(self._places), dtype=np.int64)
        for item, (store, position) in enumerate(self._places):
            if (speaker := store.speakers[position]) not in self._speaker_ids:
                spoken = f"{store.ids[position]}, {speaker!r}"
                fault = f"the speaker of {spoken}, is not among the speakers of this model"
                raise InputError(f"{store.folder}: {fault}")
            frames, phones = int(store.frames[position]), int(store.phones_count[position])
            is_cropped = 0 < crop_phones < phones
            self.lengths[item] = -(-frames * crop_phones // phones) if is_cropped else frames

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, draw: Draw) -> TtsItem:
        features = self.features(draw)
        try:
            phone_ids = self._vocabulary.ids(features.phones)
        except InputError as error:
            raise InputError(f"{features.id}: {error}") from error
        durations = features.durations
        return TtsItem(
            id=features.id,
            phone_ids=torch.tensor(phone_ids, dtype=torch.int64),
            speaker_id=self._speaker_ids[features.speaker],
            durations=None if durations is None else torch.from_numpy(durations),
            mel=torch.from_numpy(features.mel),
            f0=torch.from_numpy(features.f0),
            energy=torch.from_numpy(features.energy),
        )

    def features(self, draw: Draw) -> Features:
        """Reads the features of an item, with its words in letters or phones."""
        store, position = self._places[draw.item]
        features = store.read(position)
        if words := features.word_phones:
            chosen = letters.draw(words, self._p_arpabet, self._seed, draw.epoch, features.id)
            phones = letters.substitute(features.phones, chosen)
            features = replace(features, phones=phones, word_phones=())
        if self._crop_phones:
            seed = derived_seed("crop", self._seed, draw.epoch, features.id)
            features = crop(features, self._crop_phones, np.random.default_rng(seed))
        return features

    def phone_counts(self) -> np.ndarray:
        """Counts the most phones of each item, however its words are drawn; of whole utterances."""
        counts = np.array([store.phones_count[position] for store, position in self._places])
        for item, (store, position) in enumerate(self._places):
            if words := store.read_word_phones(position):
                counts[item] = letters.longest(store.read_phones(position), words)
        return counts.astype(np.int64)

    def store_of(self, item: int) -> FeatureSource:
        """Returns the store that an item is in."""
        return self._places[item][0]


def crop(features: Features, n_phones: int, generator: np.random.Generator) -> Features:
    """Returns a random run of `n_phones` phones and their frames; shorter utterances stay whole.

    A run without frames (phones of duration 0 only) is widened to the nearest phone that has some.
    """
    N, durations = len(features.phones), features.durations
    if n_phones >= N:
        return features
    if durations is None:
        raise ValueError(f"{features.id} has no durations, which a crop needs")
    first = int(generator.integers(N - n_phones + 1))
    last = first + n_phones
    edges = np.concatenate([[0], np.cumsum(durations)])  # (N + 1,)
    while edges[first] == edges[last]:
        first, last = max(0, first - 1), min(N, last + 1)
    frames = slice(int(edges[first]), int(edges[last]))
    return replace(
        features,
        phones=features.phones[first:last],
        durations=durations[first:last],
        mel=np.ascontiguousarray(features.mel[:, frames]),
        f0=features.f0[frames].copy(),
        energy=features.energy[frames].copy(),
        start=0,
    )


class SegmentDataset(Dataset[VocoderItem]):
    """Random segments of recordings, by `Draw(epoch, item)`; all are of the same length.

    A segment is a function of (seed, epoch, utterance id, its number). Shorter recordings are
    followed by silence: the wav by 0, the mel by the log floor. May be copied to worker processes.

    An epoch has `per_second` segments for each second of a recording, per store; 0: one of each
    recording, however long.
    """

    def __init__(
        self,
        stores: Sequence[RecordingSource],
        ids: Sequence[Sequence[str]],
        *,
        n_frames: int,
        log_floor: float,
        seed: int = 0,
        per_second: Sequence[float] = (),
    ) -> None:
        self._places: list[tuple[RecordingSource, int, int]] = []  # and number of the segment
        rates = dict(zip(stores, per_second or [0] * len(stores), strict=True))
        for store, position in _places(stores, ids):
            n_segments = max(1, round(rates[store] * float(store.seconds[position])))
            self._places += [(store, position, number) for number in range(n_segments)]
        self._n_frames = n_frames
        self._log_floor = log_floor
        self._seed = seed
        self.ids = tuple(store.ids[position] for store, position, _ in self._places)
        self.lengths = np.full(len(self.ids), n_frames, dtype=np.int64)

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, draw: Draw) -> VocoderItem:
        store, position, segment = self._places[draw.item]
        surplus = int(store.frames[position]) - self._n_frames
        seed = derived_seed("segment", self._seed, draw.epoch, self.ids[draw.item], segment)
        first = int(np.random.default_rng(seed).integers(max(surplus, 0) + 1))
        item = _item(store.read(position, first, self._n_frames))
        missing = max(-surplus, 0)
        mel = F.pad(item.mel, (0, missing), value=self._log_floor)
        return VocoderItem(item.id, mel, F.pad(item.wav, (0, missing * store.mel.hop_length)))


class MelWavDataset(Dataset[VocoderItem]):
    """Up to `longest_s` from the beginning of recordings, for validation, in any epoch."""

    def __init__(
        self, stores: Sequence[RecordingSource], ids: Sequence[Sequence[str]], *, longest_s: float
    ) -> None:
        self._places = _places(stores, ids)
        self.ids = tuple(id for chosen in ids for id in chosen)
        most = {s: round(longest_s * s.mel.sample_rate / s.mel.hop_length) for s in stores}
        lengths = [min(store.frames[position], most[store]) for store, position in self._places]
        self.lengths = np.array(lengths, dtype=np.int64)

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, draw: Draw) -> VocoderItem:
        store, position = self._places[draw.item]
        return _item(store.read(position, 0, int(self.lengths[draw.item])))

    def store_of(self, item: int) -> RecordingSource:
        """Returns the store that an item is in."""
        return self._places[item][0]


def _places(stores: Sequence[S], ids: Sequence[Sequence[str]]) -> list[tuple[S, int]]:
    """Returns the store and position of each utterance."""
    pairs = zip(stores, ids, strict=True)
    return [(store, store.index_of(id)) for store, chosen in pairs for id in chosen]


def _item(recording: MelWav) -> VocoderItem:
    mel, wav = torch.from_numpy(recording.mel), torch.from_numpy(from_pcm16(recording.wav))
    return VocoderItem(recording.id, mel, wav)
