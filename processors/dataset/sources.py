"""What datasets read utterances from: a store of stage 1, or generated data."""

from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

import numpy as np

from modules.mel import MelConfig
from processors.dataset.store import Prosody
from processors.records import Features, MelWav, WordPhones


class Source(Protocol):
    """Utterances by id or position; the attributes are those of `Store`."""

    folder: Path
    mel: MelConfig
    ids: tuple[str, ...]
    speakers: tuple[str, ...]
    frames: np.ndarray
    seconds: np.ndarray

    def index_of(self, id: str) -> int:
        """Position of an utterance."""

    def reading_order(self, ids: Iterable[str]) -> list[str]:
        """The order in which utterances are read fastest; a function of their ids alone."""


class FeatureSource(Source, Protocol):
    """A `FeatureStore`, or `GeneratedFeatures`."""

    phones_count: np.ndarray
    timed: bool

    def read(self, key: str | int) -> Features:
        """Returns one utterance, by id or position."""

    def read_phones(self, key: str | int) -> tuple[str, ...]:
        """Returns the phone names of an utterance alone."""

    def read_word_phones(self, key: str | int) -> tuple[WordPhones, ...]:
        """Returns the phones of words that are in letters."""

    def read_prosody(self, key: str | int) -> Prosody:
        """Returns durations, f0 and energy alone."""


class RecordingSource(Source, Protocol):
    """A `MelWavStore`, or `GeneratedRecordings`."""

    def read(self, key: str | int, first: int = 0, n_frames: int | None = None) -> MelWav:
        """Returns one recording, or `n_frames` frames of it from `first` on, by id or position."""
