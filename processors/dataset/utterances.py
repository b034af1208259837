"""Features of one or several datasets as training items."""

from collections.abc import Sequence

import numpy as np
import torch
from torch.utils.data import Dataset

from processors.dataset.batch import TtsItem
from processors.dataset.sampler import Draw
from processors.dataset.store import FeatureStore
from processors.records import Features
from processors.text.symbols import Vocabulary
from utils.errors import InputError
from utils.seed import derived_seed


class FeatureDataset(Dataset[TtsItem]):
    """Utterances of feature stores, by `Draw(epoch, item)`. May be copied to worker processes.

    Args:
        stores: One per dataset.
        ids: Utterances to use, per store.
        vocabulary: Phone names to ids.
        speakers: Speaker names in the order of their ids.
        crop_phones: Give random runs of this many phones, the frames cut along; 0: whole
            utterances. The run is a function of (seed, epoch, utterance id).
        seed: Seed of the crops.

    Attributes:
        ids: Utterance ids, in the order of the items.
        lengths: Frames of each item, int64. Of crops, what is expected on average.

    Raises:
        InputError: If an utterance is not in its store, or has an unknown speaker; if crops are
            asked for where durations are not stored.
    """

    def __init__(
        self,
        stores: Sequence[FeatureStore],
        ids: Sequence[Sequence[str]],
        vocabulary: Vocabulary,
        speakers: Sequence[str],
        *,
        crop_phones: int = 0,
        seed: int = 0,
    ) -> None:
        self._stores = tuple(stores)
        if crop_phones and (untimed := [store for store in stores if not store.timed]):
            raise InputError(
                f"{untimed[0].folder} holds no durations, by which utterances are cut: set"
                " train.crop_phones to 0"
            )
        self._vocabulary = vocabulary
        self._speaker_ids = {name: index for index, name in enumerate(speakers)}
        self._crop_phones = crop_phones
        self._seed = seed
        self._places = [
            (number, store.index_of(id))
            for number, (store, chosen) in enumerate(zip(stores, ids, strict=True))
            for id in chosen
        ]
        self.ids = tuple(id for chosen in ids for id in chosen)
        self._check_speakers()
        self.lengths = np.array([self._length(*place) for place in self._places], dtype=np.int64)

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, draw: Draw) -> TtsItem:
        number, position = self._places[draw.item]
        features = self._stores[number].read(position)
        if self._crop_phones:
            features = self._crop(features, draw.epoch)
        return self._item(features)

    def store_of(self, item: int) -> FeatureStore:
        """The store that an item is in."""
        return self._stores[self._places[item][0]]

    def _item(self, features: Features) -> TtsItem:
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

    def _crop(self, features: Features, epoch: int) -> Features:
        seed = derived_seed("crop", self._seed, epoch, features.id)
        return crop(features, self._crop_phones, np.random.default_rng(seed))

    def _length(self, number: int, position: int) -> int:
        store = self._stores[number]
        frames, phones = int(store.frames[position]), int(store.phones_count[position])
        if 0 < self._crop_phones < phones:
            return -(-frames * self._crop_phones // phones)
        return frames

    def _check_speakers(self) -> None:
        for number, position in self._places:
            store = self._stores[number]
            if store.speakers[position] not in self._speaker_ids:
                raise InputError(
                    f"{store.folder}: {store.ids[position]} is spoken by "
                    f"{store.speakers[position]!r}, who is not among the speakers of this model"
                )


def crop(features: Features, n_phones: int, generator: np.random.Generator) -> Features:
    """A random run of `n_phones` phones and their frames; shorter utterances stay whole.

    A run without frames (phones of duration 0 only) is widened to the nearest phone that has some.
    """
    N, durations = len(features.phones), features.durations
    if n_phones >= N:
        return features
    if durations is None:
        raise ValueError(f"{features.id} has no durations, by which it could be cut")
    first = int(generator.integers(N - n_phones + 1))
    last = first + n_phones
    edges = np.concatenate([[0], np.cumsum(durations)])  # (N + 1,)
    while edges[first] == edges[last]:
        first, last = max(0, first - 1), min(N, last + 1)
    frames = slice(int(edges[first]), int(edges[last]))
    return Features(
        id=features.id,
        speaker=features.speaker,
        phones=features.phones[first:last],
        durations=durations[first:last],
        mel=np.ascontiguousarray(features.mel[:, frames]),
        f0=features.f0[frames].copy(),
        energy=features.energy[frames].copy(),
    )
