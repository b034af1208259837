"""The aligner "imported": alignments as JSON, `<id>.json`: words and phones with times in seconds.

`python -m bins.import_durations` writes them from durations of other programs.
"""

from collections.abc import Iterable, Mapping
from math import inf
from pathlib import Path
from typing import Any, cast

from config.preprocess import PreprocessConfig
from preprocessors.manifest import Utterance
from processors.alignment import timed
from processors.alignment.aligner import AlignmentError
from utils.errors import InputError
from utils.files import read_json, user_path


def imported_folder(config: PreprocessConfig, dataset_root: Path) -> Path:
    """Returns the folder of imported alignments, `dataset_root` being that of the corpus."""
    return user_path(config.imported_dir) if config.imported_dir else dataset_root / "alignments"


def read_alignment(path: Path, utterance: Utterance | None = None) -> timed.Grid:
    """Reads phones and words of an imported alignment.

    Each is an object with its name, `phone` or `word`, and `start_s` and `end_s`; a phone may have
    its pitch, `f0_hz`. Raises AlignmentError if it is of another text than that of the utterance.
    """
    try:
        row = cast("Any", read_json(path))
        phones = _intervals(row["phones"], "phone")
        words = _intervals(row.get("words", []), "word")
        f0_hz = tuple(float(phone["f0_hz"]) for phone in row["phones"] if "f0_hz" in phone)
        duration_s = float(row["recording_s"]) if "recording_s" in row else None
        grid = timed.make_grid(duration_s, words, phones)
    except InputError as error:
        raise AlignmentError(f"{error}; import it again") from None
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        form = '{"phones": [{"phone": "AH0", "start_s": 0.1, "end_s": 0.2}, ...]}'
        raise AlignmentError(f"expected {form} ({error!r}); import it again") from None
    if utterance is not None:
        timed.check_text(row.get("text"), utterance)
    if wrong := [hz for hz in f0_hz if not 0 <= hz < inf]:
        raise AlignmentError(f"a pitch f0_hz of {wrong[0]:g}, expected Hz, or 0 where unvoiced")
    return grid._replace(f0_hz=f0_hz) if len(f0_hz) == len(grid.phones) else grid


def _intervals(rows: Iterable[Mapping[str, Any]], label: str) -> list[timed.Span]:
    return [(str(row[label]), float(row["start_s"]), float(row["end_s"])) for row in rows]


ALIGNER = timed.file_aligner(
    imported_folder,
    lambda folder, utterance: folder / f"{utterance.id}.json",
    read_alignment,
    "make it by python -m bins.import_durations, or correct preprocess.imported_dir",
)
