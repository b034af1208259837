"""Names, lengths and split of generated utterances."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from modules.mel import MelConfig
from preprocessors.manifest import Splits
from utils.errors import InputError

# Frames of 256 samples at 22,050 Hz and phones of 13,092 utterances of LJSpeech, shortest first:
# its audio, its MFA alignments.
_LENGTHS = Path(__file__).with_name("ljspeech_lengths.csv.gz")
_FRAME_S = 256 / 22050
_MOST_VALID = 16  # utterances: a validation takes seconds
N_LJSPEECH = 13092


class Lengths(NamedTuple):
    """Lengths of some utterances."""

    frames: np.ndarray  # (K,) int64
    phones: np.ndarray  # (K,) int64, at most `frames`


def ljspeech_lengths(n_utterances: int, mel: MelConfig) -> Lengths:
    """Lengths spread evenly over those of LJSpeech, from the shortest to the longest."""
    if not 1 <= n_utterances <= N_LJSPEECH:
        raise InputError(f"{n_utterances} generated utterances: expected 1 to {N_LJSPEECH}")
    table = np.loadtxt(_LENGTHS, delimiter=",", skiprows=1, dtype=np.int64)
    frames, phones = table[np.linspace(0, len(table) - 1, n_utterances).round().astype(int)].T
    scaled = np.rint(frames * _FRAME_S * mel.sample_rate / mel.hop_length).astype(np.int64)
    return Lengths(np.maximum(scaled, phones), phones)


def split_evenly(ids: Sequence[str]) -> Splits:
    """A fiftieth of ids in order of length, and at most 16, for validation; none for testing."""
    if len(ids) < 2:
        raise InputError(f"{len(ids)} generated utterances: expected 2, to train and to validate")
    n_valid = max(1, min(_MOST_VALID, len(ids) // 50))
    edges = np.linspace(0, len(ids), n_valid + 1)
    valid = [ids[int(middle)] for middle in (edges[1:] + edges[:-1]) / 2]
    return Splits([id for id in ids if id not in set(valid)], valid, [], [])


class GeneratedStore:
    """What generated utterances have in common with a `Store`, whose attributes they have.

    `name` is that of the dataset that they replace, and of their only speaker; `folder` is a name
    for messages. Another seed gives other utterances of the same lengths, the shortest first.
    """

    def __init__(self, name: str, n_utterances: int, mel: MelConfig, *, seed: int) -> None:
        self.folder = Path("generated data") / name
        self.mel = mel
        self.ids = tuple(f"generated-{number:05d}" for number in range(n_utterances))
        self.speakers = (name,) * n_utterances
        self.frames, self.phones_count = ljspeech_lengths(n_utterances, mel)
        self.seconds = self.frames * mel.hop_length / mel.sample_rate
        self.split = split_evenly(self.ids)
        self.seed = seed

    def index_of(self, id: str) -> int:
        """Position of an utterance."""
        return int(id.rpartition("-")[2])

    def reading_order(self, ids: Iterable[str]) -> list[str]:
        """Ids, sorted: nothing is on disk."""
        return sorted(ids)
