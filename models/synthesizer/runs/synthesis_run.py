"""Stage 3 of every model: synthesises items one by one, records them, and lists failures."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Generic, Literal, Protocol, TypeVar

from models.base.registry import load_config
from models.synthesizer.runs.metadata import L, ResultFolder
from preprocessors.manifest import MANIFEST, Utterance
from preprocessors.split import read_split
from utils.errors import InputError
from utils.files import user_path
from utils.logging import get_logger, progress

TestingSet = Literal["train", "test", "golden_test"]
SHOWN_FAILURES = 20


class SynthesisItem(Protocol):
    """A text or mel to be synthesised into one file."""

    @property
    def id(self) -> str:
        """Unique in its folder."""

    @property
    def fingerprint(self) -> str:
        """Digest of all that the sound depends on."""


I = TypeVar("I", bound=SynthesisItem)  # noqa: E741


class Attempt(Generic[I, L]):
    """One item being synthesised; as a context manager, it keeps the InputError of its block."""

    def __init__(self, item: I, results: ResultFolder[L]) -> None:
        self._item = item
        self._results: ResultFolder[L] = results
        self.seconds = self.work_s = 0.0
        self.fault = ""

    def __enter__(self) -> I:
        return self._item

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> bool:
        if isinstance(error, InputError):
            self.fault = str(error)
        return isinstance(error, InputError)

    def done(self, line: L, seconds: float, work_s: float) -> None:
        """Records the file that was written."""
        self._results.add(line)
        self.seconds, self.work_s = seconds, work_s


def default_output(reference: str | Path, folder: Path) -> Path:
    """Returns `result` in the folder of a local experiment."""
    if not user_path(reference).exists():
        raise InputError(
            f"{reference} is on the Hub: choose a folder for the wavs by --infer_output_dir"
        )
    return folder / "result"


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


def synthesise_each(
    items: Sequence[I], results: ResultFolder[L], noun: str, *, overwrite: bool = False
) -> Iterator[Attempt[I, L]]:
    """Yields the items that are to be synthesised; keeps `metadata.jsonl` up to date.

    Items that are finished, from the same text or mel with the same model and settings, are
    skipped.

    Args:
        noun: Plural noun of the items in messages, such as "texts".

    Raises:
        InputError: At the end, if some could not be synthesised: lists them with their reasons.
    """
    todo = list(items) if overwrite else _unfinished(items, results, noun)
    attempts: dict[str, Attempt[I, L]] = {}
    if todo:
        results.begin([item.id for item in todo])
    try:
        with progress(len(todo), f"synthesis: {noun}") as bar:
            for item in todo:
                attempts[item.id] = Attempt(item, results)
                yield attempts[item.id]
                bar.advance(0 if attempts[item.id].fault else 1)
    finally:
        results.save()
    _report(results.folder, attempts, noun)


def _unfinished(items: Sequence[I], results: ResultFolder[L], noun: str) -> list[I]:
    """The items without a finished file; logs how many are skipped."""
    todo = [item for item in items if not results.holds(item.id, item.fingerprint)]
    if len(todo) < len(items):
        get_logger(__name__).info(
            "skipped %d of %s, finished with the same model and settings in %s; --overwrite repeats"
            " them",
            len(items) - len(todo),
            _counted(len(items), noun),
            _place(results.folder, [item.id for item in items]),
        )
    return todo


def _place(folder: Path, ids: Sequence[str]) -> Path:
    """Where wavs are: the file of a single one, otherwise their folder."""
    return folder / f"{ids[0]}.wav" if len(ids) == 1 else folder


def _report(folder: Path, attempts: Mapping[str, Attempt[I, L]], noun: str) -> None:
    made = {id: attempt for id, attempt in attempts.items() if not attempt.fault}
    failures = [(id, attempt.fault) for id, attempt in attempts.items() if attempt.fault]
    if made:
        spoken_s = sum(attempt.seconds for attempt in made.values())
        work_s = sum(attempt.work_s for attempt in made.values())
        get_logger(__name__).info(
            "%s, %.1f s of speech in %.1f s (real-time factor %.3f): %s",
            _counted(len(made), noun),
            spoken_s,
            work_s,
            work_s / spoken_s,
            _place(folder, list(made)),
        )
    if failures:
        lines = [f"  {id}: {reason}" for id, reason in failures[:SHOWN_FAILURES]]
        if len(failures) > SHOWN_FAILURES:
            lines.append(f"  and {len(failures) - SHOWN_FAILURES} more")
        raise InputError(
            f"{len(failures)} of {_counted(len(attempts), noun)} could not be"
            " synthesised:\n" + "\n".join(lines)
        )


def _counted(n: int, noun: str) -> str:
    """A number with its noun, given in the plural: "1 text"."""
    return f"{n} {noun.removesuffix('s') if n == 1 else noun}"
