"""Durations of any origin as files that stage 1 reads."""

import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from config.schema import Config
from preprocessors.manifest import Utterance
from processors.alignment.imported import imported_folder
from processors.alignment.textgrid import Tiers
from processors.durations.fitting import Fitted, Fitter, Reading
from processors.durations.formats import AlignedSpeech, Entry, find_format, find_reader
from processors.durations.frames import SumError
from processors.durations.names import Matches, match_names
from processors.durations.readers.json import REPORT
from processors.durations.tokens import TokenCountError, suggest
from processors.durations.writers import json as writer
from processors.durations.writers.npy import TABLE
from processors.extraction.plan import corpus_of
from processors.extraction.summary import allowed_faults
from utils.errors import InputError, UtteranceError
from utils.files import new_folder, write_json, write_jsonl
from utils.logging import get_logger, progress

_SHOWN = 5  # reasons in messages; the file holds all of them


@dataclass(frozen=True)
class Source:
    """Where durations come from.

    Attributes:
        path: File or folder.
        format: Of `reader_names`; None: by the ends of the files' names.
        tiers: Of TextGrids.
        name_pattern: How its names are made of ids; empty: as `match_names` says.
    """

    path: Path
    format: str | None = None
    tiers: Tiers = field(default_factory=Tiers)
    name_pattern: str = ""


@dataclass
class Outcome:
    """What became of a source.

    Attributes:
        imported: Utterances that stage 1 can use.
        off: Frames too many or too few, counted, of all sources of frames.
        rejected: Kind and reason, by id.
        wrong_counts: Faults about the number of tokens.
    """

    imported: int = 0
    off: Counter[int] = field(default_factory=Counter)
    rejected: dict[str, tuple[str, str]] = field(default_factory=dict)
    wrong_counts: list[TokenCountError] = field(default_factory=list)

    def reject(self, id: str, error: Exception) -> None:
        """Takes in why an utterance cannot be used."""
        kind = "broken"
        if isinstance(error, TokenCountError):
            kind = "wrong token count"
            self.wrong_counts.append(error)
        elif isinstance(error, SumError):
            kind = "wrong sum"
            self.off[error.off] += 1
        self.rejected[id] = (kind, str(error))


def import_durations(
    config: Config,
    dataset: str,
    source: Source,
    reading: Reading,
    output: Path | None = None,
    max_bad_ratio: float | None = None,
) -> None:
    """Writes `<id>.json` for each utterance of a corpus that a source has durations of.

    Beside them stand `import.json`, which counts what was found, and `rejected.jsonl` with the
    reason for each utterance that was left out. The source stays as it is.

    Args:
        config: The experiment.
        dataset: One of its data sets.
        source: Where the durations come from.
        reading: How they are understood.
        output: Folder to make; None: the one that stage 1 reads. An older import is replaced.
        max_bad_ratio: Largest share of utterances without durations; None: that of stage 1.

    Raises:
        InputError: Before anything is written, if the source or the corpus cannot be used; at the
            end, if too many utterances have no durations.
    """
    root, listing = corpus_of(config, dataset)
    utterances = {utterance.id: utterance for utterance in listing.utterances}
    target = output or imported_folder(config.preprocess, root)
    _check_target(target, source.path)
    format = source.format or find_format(source.path)
    source = replace(source, format=format)
    entries = find_reader(format).entries(source.path, source.tiers)
    matches = match_names(entries, utterances.keys(), source.name_pattern)
    if not matches.entries:
        raise InputError(_nothing_fits(source, matches, len(utterances)))
    beside = source.path / TABLE
    if reading.table is None and format == "npy" and beside.is_file():
        reading = replace(reading, table=beside)
    fitter = Fitter(config.preprocess, reading, matches.entries, utterances)
    outcome = Outcome()
    staging = target.with_name(f"{target.name}.new")
    if (staging / f"{REPORT}.json").is_file():  # of a process that was killed
        shutil.rmtree(staging)
    with new_folder(staging) as folder:
        writer.write(folder, _fitted(fitter, matches.entries, utterances, outcome))
        _list_unread(matches, outcome)
        _write_report(folder, source, fitter, matches, outcome)
    if target.is_dir():
        shutil.rmtree(target)
    staging.replace(target)
    _tell(target, fitter, matches, outcome)
    ratio = config.preprocess.max_bad_ratio if max_bad_ratio is None else max_bad_ratio
    _judge(target, outcome, len(utterances), ratio)


def _check_target(target: Path, source: Path) -> None:
    """Keeps what no import wrote, and the source, from being replaced."""
    if target.resolve() == source.resolve() or target.resolve() in source.resolve().parents:
        raise InputError(f"{target} holds the source; choose another --output")
    known = (target / f"{REPORT}.json").is_file()
    if target.exists() and not known and (not target.is_dir() or any(target.iterdir())):
        raise InputError(
            f"{target} holds something else than an import; choose another --output, and name it in"
            " preprocess.imported_dir"
        )


def _nothing_fits(source: Source, matches: Matches, n_utterances: int) -> str:
    if matches.doubled:
        return (
            f"{source.path}: {matches.doubled[0]} stands there several times, and so do all others"
        )
    shown = ", ".join(matches.extra[:3])
    return (
        f"{source.path}: its {len(matches.extra)} names ({shown}, ...) are those of none of the"
        f" {n_utterances} utterances; say how they are made by --name_pattern, as in"
        " '{id}_phones'"
    )


def _fitted(
    fitter: Fitter,
    entries: Mapping[str, Entry],
    utterances: Mapping[str, Utterance],
    outcome: Outcome,
) -> Iterator[AlignedSpeech]:
    """What can be used, one after another."""
    with progress(len(entries), "durations") as bar:
        for id, entry in entries.items():
            bar.advance()
            try:
                fitted: Fitted = fitter(entry, utterances[id])
            except (UtteranceError, InputError) as error:
                outcome.reject(id, error)
                continue
            if fitted.off is not None:
                outcome.off[fitted.off] += 1
            outcome.imported += 1
            yield fitted.speech


def _list_unread(matches: Matches, outcome: Outcome) -> None:
    for id in matches.doubled:
        reason = "the source has it several times; remove all but one"
        outcome.rejected[id] = ("doubled", reason)
    for id in matches.missing:
        outcome.rejected[id] = ("missing", "the source does not have it")


def _write_report(
    folder: Path, source: Source, fitter: Fitter, matches: Matches, outcome: Outcome
) -> None:
    rows = sorted(outcome.rejected.items())
    write_jsonl(
        folder / "rejected.jsonl",
        ({"id": id, "kind": kind, "reason": reason} for id, (kind, reason) in rows),
    )
    report = {
        "source": str(source.path),
        "format": source.format,
        "frame": str(fitter.rate) if outcome.off else "",
        "matched": len(matches.entries),
        "imported": outcome.imported,
        "extra": matches.extra,
        "rejected": dict(sorted(Counter(kind for kind, _ in outcome.rejected.values()).items())),
        "frames_off": {f"{off:+d}": n for off, n in sorted(outcome.off.items())},
    }
    write_json(folder / f"{REPORT}.json", report)


def _tell(target: Path, fitter: Fitter, matches: Matches, outcome: Outcome) -> None:
    if outcome.off:
        _log.info("a frame is %s", fitter.rate)
    kinds = Counter(kind for kind, _ in outcome.rejected.values())
    counted = "".join(f", {n} {kind}" for kind, n in sorted(kinds.items()))
    _log.info(
        "%d matched, %d imported, %d extra%s: %s",
        len(matches.entries),
        outcome.imported,
        len(matches.extra),
        counted,
        target,
    )
    if mended := {off: n for off, n in sorted(outcome.off.items()) if off}:
        listed = ", ".join(f"{off:+d} ({n})" for off, n in mended.items())
        _log.info("frames too many or too few, and how often: %s", listed)


def _judge(target: Path, outcome: Outcome, n_utterances: int, ratio: float) -> None:
    bad = len(outcome.rejected)
    allowed = allowed_faults(n_utterances, ratio)
    if not bad:
        return
    reasons = "".join(f"\n  {line}" for line in _reasons(outcome))
    message = f"{bad} of {n_utterances} utterances have no durations; {target / 'rejected.jsonl'}"
    if bad <= allowed:
        _log.warning("%s names them:%s", message, reasons)
        return
    if hint := suggest(outcome.wrong_counts):
        reasons += f"\n{hint}"
    raise InputError(f"{message} names them, and --max_bad_ratio allows {allowed}:{reasons}")


def _reasons(outcome: Outcome) -> Sequence[str]:
    """The first reasons; those about what is there before what is missing."""
    rows = sorted(outcome.rejected.items(), key=lambda row: (row[1][0] == "missing", row[0]))
    return [f"{id}: {reason}" for id, (_, reason) in rows[:_SHOWN]]


_log = get_logger(__name__)
