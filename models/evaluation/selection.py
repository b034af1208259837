"""Which files of a folder are scored."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from models.evaluation.inputs import Result
from models.evaluation.judges import ALL
from models.synthesizer.speak_each import TestingSet, utterances_of
from utils.errors import InputError

_SHOWN = 5  # ids in a message


@dataclass(frozen=True)
class Selection:
    """Which files of a folder are scored, and by what.

    Attributes:
        metrics: Names; `all` for those that can be computed.
        dataset: Only files of this one; None: all that the folder holds.
        testing_set: Only files of this split, and every one of it.
        checks: Names; `all` for those that can be made; None: all with all metrics, else none.
    """

    metrics: tuple[str, ...] = (ALL,)
    dataset: str | None = None
    testing_set: TestingSet | None = None
    checks: tuple[str, ...] | None = None


def chosen(results: Sequence[Result], selection: Selection, processed: Path) -> Sequence[Result]:
    """The files of a dataset and split. Files that name no dataset are taken to be of this one.

    Args:
        results: All that the folder holds.
        selection: Dataset and split.
        processed: Where stage 1 writes.

    Raises:
        InputError: If there is none, or an utterance of the split was not spoken.
    """
    if selection.dataset is None:
        return results
    named = [
        replace(one, dataset=selection.dataset) if one.kind == "file" else one for one in results
    ]
    of_dataset = {one.id: one for one in named if one.dataset == selection.dataset}
    if not of_dataset:
        others = ", ".join(sorted({one.dataset for one in results if one.dataset})) or "none"
        raise InputError(
            f"stage 3 spoke nothing of the data set {selection.dataset!r} (spoken: {others}); run "
            "it, or correct --infer_dataset"
        )
    if selection.testing_set is None:
        return list(of_dataset.values())
    split = utterances_of(processed, selection.dataset, selection.testing_set)
    if left_out := [utterance.id for utterance in split if utterance.id not in of_dataset]:
        raise InputError(
            f"{len(left_out)} utterances of the split {selection.testing_set} were not spoken "
            f"({', '.join(left_out[:_SHOWN])}): run stage 3"
        )
    return [of_dataset[utterance.id] for utterance in split]


def vocoder_of(folder: Path, results: Sequence[Result]) -> str:
    """What made the sound of all; empty where it is not known.

    Raises:
        InputError: If several did: a mean over both says nothing of either.
    """
    vocoder, *others = sorted({result.vocoder for result in results})
    if others:
        raise InputError(
            f"{folder} holds files of several vocoders: {', '.join([vocoder, *others])}; choose "
            "some by --infer_dataset and --infer_testing_set, or run stage 3 again"
        )
    return vocoder
