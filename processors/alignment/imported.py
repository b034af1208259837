"""The aligner "imported": alignments as JSON, `<id>.json`: words and phones with times in seconds.

`python -m bins.import_durations` writes them from durations of other programs.
"""

from collections.abc import Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any

from config.preprocess import PreprocessConfig
from preprocessors.manifest import Utterance
from processors.alignment import timed
from processors.alignment.aligner import AlignmentError, naming
from utils.errors import InputError
from utils.files import read_json, user_path


def imported_folder(config: PreprocessConfig, dataset_root: Path) -> Path:
    """The folder of a dataset's imported alignments, `dataset_root` being that of the corpus."""
    return user_path(config.imported_dir) if config.imported_dir else dataset_root / "alignments"


def read_alignment(path: Path, utterance: Utterance | None = None) -> timed.Grid:
    """Reads phones and words of an imported alignment, and checks those of an utterance.

    Each is an object with its name, `phone` or `word`, and `start_s` and `end_s`; a phone may have
    its pitch, `f0_hz`.
    """
    with naming(path):
        try:
            row = read_json(path)
        except InputError as error:
            raise AlignmentError(f"{error}; import it again") from None
        if not isinstance(row, dict):
            raise AlignmentError(f"expected an object with phones, found {str(row)[:60]!r}")
        grid = _grid(row)
        if utterance is not None:
            timed.check_text(row.get("text"), utterance)
            timed.check_times(grid)
    return grid


def _grid(row: Mapping[str, Any]) -> timed.Grid:
    rows = _rows(row, "phones")
    if not rows:
        raise AlignmentError(f"no phones; it has {', '.join(map(str, row)) or 'nothing'}")
    phones = [_interval(item, "phone") for item in rows]
    words = [_interval(item, "word") for item in _rows(row, "words")]
    grid = timed.make_grid(_number(row, "recording_s"), words, phones)
    f0_hz = tuple(hz for item in rows if (hz := _number(item, "f0_hz")) is not None)
    if wrong := [hz for hz in f0_hz if not 0 <= hz < inf]:
        raise AlignmentError(f"a pitch f0_hz of {wrong[0]:g}, expected Hz, or 0 where unvoiced")
    return grid._replace(f0_hz=f0_hz) if len(f0_hz) == len(grid.phones) else grid


def _rows(row: Mapping[str, Any], key: str) -> Sequence[Mapping[str, Any]]:
    rows = row.get(key, [])
    if not isinstance(rows, list) or not all(isinstance(item, dict) for item in rows):
        raise AlignmentError(f"`{key}` is not a list of objects")
    return rows


def _interval(row: Mapping[str, Any], kind: str) -> timed.Interval:
    name, start_s, end_s = row.get(kind), _number(row, "start_s"), _number(row, "end_s")
    if not isinstance(name, str) or start_s is None or end_s is None:
        raise AlignmentError(f"{str(row)[:80]}: expected {kind}, start_s and end_s")
    return timed.Interval(name, start_s, end_s)


def _number(row: Mapping[str, Any], key: str) -> float | None:
    return float(row[key]) if isinstance(row.get(key), (int, float)) else None


ALIGNER = timed.file_aligner(
    imported_folder,
    lambda folder, utterance: folder / f"{utterance.id}.json",
    read_alignment,
    "make it by python -m bins.import_durations, or correct preprocess.imported_dir",
)
