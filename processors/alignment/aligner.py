"""What an aligner file defines: it ends with `ALIGNER = Aligner(...)`.

A file is imported when its aligner is chosen, since the packages it needs are slow to import.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from config.preprocess import PreprocessConfig
from preprocessors.manifest import Utterance
from processors.records import Alignment, SpokenText
from utils.errors import InputError, UtteranceError
from utils.records import record_of


class AlignmentError(UtteranceError):
    """An utterance that cannot be aligned; the message gives the reason, and the file if any."""

    def __init__(self, message: str, kind: str = "broken") -> None:
        super().__init__(message)
        self.kind = kind  # in the report of an import


class Align(Protocol):
    """Finds the phones of an utterance in its recording."""

    def __call__(
        self, utterance: Utterance, wav: np.ndarray, sample_rate: int, spoken: SpokenText
    ) -> Alignment:
        """Aligns one utterance.

        Args:
            wav: (S,) float32 in [-1, 1].

        Raises:
            AlignmentError: If this utterance cannot be aligned.
        """


class TrainingPlan(Protocol):
    """The training of an aligner on a corpus, which comes before the alignment."""

    @property
    def identity(self) -> dict[str, object]:
        """Dependences of alignments other than keys of the config, for the fingerprint."""

    def carry_out(self, n_jobs: int) -> None:
        """Trains in `n_jobs` processes, unless the model exists already."""


@dataclass(frozen=True, kw_only=True)
class Aligner:
    """An aligner; its folders are that of the corpus and that of the processed data."""

    # builds what aligns; raises InputError if it cannot work with this configuration
    make: Callable[[PreprocessConfig, Path, Path], Align]
    # finds the file that an utterance's alignment is read from, whether or not it exists
    files: Callable[[PreprocessConfig, Path], Callable[[Utterance], Path]] | None = None
    # plans the training on all utterances; the folder of the processed data need not exist
    plan_training: Callable[[PreprocessConfig, Sequence[Utterance], Path], TrainingPlan] | None = (
        None
    )


def find_aligner(config: PreprocessConfig) -> Aligner:
    """The aligner that the configuration names."""
    return record_of(f"processors.alignment.{config.aligner}", "ALIGNER", Aligner)


def make_aligner(config: PreprocessConfig, dataset_root: Path, folder: Path = Path()) -> Align:
    """Builds the aligner of a configuration; InputError if it cannot work with that."""
    if config.text.pauses != "classes":
        raise InputError(
            f"preprocess.text.pauses is {config.text.pauses}: imported voices speak with it, and "
            "stage 1 does not make it; leave it out (--init_from matches the phones by name)"
        )
    return find_aligner(config).make(config, dataset_root, folder)


def check_length(n_phones: int, shortest_s: float, duration_s: float) -> None:
    """Refuses a recording in which so many phones of this length have no room."""
    if n_phones * shortest_s > duration_s:
        raise AlignmentError(
            f"{duration_s:.2f} s of audio are too short for {n_phones} phones; does the recording"
            " match its text?"
        )


@contextmanager
def naming(place: Path | str) -> Iterator[None]:
    """Adds a file, or a place in it, to the messages of alignment errors that lack it."""
    try:
        yield
    except AlignmentError as error:
        if not str(error).startswith(str(place)):
            error.args = (f"{place}: {error}",)
        raise
