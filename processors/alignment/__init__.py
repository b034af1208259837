"""Alignment: when each phone of an utterance is spoken.

An aligner is a module here, and a value of `PreprocessConfig.aligner`. It offers

    make_aligner(config, dataset_root, folder) -> Aligner

and, if it reads a file for each utterance or trains on the corpus before it aligns,

    alignment_file(utterance, config, dataset_root) -> Path
    plan_training(config, utterances, folder) -> TrainingPlan

A module is imported when its aligner is chosen, since the packages it needs are slow to import.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np

from config.preprocess import PreprocessConfig
from preprocessors.manifest import Utterance
from processors.records import Alignment, SpokenText
from utils.errors import InputError, UtteranceError


class AlignmentError(UtteranceError):
    """An utterance that cannot be aligned; the message gives the reason, and the file if any."""


class Aligner(Protocol):
    """Finds the phones of an utterance in its recording."""

    def __call__(
        self, utterance: Utterance, wav: np.ndarray, sample_rate: int, spoken: SpokenText
    ) -> Alignment:
        """Aligns one utterance.

        Args:
            utterance: Its id, speaker and language.
            wav: (S,) float32 in [-1, 1].
            sample_rate: Of `wav`, Hz.
            spoken: Output of the text frontend for its text.

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


def make_aligner(config: PreprocessConfig, dataset_root: Path, folder: Path = Path()) -> Aligner:
    """Builds the aligner that the configuration names.

    Args:
        config: Of stage 1; uses `aligner`, the keys of aligners, `edge_silence_s` and `text`.
        dataset_root: Folder of the corpus, where alignments may be.
        folder: Its processed data, where an aligner that is trained keeps its model.

    Raises:
        InputError: If the aligner cannot work with this configuration.
    """
    if config.text.pauses != "classes":
        raise InputError(
            f"preprocess.text.pauses is {config.text.pauses}: imported voices speak with it, and "
            "stage 1 does not make it; leave it out (--init_from matches the phones by name)"
        )
    make = cast(Callable[..., Aligner], _find(config.aligner, "make_aligner"))
    return make(config, dataset_root, folder)


def alignment_file(
    utterance: Utterance, config: PreprocessConfig, dataset_root: Path
) -> Path | None:
    """The file that an utterance's alignment is read from, whether or not it exists.

    Args:
        utterance: Its id and speaker name the file.
        config: Of stage 1.
        dataset_root: Folder of the corpus.

    Returns:
        Its path; None if the aligner computes alignments.
    """
    find = _find(config.aligner, "alignment_file")
    return None if find is None else find(utterance, config, dataset_root)


def plan_training(
    config: PreprocessConfig, utterances: Sequence[Utterance], folder: Path
) -> TrainingPlan | None:
    """Plans the training of the aligner on a corpus.

    Args:
        config: Of stage 1.
        utterances: The whole dataset.
        folder: Its processed data; it need not exist.

    Returns:
        The training; None if the aligner needs none.
    """
    plan = _find(config.aligner, "plan_training")
    return None if plan is None else plan(config, utterances, folder)


@contextmanager
def naming(place: Path | str) -> Iterator[None]:
    """Adds a file, or a place in it, to the messages of alignment errors that lack it."""
    try:
        yield
    except AlignmentError as error:
        if not str(error).startswith(str(place)):
            error.args = (f"{place}: {error}",)
        raise


def _find(aligner: str, function: str) -> Callable[..., Any] | None:
    return getattr(import_module(f"{__name__}.{aligner}"), function, None)
