"""Alignments that `python -m bins.import_durations` made of durations from elsewhere.

A file an utterance, `<id>.json`: words and phones with times in seconds. The alignments that other
commands export as JSON are of the same form.
"""

from pathlib import Path

import numpy as np

from config.schema import PreprocessConfig
from preprocessors.manifest import Utterance
from processors.alignment import AlignmentError
from processors.alignment.timed import align_grid, check_times
from processors.records import Alignment, SpokenText
from utils.errors import InputError
from utils.files import read_json, user_path


def make_aligner(config: PreprocessConfig, dataset_root: Path) -> "ImportedAligner":
    """The aligner of a dataset.

    Raises:
        InputError: If nothing was imported.
    """
    folder = imported_folder(config, dataset_root)
    if not folder.is_dir():
        raise InputError(
            f"preprocess.aligner is imported, but there is no folder {folder}; make it by python -m"
            " bins.import_durations, or correct preprocess.imported_dir"
        )
    return ImportedAligner(folder, config.edge_silence_s)


def alignment_file(utterance: Utterance, config: PreprocessConfig, dataset_root: Path) -> Path:
    """The file of an utterance, whether or not it exists."""
    return imported_folder(config, dataset_root) / f"{utterance.id}.json"


def imported_folder(config: PreprocessConfig, dataset_root: Path) -> Path:
    """Where the imported alignments of a dataset are."""
    if config.imported_dir:
        return user_path(config.imported_dir)
    return dataset_root / "alignments"


class ImportedAligner:
    """Reads alignments from a folder.

    Args:
        folder: Holds `<id>.json`.
        edge_silence_s: Silence kept at both ends of alignments that do not say it themselves.
    """

    def __init__(self, folder: Path, edge_silence_s: float) -> None:
        self.folder = folder
        self.edge_silence_s = edge_silence_s

    def __call__(
        self, utterance: Utterance, wav: np.ndarray, sample_rate: int, spoken: SpokenText
    ) -> Alignment:
        """Reads the alignment of one utterance.

        Args:
            utterance: Its id names the file.
            wav: (S,); only its length counts.
            sample_rate: Of `wav`, Hz.
            spoken: Words and punctuation.

        Raises:
            AlignmentError: If the file is missing or broken, is of another text or recording, or
                its times do not run forwards.
        """
        # imported where it is used: the readers of all formats build on the aligners
        from processors.alignment.json_objects import grid_of

        path = self.folder / f"{utterance.id}.json"
        try:
            row = read_json(path)
        except InputError as error:
            raise AlignmentError(f"{error}; import it again") from None
        try:
            _check_text(row, utterance)
            grid = grid_of(row)
            check_times(grid)
            return align_grid(grid, spoken, len(wav) / sample_rate, self.edge_silence_s)
        except AlignmentError as error:
            raise AlignmentError(f"{path}: {error}") from None


def _check_text(row: object, utterance: Utterance) -> None:
    text = row.get("text", utterance.text) if isinstance(row, dict) else utterance.text
    if text != utterance.text:
        raise AlignmentError(
            f"it is of the text {str(text)[:60]!r}, and that is now {utterance.text[:60]!r}; import"
            " it again"
        )
