"""Stage 3 of every model: synthesises items one by one, records them, and lists failures."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from models.base.registry import load_config
from models.synthesizer.runs.metadata import L, ResultFolder
from preprocessors.manifest import MANIFEST, Utterance, read_split
from utils.errors import InputError, counted, refuse
from utils.files import user_path
from utils.logging import get_logger, progress

TestingSet = Literal["train", "test", "golden_test"]


def default_output(reference: str | Path, folder: Path) -> Path:
    """Returns `result` in the folder of a local experiment."""
    if not user_path(reference).exists():
        raise InputError(
            f"{reference} is no folder here: choose one for the wavs by --infer_output_dir"
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
    todo = list(fingerprints) if overwrite else _unfinished(fingerprints, results, noun)
    made: dict[str, tuple[L, float]] = {}
    faults: dict[str, str] = {}
    if todo:
        results.begin(todo)
    try:
        with progress(len(todo), f"synthesis: {noun}") as bar:
            for id in todo:
                try:
                    made[id] = make(id)
                    results.add(replace(made[id][0], fingerprint=fingerprints[id]))
                except InputError as error:
                    faults[id] = str(error)
                bar.advance(0 if id in faults else 1)
    finally:
        results.save()
    if made:
        spoken_s = sum(line.seconds for line, _ in made.values())
        work_s = sum(seconds for _, seconds in made.values())
        get_logger(__name__).info(
            "%s, %.1f s of speech in %.1f s (real-time factor %.3f): %s",
            *(counted(len(made), noun), spoken_s, work_s, work_s / spoken_s),
            _place(results.folder, list(made)),
        )
    refuse(
        [f"{id}: {reason}" for id, reason in faults.items()],
        f"{len(faults)} of {counted(len(todo), noun)} could not be synthesised",
    )


def _unfinished(fingerprints: Mapping[str, str], results: ResultFolder[L], noun: str) -> list[str]:
    """Returns the ids without a finished file; logs how many are skipped."""
    todo = [id for id, fingerprint in fingerprints.items() if not results.holds(id, fingerprint)]
    if len(todo) < len(fingerprints):
        get_logger(__name__).info(
            "skipped %d of %s, finished with the same model and settings in %s; to repeat them,"
            " remove them, or give stage 3 --overwrite",
            len(fingerprints) - len(todo),
            counted(len(fingerprints), noun),
            _place(results.folder, list(fingerprints)),
        )
    return todo


def _place(folder: Path, ids: Sequence[str]) -> Path:
    """Returns the path of the wavs: the file of a single one, otherwise their folder."""
    return folder / f"{ids[0]}.wav" if len(ids) == 1 else folder
