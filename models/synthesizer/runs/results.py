"""Stage 3: synthesises items one by one into a folder of sound files and `metadata.jsonl`."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

import numpy as np

from models.base.registry import load_config
from models.base.results import COMPARISON, METADATA, PAGE, SCORES, SINGLE, UTTERANCES
from models.checkpoint.folders import step_folder
from models.checkpoint.history import HISTORY, History
from models.checkpoint.loading import CHECKPOINTS
from models.synthesizer.settings import RECORDED, Settings
from preprocessors.manifest import MANIFEST, Utterance, read_split
from processors.durations.writing import WRITERS, AlignedSpeech
from processors.records import TimedMark, TimedPhone, TimedSentence, TimedWord, timed_phones
from utils.errors import InputError, counted, refuse
from utils.files import append_jsonl, read_jsonl, user_path, write_jsonl
from utils.locks import locked
from utils.logging import get_logger, progress

TestingSet = Literal["train", "test", "golden_test"]
_TIMED: dict[str, tuple[type[Any], tuple[str, ...]]] = {  # the keys of timed records in the file
    "words": (TimedWord, ("word", "start_s", "end_s")),
    "phones": (TimedPhone, ("phone", "start_s", "duration_s")),
    "sentences": (TimedSentence, ("sentence", "start_s", "end_s")),
    "marks": (TimedMark, ("mark", "time_s")),
}


@dataclass(frozen=True)
class TextLine:
    """The line of `metadata.jsonl` about a synthesised text; times are in seconds."""

    id: str
    file: str  # name of the sound file, next to metadata.jsonl
    text: str  # as given; of SSML, without its tags
    normalized: str
    speaker: str
    dataset: str  # of a recorded sentence; empty for the user's own text
    vocoder: str
    seconds: float
    real_time_factor: float  # seconds of work per second of speech
    words: tuple[TimedWord, ...]
    phones: tuple[TimedPhone, ...]
    out_of_vocabulary: list[str]
    hop_length: int = 0  # samples of a frame, of which durations are multiples; 0: not known
    sample_rate: int = 0  # Hz
    fingerprint: str = ""  # of all that the sound depends on; empty: not known
    n_bytes: int = 0  # size of the file; 0: not known
    # `Settings.record()`; in the file, its values are next to the others
    settings: dict[str, Any] = field(default_factory=dict)
    pitch_file: str = ""  # of given pitch, as in the table of texts; empty: predicted
    # of models with attention, for the worst of its sentences: focus, 0 to 1; the longest run of
    # phones that were skipped, and repeated; whether the model ended the speech
    attention: dict[str, float | bool] = field(default_factory=dict)
    sentences: tuple[TimedSentence, ...] = ()  # empty: not recorded
    marks: tuple[TimedMark, ...] = ()  # of SSML
    ssml: str = ""  # the document; empty: plain text


@dataclass(frozen=True)
class CopyLine:
    """The line of `metadata.jsonl` about one mel that a vocoder synthesised."""

    id: str
    file: str  # name of the sound file, next to metadata.jsonl
    dataset: str  # of a recording; empty for the user's own file
    mel_source: str  # the folder of stage 1, or the file, that the mel comes from
    vocoder: str
    seconds: float
    real_time_factor: float  # seconds of work per second of speech
    mel_l1: float | None  # distance to the mel of the recording; None where there is none
    fingerprint: str = ""  # of all that the sound depends on; empty: not known
    n_bytes: int = 0  # size of the file; 0: not known


L = TypeVar("L", TextLine, CopyLine)


class ResultFolder(Generic[L]):
    """A folder of sound files. Runs into the same folder add to it.

    A line is appended to `metadata.jsonl` as soon as its file is written: a run that is killed at
    any moment loses at most the utterance that it was working on. Files whose names are numbers
    are announced before, so that the next run finds the number.
    """

    def __init__(self, folder: Path, kind: type[L]) -> None:
        self.folder = folder
        self._kind: type[L] = kind
        self.lines: dict[str, L] = {line.id: line for line in read_lines(folder, kind)}  # by id
        self._added: dict[str, L] = {}

    def check_dataset(self, dataset: str, ids: Iterable[str]) -> None:
        """Makes sure that no file of another dataset would be overwritten."""
        for id in ids:
            line = self.lines.get(id)
            if line is not None and line.dataset != dataset:
                raise InputError(
                    f"{self.folder / line.file} is of the dataset {line.dataset!r}; the {id} of "
                    f"{dataset!r} would overwrite it: choose another --infer_output_dir"
                )

    def holds(self, id: str, fingerprint: str) -> bool:
        """Returns whether the file of an utterance is whole and was made from the same inputs."""
        line = self.lines.get(id)
        if line is None or not fingerprint or line.fingerprint != fingerprint:
            return False
        return (self.folder / line.file).stat().st_size == line.n_bytes

    def begin(self, ids: Collection[str]) -> None:
        """Makes the folder; removes scores and fingerprints of files that are about to be replaced.

        Without a fingerprint, a file counts as unfinished until its new line is added.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        for id in self.lines.keys() & set(ids):
            self.lines[id] = replace(self.lines[id], fingerprint="")
        if (self.folder / METADATA).exists():
            self._write(self.lines)
        for name in (SCORES, UTTERANCES, PAGE):
            (self.folder / name).unlink(missing_ok=True)
        for name in (f"{COMPARISON}.json", PAGE):
            (self.folder / COMPARISON / name).unlink(missing_ok=True)

    def announce(self, line: L) -> None:
        """Appends the line about a new file that is about to be written, as unfinished."""
        if line.id not in self.lines:
            self.folder.mkdir(parents=True, exist_ok=True)
            append_jsonl(self.folder / METADATA, row_of(replace(line, fingerprint="")))

    def add(self, line: L) -> None:
        """Appends the line about a file that was written."""
        n_bytes = (self.folder / line.file).stat().st_size
        self.lines[line.id] = self._added[line.id] = replace(line, n_bytes=n_bytes)
        append_jsonl(self.folder / METADATA, row_of(self.lines[line.id]))

    def save(self) -> None:
        """Sorts `metadata.jsonl` by id; keeps lines that another run has added."""
        on_disk = {line.id: line for line in read_lines(self.folder, self._kind)}
        self._write(on_disk | self._added)

    def _write(self, lines: dict[str, L]) -> None:
        write_jsonl(self.folder / METADATA, (row_of(lines[id]) for id in sorted(lines)))


def read_lines(folder: Path, kind: type[L]) -> list[L]:
    """Reads the lines of a folder's `metadata.jsonl` whose sound files exist, sorted by id."""
    path = folder / METADATA
    if not path.exists():
        return []
    try:
        lines = [parse_line(row, kind) for row in read_rows(folder)]
    except (InputError, TypeError) as error:
        raise InputError(
            f"{path} was not written by stage 3 ({error}); move it away and run stage 3 again, or"
            " choose another --infer_output_dir"
        ) from error
    return [line for line in lines if (folder / line.file).exists()]


def parse_line(row: dict[str, Any], kind: type[L]) -> L:
    """Builds a line from its values in `metadata.jsonl`; a TypeError names the id and the fault."""
    try:
        return kind(**(_values_of_text(row) if kind is TextLine else row))
    except LookupError as error:
        raise TypeError(f"{row['id']} lacks {error}") from error
    except TypeError as error:
        raise TypeError(f"{row['id']}: {error}") from error


def _values_of_text(row: dict[str, Any]) -> dict[str, Any]:
    values = {name: value for name, value in row.items() if name not in RECORDED}
    settings = {name: row[name] for name in RECORDED if name in row}
    values["settings"] = Settings().record() | settings
    for key, (kind, (text, *times)) in _TIMED.items():
        records = [(item[text], *(_number(item, name) for name in times)) for item in row[key]]
        if kind is TimedPhone:
            records = [(name, start, start + seconds) for name, start, seconds in records]
        values[key] = tuple(kind(*record) for record in records)
    values |= {name: _number(row, name) for name in ("hop_length", "sample_rate")}
    return values


def _number(row: dict[str, Any], name: str) -> float:
    if not isinstance(row[name], int | float):
        raise TypeError(f"{name} is {row[name]!r}, expected a number")
    return row[name]


def row_of(line: L) -> dict[str, Any]:
    """Returns the values of a line in `metadata.jsonl`, times in steps of 0.1 ms."""
    row = dict(vars(line))
    if isinstance(line, TextLine):
        row["phones"] = [(name, start, end - start) for name, start, end in line.phones]
        for key, (_, names) in _TIMED.items():
            rounded = ((text, *(round(time_s, 4) for time_s in times)) for text, *times in row[key])
            row[key] = [dict(zip(names, record, strict=True)) for record in rounded]
    return row | row.pop("settings", {})


def read_rows(folder: Path) -> list[dict[str, Any]]:
    """Reads the lines of a folder's `metadata.jsonl` as plain values, sorted by id.

    Stage 3 may be running or killed: of several lines about a file the last one counts; a last line
    that is not whole, and one about a file that was announced and not written, are left out. A line
    that is no object with an id is a TypeError.
    """
    rows: dict[str, dict[str, Any]] = {}
    for row in read_jsonl(folder / METADATA, unfinished_end=True):
        if not isinstance(row, dict) or not isinstance(row.get("id"), str):
            raise TypeError(f"{str(row)[:80]} has no id")
        rows[row["id"]] = row
    return [
        row
        for _, row in sorted(rows.items())
        if row.get("n_bytes") != 0 or (folder / str(row.get("file"))).exists()
    ]


def export_speech(folder: Path, format: str, output: Path | None) -> int:
    """Writes the alignments of the speech that stage 3 wrote into a folder."""
    if not (folder / METADATA).is_file() and (folder / SINGLE / METADATA).is_file():
        folder = folder / SINGLE
    n_written = write_alignments(folder, output or folder, format)
    if n_written == 0:
        raise InputError(f"{folder / METADATA} lists no speech; run stage 3, or correct the folder")
    return n_written


def write_alignments(folder: Path, output: Path, format: str) -> int:
    """Writes the alignments of all texts in a folder; returns their number, which may be 0."""
    lines = read_lines(folder, TextLine)
    if lines:
        output.mkdir(parents=True, exist_ok=True)
        WRITERS[format](output, map(_aligned, lines))
    return len(lines)


def _aligned(line: TextLine) -> AlignedSpeech:
    frame_s = line.hop_length / line.sample_rate
    # times are rounded in the file; frames are not
    edges = np.array([*(phone.start_s for phone in line.phones), line.phones[-1].end_s]) / frame_s
    frames = np.diff(np.round(edges).astype(np.int64))  # (N,)
    return AlignedSpeech(
        id=line.id,
        text=line.text,
        seconds=int(frames.sum()) * frame_s,
        phones=timed_phones([phone.name for phone in line.phones], frames, frame_s),
        words=line.words,
        sentences=line.sentences,
        frames=frames,
        hop_length=line.hop_length,
        sample_rate=line.sample_rate,
        marks=line.marks,
    )


def default_output(reference: str | Path, folder: Path) -> Path:
    """Returns `result` in the folder of a local experiment."""
    if not user_path(reference).exists():
        raise InputError(
            f"{reference} is no folder here: choose one for the wavs by --infer_output_dir"
        )
    return folder / "result"


def best_checkpoint(reference: str | Path) -> Path:
    """Finds the checkpoint of an experiment here whose validation loss was the smallest."""
    home = user_path(reference)
    step = History.load(home).best_step
    if step is None:
        raise InputError(
            f"{reference}: {HISTORY} there names no best checkpoint; --infer_best goes with the"
            " folder of an experiment that was validated while it was trained"
        )
    return step_folder(home / CHECKPOINTS, step)


def experiment_of(config_path: Path, name: str, overrides: Sequence[str]) -> Path:
    """Finds the folder of the experiment with this name, in `log_dir` of the configuration."""
    folder = user_path(load_config(config_path, overrides).log_dir) / name
    if not folder.is_dir():
        raise InputError(f"{folder}: no such experiment; run stage 2, or give --infer_expt_dir")
    return folder


def utterances_of(processed: Path, dataset: str, testing_set: TestingSet) -> list[Utterance]:
    """Reads the utterances of one split of a prepared dataset, sorted by id."""
    prepared = sorted(path.parent.name for path in processed.glob(f"*/{MANIFEST}"))
    if dataset not in prepared:
        raise InputError(
            f"{processed} holds no dataset {dataset!r} (prepared: {', '.join(prepared) or 'none'});"
            " correct --infer_dataset or preprocess.processed_dir, or run stage 1"
        )
    folder = processed / dataset
    utterances = read_split(folder, testing_set)
    if not utterances:
        raise InputError(f"{folder}: the split {testing_set} is empty; see preprocess.split")
    return utterances


@contextmanager
def opened_results(folder: Path, kind: type[L]) -> Iterator[ResultFolder[L]]:
    """Opens a folder of results; no other run may add to it before the end of the block."""
    with locked(folder, "wait until it ends, or choose another --infer_output_dir"):
        yield ResultFolder(folder, kind)


def synthesise_each(
    fingerprints: Mapping[str, str],
    results: ResultFolder[L],
    noun: str,
    make: Callable[[str], tuple[L, float]],
    *,
    overwrite: bool = False,
) -> None:
    """Makes the files of texts or mels; keeps `metadata.jsonl` up to date.

    Those that are finished, from the same text or mel with the same model and settings, are
    skipped. At the end, an InputError lists those that failed with their reasons.

    Args:
        fingerprints: Digests of all that the sounds depend on, by id.
        noun: Plural noun for messages, such as "texts".
        make: Writes the file of an id; returns its line, and the seconds that the model worked.
    """
    todo = [id for id, digest in fingerprints.items() if overwrite or not results.holds(id, digest)]
    if len(todo) < len(fingerprints):
        get_logger(__name__).info(
            "skipped %d of %s, finished with the same model and settings in %s; to repeat them,"
            " remove them, or give stage 3 --overwrite",
            len(fingerprints) - len(todo),
            counted(len(fingerprints), noun),
            _place(results.folder, list(fingerprints)),
        )
    written: dict[str, tuple[L, float]] = {}
    faults: list[str] = []
    if todo:
        results.begin(todo)
    try:
        with progress(len(todo), f"synthesis: {noun}") as bar:
            for id in todo:
                try:
                    written[id] = make(id)
                    results.add(replace(written[id][0], fingerprint=fingerprints[id]))
                    bar.advance()
                except InputError as error:
                    faults.append(f"{id}: {error}")
    finally:
        results.save()
    if written:
        spoken_s = sum(line.seconds for line, _ in written.values())
        work_s = sum(seconds for _, seconds in written.values())
        get_logger(__name__).info(
            "%s, %.1f s of speech in %.1f s (real-time factor %.3f): %s",
            *(counted(len(written), noun), spoken_s, work_s, work_s / spoken_s),
            _place(results.folder, list(written)),
        )
    refuse(faults, f"{len(faults)} of {counted(len(todo), noun)} could not be synthesised")


def _place(folder: Path, ids: Sequence[str]) -> Path:
    """Returns the path of the wavs: the file of a single one, otherwise their folder."""
    return folder / f"{ids[0]}.wav" if len(ids) == 1 else folder
