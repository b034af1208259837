"""Stage 3 of every model: synthesises items one by one, records them, and lists failures."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, Literal, NamedTuple, Protocol, TypeVar

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


class SynthesisResult(NamedTuple, Generic[L]):
    """The line about a synthesised item, and its times."""

    line: L
    seconds: float  # of sound
    work_s: float  # seconds that the model worked


def default_output(reference: str | Path, folder: Path) -> Path:
    """Returns `result` in the folder of a local experiment.

    Args:
        reference: The model as the user named it.
        folder: Where it was found.

    Raises:
        InputError: If the model is from the Hub: its folder is a cache.
    """
    if not user_path(reference).exists():
        raise InputError(
            f"{reference} is on the Hub: choose a folder for the wavs by --infer_output_dir"
        )
    return folder / "result"


def experiment_of(config_path: Path, name: str, overrides: Sequence[str]) -> Path:
    """Finds the folder of the experiment with this configuration and name.

    Args:
        config_path: The configuration file; its `log_dir` holds the experiments.
        name: Of the experiment.
        overrides: `key.path=value`.

    Raises:
        InputError: If the configuration is wrong, or nothing was trained under that name.
    """
    folder = user_path(load_config(config_path, overrides).log_dir) / name
    if not folder.is_dir():
        raise InputError(f"{folder}: no such experiment; run stage 2, or give --infer_expt_dir")
    return folder


def utterances_of(processed: Path, dataset: str, testing_set: TestingSet) -> list[Utterance]:
    """Reads the utterances of one split of a prepared data set, sorted by id.

    Args:
        processed: Where stage 1 writes.
        dataset: Name.
        testing_set: The split.

    Raises:
        InputError: If stage 1 did not prepare the data set (lists those it did), its files do not
            belong together, or the split is empty.
    """
    prepared = sorted(path.parent.name for path in processed.glob(f"*/{MANIFEST}"))
    if dataset not in prepared:
        known = ", ".join(prepared) or "none"
        raise InputError(
            f"{processed} holds no data set {dataset!r} (prepared: {known});"
            " correct --infer_dataset or preprocess.processed_dir, or run stage 1"
        )
    folder = processed / dataset
    utterances = read_split(folder, testing_set)
    if not utterances:
        raise InputError(f"{folder}: the split {testing_set} is empty; see preprocess.split")
    return utterances


def synthesise_each(
    items: Sequence[I],
    make: Callable[[I], SynthesisResult[L]],
    results: ResultFolder[L],
    noun: str,
    *,
    overwrite: bool = False,
) -> list[L]:
    """Synthesises items one after another and keeps `metadata.jsonl` up to date.

    Items that are finished, from the same text or mel with the same model and settings, are
    skipped.

    Args:
        items: Texts or mels.
        make: Synthesises an item and writes its files.
        results: The folder of the files.
        noun: Plural noun of the items in messages, such as "texts".
        overwrite: Whether to repeat finished items.

    Returns:
        The lines about all items, finished now or before.

    Raises:
        InputError: At the end, if some could not be synthesised: lists them with their reasons.
    """
    failures: list[tuple[str, str]] = []  # id and reason
    made: list[SynthesisResult[L]] = []
    todo = list(items) if overwrite else _unfinished(items, results, noun)
    try:
        if todo:
            results.begin([item.id for item in todo])
        with progress(len(todo), f"stage 3: {noun}") as bar:
            for item in todo:
                try:
                    made.append(make(item))
                except InputError as error:
                    failures.append((item.id, str(error)))
                else:
                    results.add(made[-1].line)
                    bar.advance()  # failed items do not count as done
    finally:
        results.save()
    _report(results.folder, made, failures, noun)
    return [results.lines[item.id] for item in items]


def _unfinished(items: Sequence[I], results: ResultFolder[L], noun: str) -> list[I]:
    """The items without a finished file; logs how many are skipped."""
    todo = [item for item in items if not results.holds(item.id, item.fingerprint)]
    if len(todo) < len(items):
        get_logger(__name__).info(
            "skipped %d of %s, finished with the same model and settings in %s; --overwrite repeats"
            " them",
            len(items) - len(todo),
            _counted(len(items), noun),
            results.folder,
        )
    return todo


def _report(
    folder: Path, made: Sequence[SynthesisResult[L]], failures: Sequence[tuple[str, str]], noun: str
) -> None:
    if made:
        spoken_s, work_s = sum(one.seconds for one in made), sum(one.work_s for one in made)
        get_logger(__name__).info(
            "%s, %.1f s of speech in %.1f s (real-time factor %.3f): %s",
            _counted(len(made), noun),
            spoken_s,
            work_s,
            work_s / spoken_s,
            folder,
        )
    if failures:
        lines = [f"  {id}: {reason}" for id, reason in failures[:SHOWN_FAILURES]]
        if len(failures) > SHOWN_FAILURES:
            lines.append(f"  and {len(failures) - SHOWN_FAILURES} more")
        raise InputError(
            f"{len(failures)} of {_counted(len(made) + len(failures), noun)} could not be"
            " synthesised:\n" + "\n".join(lines)
        )


def _counted(n: int, noun: str) -> str:
    """A number with its noun, given in the plural: "1 text"."""
    return f"{n} {noun.removesuffix('s') if n == 1 else noun}"
