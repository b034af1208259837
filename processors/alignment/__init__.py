"""Alignment: where each phone of an utterance is said.

An aligner is a file here, and a name in `PreprocessConfig.aligner`. It offers two functions:

    make_aligner(config, dataset_root) -> Aligner
    alignment_file(utterance, config, dataset_root) -> Path | None

One that learns from the corpus before it aligns keeps what it has learnt in the folder of the
processed data, and has in place of the first:

    plan_training(config, utterances, folder) -> Training
    load_aligner(config, folder) -> Aligner

A file is imported when its aligner is asked for, since the packages behind it are slow to import.
"""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

import numpy as np

from config.schema import PreprocessConfig
from preprocessors.manifest import Utterance
from processors.records import Alignment, SpokenText
from utils.errors import InputError, UtteranceError


class AlignmentError(UtteranceError):
    """An utterance that cannot be aligned; the message says why, and names the file if any."""


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
            spoken: What the text frontend makes of its text.

        Raises:
            AlignmentError: If this utterance cannot be aligned.
        """


class Training(Protocol):
    """What an aligner learns from the corpus before it aligns."""

    @property
    def identity(self) -> dict[str, object]:
        """What alignments depend on beside the config's keys, for the fingerprint."""

    def carry_out(self, n_jobs: int) -> None:
        """Learns, in so many processes, unless that was done before."""


class _Module(Protocol):
    def make_aligner(self, config: PreprocessConfig, dataset_root: Path) -> Aligner: ...

    def alignment_file(
        self, utterance: Utterance, config: PreprocessConfig, dataset_root: Path
    ) -> Path | None: ...


class _Learner(Protocol):
    def plan_training(
        self, config: PreprocessConfig, utterances: Sequence[Utterance], folder: Path
    ) -> Training: ...

    def load_aligner(self, config: PreprocessConfig, folder: Path) -> Aligner: ...


def make_aligner(config: PreprocessConfig, dataset_root: Path, folder: Path = Path()) -> Aligner:
    """The aligner that the configuration names.

    Args:
        config: Stage 1; `aligner`, `textgrid_dir`, `edge_silence_s` and `text` count.
        dataset_root: The corpus, where alignments may lie.
        folder: Its processed data, where an aligner that learns finds what it has learnt.

    Raises:
        InputError: If the aligner cannot work with this configuration.
    """
    if config.text.pauses != "classes":
        raise InputError(
            f"preprocess.text.pauses is {config.text.pauses}: imported voices speak with it, and "
            "stage 1 does not make it; leave it out (--init_from matches the phones by name)"
        )
    learner = _learner(config.aligner)
    if learner is not None:
        return learner.load_aligner(config, folder)
    return _module(config.aligner).make_aligner(config, dataset_root)


def alignment_file(
    utterance: Utterance, config: PreprocessConfig, dataset_root: Path
) -> Path | None:
    """The file that an utterance's alignment is read from; None where it is computed."""
    return _module(config.aligner).alignment_file(utterance, config, dataset_root)


def plan_training(
    config: PreprocessConfig, utterances: Sequence[Utterance], folder: Path
) -> Training | None:
    """What the aligner has to learn from a corpus before it aligns; None if it does not learn.

    Args:
        config: Stage 1.
        utterances: The whole dataset.
        folder: Its processed data; it need not exist.
    """
    learner = _learner(config.aligner)
    return None if learner is None else learner.plan_training(config, utterances, folder)


def _module(name: str) -> _Module:
    return cast(_Module, import_module(f"{__name__}.{name}"))


def _learner(name: str) -> _Learner | None:
    module = _module(name)
    return cast(_Learner, module) if hasattr(module, "plan_training") else None
