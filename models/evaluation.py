"""Stage 4: scores of what stage 3 wrote, beside the recordings of the same utterances."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from models.checkpoint import load_model
from models.copy_synthesis import ClipLine
from models.references import References, items_of, read_results
from models.registry import config_of, load_config
from models.results import Line
from models.scores import Report, summarise, write_report
from models.speaking import TestingSet, default_output, utterances_of
from processors.metrics import find, metric_names
from processors.scoring import Column, Item, Scored, columns_of, score_items
from utils.config import overridden
from utils.errors import InputError
from utils.files import user_path
from utils.logging import get_logger, progress
from utils.parallel import run_chunks

ALL = "all"
SHOWN = 5  # ids in a message


@dataclass(frozen=True)
class Selection:
    """Which files of a folder are scored, and by what.

    Attributes:
        metrics: Names; `all` for those that can be computed.
        dataset: Only files of this one; None: all that the folder holds.
        testing_set: Only files of this split, and every one of it.
    """

    metrics: tuple[str, ...] = (ALL,)
    dataset: str | None = None
    testing_set: TestingSet | None = None


class Place(NamedTuple):
    """What is scored, and where its recordings are."""

    folder: Path
    references: References


def place_of_model(
    reference: str | Path, output: Path | None, overrides: Sequence[str], recordings: Path | None
) -> Place:
    """What stage 3 wrote with a model.

    Args:
        reference: Experiment folder, a checkpoint in it, or a name on the Hub.
        output: Where stage 3 wrote; None: `result` in the experiment's folder.
        overrides: `key.path=value` for the experiment's own configuration.
        recordings: A folder of recordings; None: those of stage 1.

    Raises:
        InputError: If the model cannot be loaded, or the output must be named and is not.
    """
    model = load_model(reference)
    preprocess = config_of(overridden(model.tree, overrides)).preprocess
    languages = {speaker.name: speaker.language for speaker in model.speakers}
    folder = output or default_output(reference, model.home)
    return Place(folder, References(preprocess, recordings, languages))


def place_of_config(
    config: Path, output: Path, overrides: Sequence[str], recordings: Path | None
) -> Place:
    """What was written with a model that is not at hand; see `place_of_model`.

    Raises:
        InputError: If the configuration is wrong.
    """
    return Place(output, References(load_config(config, overrides).preprocess, recordings))


def evaluate(place: Place, selection: Selection, n_jobs: int) -> Report:
    """Scores utterances and writes `scores.jsonl` and `scores.json` beside them.

    Args:
        place: What is scored.
        selection: Which of it, and by what.
        n_jobs: Worker processes.

    Raises:
        InputError: If a file or a recording is missing or cannot be read, a metric is unknown, one
            that was asked for cannot be computed, or none can.
    """
    preprocess = place.references.preprocess
    lines = _chosen(read_results(place.folder), selection, user_path(preprocess.processed_dir))
    vocoder = _vocoder_of(place.folder, lines)
    metrics = _Metrics(selection.metrics, copies=isinstance(lines[0], ClipLine))
    items = items_of(place.folder, lines, place.references)
    work = partial(score_items, metrics=metrics.names, mel=preprocess.mel)
    chunks = {item.id: [item] for item in items}
    scored: list[Scored] = []
    with progress(len(items), "stage 4: utterances") as bar:
        for chunk in run_chunks(work, chunks, n_jobs, preprocess.backend):
            scored += _unless_lost(chunk.result, chunk.lost)
            bar.advance()
    scored.sort(key=lambda one: one.id)
    metrics.check(scored)
    report = Report(
        utterances=len(scored),
        seconds=round(sum(one.seconds for one in scored), 3),
        vocoder=vocoder,
        scores=summarise(metrics.columns, scored),
        skipped=metrics.skipped,
    )
    write_report(place.folder, report, scored)
    return report


def _chosen(
    lines: Sequence[Line | ClipLine], selection: Selection, processed: Path
) -> Sequence[Line | ClipLine]:
    """The lines of a dataset and split.

    Raises:
        InputError: If there is none, or an utterance of the split was not spoken.
    """
    if selection.dataset is None:
        return lines
    of_dataset = {line.id: line for line in lines if line.dataset == selection.dataset}
    if not of_dataset:
        others = ", ".join(sorted({line.dataset for line in lines if line.dataset})) or "none"
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
            f"({', '.join(left_out[:SHOWN])}): run stage 3"
        )
    return [of_dataset[utterance.id] for utterance in split]


def _vocoder_of(folder: Path, lines: Sequence[Line | ClipLine]) -> str:
    """What made the sound of all.

    Raises:
        InputError: If several did: a mean over both says nothing of either.
    """
    vocoder, *others = sorted({line.vocoder for line in lines})
    if others:
        raise InputError(
            f"{folder} holds files of several vocoders: {', '.join([vocoder, *others])}; choose "
            "some by --infer_dataset and --infer_testing_set, or run stage 3 again"
        )
    return vocoder


def _unless_lost(scored: Sequence[Scored], lost: Sequence[Item]) -> Sequence[Scored]:
    if lost:
        raise InputError(
            f"{lost[0].file}: a metric crashed the process that scored it; is the file damaged? "
            "Leave metrics out by --metrics to find which one it is"
        )
    return scored


class _Metrics:
    """The metrics of a run.

    Args:
        wanted: Names, or `all`.
        copies: Whether copies of recordings are scored, and not spoken texts.

    Attributes:
        names: Those that can be computed.
        skipped: Those that cannot, with the reason, where all were wanted.

    Raises:
        InputError: If a name is unknown, one that was asked for cannot be computed, or none can.
    """

    def __init__(self, wanted: Sequence[str], *, copies: bool) -> None:
        self._chosen = ALL not in wanted
        self.skipped: dict[str, str] = {}
        names = list(dict.fromkeys(wanted)) if self._chosen else metric_names()
        self.names = [name for name in names if self._can(name, copies)]
        self._need_one()

    @property
    def columns(self) -> list[Column]:
        """What they say."""
        return columns_of(self.names)

    def check(self, scored: Sequence[Scored]) -> None:
        """Says which metrics had nothing to judge.

        Raises:
            InputError: If one that was asked for has no score at all, or none has.
        """
        for name in list(self.names):
            metric = find(name).METRIC
            without = [one.id for one in scored if name not in one.values]
            if len(without) == len(scored):
                self.names.remove(name)
                self._skip(name, f"no utterance has {metric.needs}")
            elif without:
                _log.warning(
                    "%s: %d of %d have no score, for lack of %s: %s",
                    name,
                    len(without),
                    len(scored),
                    metric.needs,
                    ", ".join(without[:SHOWN]),
                )
        self._need_one()

    def _can(self, name: str, copies: bool) -> bool:
        metric = find(name).METRIC
        if missing := metric.missing():
            self._skip(name, f"not installed (pip install {' '.join(missing)})")
        elif metric.judges == "copy" and not copies:
            self._skip(name, "compares copies with their recordings; these are spoken texts")
        return name not in self.skipped

    def _skip(self, name: str, reason: str) -> None:
        if self._chosen:
            raise InputError(f"--metrics {name}: {reason}")
        self.skipped[name] = reason
        _log.info("without %s: %s", name, reason)

    def _need_one(self) -> None:
        if not self.names:
            raise InputError("no metric is left that could be computed")


_log = get_logger(__name__)
