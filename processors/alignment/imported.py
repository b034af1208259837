"""The aligner "imported": alignments as JSON, `<id>.json`: words and phones with times in seconds.

`python -m bins.import_durations` writes them from durations of other programs.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

from config.preprocess import PreprocessConfig
from preprocessors.manifest import Utterance
from processors.alignment import AlignmentError
from processors.alignment.timed import FileAligner, Grid, Interval, check_times, make_grid
from utils.errors import InputError
from utils.files import read_json, user_path

# Keys by which projects name these members, the preferred one first
_STARTS = ("start_s", "start", "begin", "xmin")
_ENDS = ("end_s", "end", "stop", "xmax")
_LENGTHS = ("duration_s", "duration", "dur", "length")
_PHONES = ("phone", "label", "name", "text")
_WORDS = ("word", "text", "label", "name")
_SECONDS = ("recording_s", "seconds")
_PITCH = ("f0_hz",)


def make_aligner(config: PreprocessConfig, dataset_root: Path, folder: Path) -> FileAligner:
    """Builds the aligner of a dataset.

    Args:
        config: Of stage 1.
        dataset_root: Folder of the corpus, which may hold the alignments.
        folder: Not used.

    Raises:
        InputError: If nothing was imported.
    """
    imported = imported_folder(config, dataset_root)
    if not imported.is_dir():
        raise InputError(
            f"preprocess.aligner is imported, but there is no folder {imported}; make it by python"
            " -m bins.import_durations, or correct preprocess.imported_dir"
        )
    return FileAligner(partial(_file_in, imported), _read, config.edge_silence_s)


def alignment_file(utterance: Utterance, config: PreprocessConfig, dataset_root: Path) -> Path:
    """The file of an utterance, whether or not it exists.

    Args:
        utterance: Its id names the file.
        config: Of stage 1.
        dataset_root: Folder of the corpus.
    """
    return _file_in(imported_folder(config, dataset_root), utterance)


def imported_folder(config: PreprocessConfig, dataset_root: Path) -> Path:
    """The folder of a dataset's imported alignments.

    Args:
        config: Of stage 1; uses `imported_dir`.
        dataset_root: Folder of the corpus.
    """
    return user_path(config.imported_dir) if config.imported_dir else dataset_root / "alignments"


def _file_in(folder: Path, utterance: Utterance) -> Path:
    return folder / f"{utterance.id}.json"


def _read(path: Path, utterance: Utterance) -> Grid:
    try:
        row = read_json(path)
    except InputError as error:
        raise AlignmentError(f"{error}; import it again") from None
    text = row.get("text", utterance.text) if isinstance(row, dict) else utterance.text
    if text != utterance.text:
        raise AlignmentError(
            f"it is of the text {str(text)[:60]!r}, and that is now {utterance.text[:60]!r}; import"
            " it again"
        )
    grid = grid_of(row)
    check_times(grid)
    return grid


def grid_of(row: object) -> Grid:
    """Phones and words of a JSON object: `phones` and `words`, or `phones` in each of `words`.

    Each phone and word is an object with a name, a start, and an end or a length, in seconds; a
    phone may have its pitch, `f0_hz`.

    Raises:
        AlignmentError: If it has another form.
    """
    if not isinstance(row, dict):
        raise AlignmentError(f"expected an object with phones, found {str(row)[:60]!r}")
    words = _rows(row, "words")
    if isinstance(row.get("phones"), list):
        phones = [_interval(one, _PHONES) for one in _rows(row, "phones")]
        timed = [_interval(one, _WORDS) for one in words]
    else:
        phones = [_interval(one, _PHONES) for word in words for one in _rows(word, "phones")]
        timed = [*_around(words)]
    if not phones:
        raise AlignmentError(f"no phones; it has {', '.join(map(str, row)) or 'nothing'}")
    grid = make_grid(_number(row, _SECONDS), timed, phones)
    f0_hz = [_number(one, _PITCH) for one in _rows(row, "phones")]
    known = tuple(value for value in f0_hz if value is not None)
    if wrong := [value for value in known if not 0 <= value < inf]:
        raise AlignmentError(f"a pitch f0_hz of {wrong[0]:g}, expected Hz, or 0 where unvoiced")
    return grid._replace(f0_hz=known) if len(known) == len(grid.phones) else grid


def _rows(row: Mapping[str, Any], key: str) -> Sequence[Mapping[str, Any]]:
    found = row.get(key, [])
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise AlignmentError(f"`{key}` is not a list of objects")
    return found


def _around(words: Sequence[Mapping[str, Any]]) -> Iterator[Interval]:
    """Words with the times of their phones."""
    for word in words:
        phones = [_interval(one, _PHONES) for one in _rows(word, "phones")]
        if phones:
            yield Interval(_name(word, _WORDS), phones[0].start_s, phones[-1].end_s)


def _interval(row: Mapping[str, Any], names: Sequence[str]) -> Interval:
    label = _name(row, names)
    start_s, end_s = _number(row, _STARTS), _number(row, _ENDS)
    if start_s is not None and end_s is None and (length_s := _number(row, _LENGTHS)) is not None:
        end_s = start_s + length_s
    if start_s is None or end_s is None:
        raise AlignmentError(f"{label!r} has no start, or no end or duration")
    return Interval(label, start_s, end_s)


def _name(row: Mapping[str, Any], names: Sequence[str]) -> str:
    found = [row[key] for key in names if isinstance(row.get(key), str)]
    if not found:
        raise AlignmentError(f"{str(row)[:60]} has no name: expected {' or '.join(names[:2])}")
    return str(found[0])


def _number(row: Mapping[str, Any], names: Sequence[str]) -> float | None:
    found = [row[key] for key in names if isinstance(row.get(key), (int, float))]
    try:
        return float(found[0]) if found else None
    except OverflowError:  # an integer of hundreds of digits
        return inf
