"""Recordings of one or several datasets as training items of vocoders."""

from collections.abc import Sequence

import numpy as np
import torch
from torch.nn import functional as F
from torch.utils.data import Dataset

from processors.audio.pcm import from_pcm16
from processors.dataset.batch import VocoderItem
from processors.dataset.sampler import Draw
from processors.dataset.store import RecordingStore
from processors.records import Recording
from utils.seed import derived_seed


class SegmentDataset(Dataset[VocoderItem]):
    """Random segments of recordings, by `Draw(epoch, item)`; all are of the same length.

    A segment is a function of (seed, epoch, utterance id, its number). Shorter recordings are
    followed by silence: the wav by 0, the mel by the log floor. May be copied to worker processes.

    Args:
        stores: One per dataset.
        ids: Utterances to use, per store.
        n_frames: Length of a segment.
        log_floor: Log-mel of silence.
        seed: Seed of the segments.
        per_second: Segments of an epoch for each second of a recording, per store; 0: one of each
            recording, however long.

    Attributes:
        ids: Utterance ids, in the order of the items.
        lengths: Frames of each item, int64.

    Raises:
        InputError: If an utterance is not in its store.
    """

    def __init__(
        self,
        stores: Sequence[RecordingStore],
        ids: Sequence[Sequence[str]],
        *,
        n_frames: int,
        log_floor: float,
        seed: int = 0,
        per_second: Sequence[float] = (),
    ) -> None:
        self._stores = tuple(stores)
        places = _places(stores, ids)
        counts = [
            _n_segments(stores[n], at, per_second[n] if per_second else 0) for n, at in places
        ]
        self._places = [
            (*place, number)
            for place, count in zip(places, counts, strict=True)
            for number in range(count)
        ]
        self._n_frames = n_frames
        self._log_floor = log_floor
        self._seed = seed
        self.ids = tuple(stores[store].ids[position] for store, position, _ in self._places)
        self.lengths = np.full(len(self.ids), n_frames, dtype=np.int64)

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, draw: Draw) -> VocoderItem:
        number, position, segment = self._places[draw.item]
        store = self._stores[number]
        surplus = int(store.frames[position]) - self._n_frames
        first = 0
        if surplus > 0:
            seed = derived_seed("segment", self._seed, draw.epoch, self.ids[draw.item], segment)
            first = int(np.random.default_rng(seed).integers(surplus + 1))
        item = _item(store.read(position, first, self._n_frames))
        if surplus >= 0:
            return item
        hop = store.mel.hop_length
        mel = F.pad(item.mel, (0, -surplus), value=self._log_floor)
        return VocoderItem(item.id, mel, F.pad(item.wav, (0, -surplus * hop)))


def _n_segments(store: RecordingStore, position: int, per_second: float) -> int:
    return max(1, round(per_second * float(store.seconds[position])))


class RecordingDataset(Dataset[VocoderItem]):
    """Recordings from their beginning, for validation; the epoch of a Draw makes no difference.

    Args:
        stores: One per dataset.
        ids: Utterances to use, per store.
        longest_s: What comes later in a recording is left out, seconds.

    Attributes:
        ids: Utterance ids, in the order of the items.
        lengths: Frames of each item, int64.

    Raises:
        InputError: If an utterance is not in its store.
    """

    def __init__(
        self, stores: Sequence[RecordingStore], ids: Sequence[Sequence[str]], *, longest_s: float
    ) -> None:
        self._stores = tuple(stores)
        self._places = _places(stores, ids)
        self.ids = tuple(id for chosen in ids for id in chosen)
        self.lengths = np.array(
            [
                min(stores[number].frames[position], _frames(stores[number], longest_s))
                for number, position in self._places
            ],
            dtype=np.int64,
        )

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, draw: Draw) -> VocoderItem:
        number, position = self._places[draw.item]
        return _item(self._stores[number].read(position, 0, int(self.lengths[draw.item])))

    def store_of(self, item: int) -> RecordingStore:
        """The store that an item is in."""
        return self._stores[self._places[item][0]]


def _places(
    stores: Sequence[RecordingStore], ids: Sequence[Sequence[str]]
) -> list[tuple[int, int]]:
    """Store and position of each utterance."""
    return [
        (number, store.index_of(id))
        for number, (store, chosen) in enumerate(zip(stores, ids, strict=True))
        for id in chosen
    ]


def _frames(store: RecordingStore, seconds: float) -> int:
    return round(seconds * store.mel.sample_rate / store.mel.hop_length)


def _item(recording: Recording) -> VocoderItem:
    return VocoderItem(
        id=recording.id,
        mel=torch.from_numpy(recording.mel),
        wav=torch.from_numpy(from_pcm16(recording.wav)),
    )
