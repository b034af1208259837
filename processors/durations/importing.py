"""Imports durations of other programs as the files that stage 1 reads."""

import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median

from config.schema import Config
from modules.alignment.attention_quality import PathQuality
from preprocessors.manifest import Utterance
from processors.alignment.aligner import AlignmentError
from processors.alignment.imported import imported_folder
from processors.durations import FRAME_FORMATS
from processors.durations.fitting import Fitter, Interpretation
from processors.durations.sources import REPORT, TABLE, DurationSource, Matches, match_names
from processors.durations.tokens import FrameRate
from processors.durations.writing import AlignedSpeech
from processors.durations.writing import write_json as write_alignments
from processors.extraction.finishing import check_faults
from processors.extraction.plan import list_corpus
from utils.errors import InputError, UtteranceError
from utils.files import new_folder, write_json, write_jsonl
from utils.logging import get_logger, progress


@dataclass
class Outcome:
    """The result of an import."""

    matches: Matches  # entries of the source, by utterance
    imported: int = 0  # utterances that stage 1 can use
    # frames too many or too few, counted, if the source has frames
    off: Counter[int] = field(default_factory=Counter)
    rejected: dict[str, tuple[str, str]] = field(default_factory=dict)  # kind and reason, by id

    def __post_init__(self) -> None:
        doubled = ("doubled", "the source has it several times; remove all but one")
        missing = ("missing", "the source does not have it")
        self.rejected = dict.fromkeys(self.matches.doubled, doubled)
        self.rejected |= dict.fromkeys(self.matches.missing, missing)

    @property
    def attention(self) -> dict[str, PathQuality]:
        """Quality of the attention by id, where durations come from it."""
        entries = self.matches.entries.items()
        return {id: entry.attention for id, entry in entries if entry.attention is not None}

    @property
    def kinds(self) -> Counter[str]:
        """Number of rejected utterances of each kind, sorted."""
        return Counter(sorted(kind for kind, _ in self.rejected.values()))

    def fitted(
        self, fitter: Fitter, utterances: Mapping[str, Utterance]
    ) -> Iterator[AlignedSpeech]:
        """Yields the utterances that can be used, and counts the others."""
        with progress(len(self.matches.entries), "durations") as bar:
            for id, entry in self.matches.entries.items():
                bar.advance()
                try:
                    speech, off = fitter(entry, utterances[id])
                except (UtteranceError, InputError) as error:
                    kind = error.kind if isinstance(error, AlignmentError) else "broken"
                    self.rejected[id] = (kind, str(error))
                    continue
                if off is not None:
                    self.off[off] += 1
                self.imported += 1
                yield speech


def import_durations(
    config: Config,
    dataset: str,
    source: DurationSource,
    interpretation: Interpretation,
    output: Path | None = None,
    max_bad_ratio: float | None = None,
) -> None:
    """Writes `<id>.json` for each utterance of a corpus that a source has durations of.

    The folder also gets `import.json`, with counts, and `rejected.jsonl`, with the reason for each
    utterance that was left out; if the source is a voice also `attention.jsonl`, with the quality
    of the attention on each utterance, the worst first. The source is only read.

    Args:
        output: Folder, in which an older import is replaced; None: the one that stage 1 reads.
        max_bad_ratio: Largest share of utterances without durations; None: that of stage 1.

    Raises:
        InputError: Before anything is written, if the source or the corpus cannot be used; at the
            end, if too many utterances have no durations.
    """
    root, listing = list_corpus(config, dataset)
    utterances = {utterance.id: utterance for utterance in listing.utterances}
    target = output or imported_folder(config.preprocess, root)
    _check_target(target, source.path)
    if interpretation.pitch is not None and source.format not in FRAME_FORMATS:
        raise InputError(
            f"--pitch is of tokens with frames ({' or '.join(FRAME_FORMATS)}); {source.path} holds"
            f" {source.format}"
        )
    matches = match_names(source.entries, utterances.keys(), source.name_pattern)
    if not matches.entries:
        names = [*matches.doubled, *matches.extra]
        raise InputError(
            f"{source.path}: of its {len(names)} names ({', '.join(names[:3])}, ...) none is that"
            f" of one of the {len(utterances)} utterances alone; describe them by --name_pattern,"
            " as in '{id}_phones'"
        )
    exported_table = source.path / TABLE
    if interpretation.table is None and source.format == "npy" and exported_table.is_file():
        interpretation = replace(interpretation, table=exported_table)
    fitter = Fitter(config.preprocess, interpretation)
    outcome = Outcome(matches)
    with _replaced(target) as folder:
        write_alignments(folder, outcome.fitted(fitter, utterances))
        _write_report(folder, source, str(fitter.rate), outcome)
    _log_outcome(target, fitter.rate, outcome)
    if interpretation.pitch is not None and config.preprocess.pitch_extractor != "imported":
        _log.info("stage 1 uses the imported pitch with preprocess.pitch_extractor imported")
    ratio, limited_by = config.preprocess.max_bad_ratio, "preprocess.max_bad_ratio"
    if max_bad_ratio is not None:
        ratio, limited_by = max_bad_ratio, "--max_bad_ratio"
    # missing utterances last
    rejected = sorted(outcome.rejected.items(), key=lambda row: (row[1][0] == "missing", row[0]))
    reasons = [f"{id}: {reason}" for id, (_, reason) in rejected]
    what = f"{len(reasons)} of {len(utterances)} utterances have no durations"
    check_faults(what, reasons, len(utterances), ratio, target / "rejected.jsonl", limited_by)


def _check_target(target: Path, source: Path) -> None:
    """Protects the source, and folders that no import wrote, from being replaced."""
    if source.resolve().is_relative_to(target.resolve()):
        raise InputError(f"{target} holds the source; choose another --output")
    is_empty = not target.exists() or (target.is_dir() and not any(target.iterdir()))
    if not is_empty and not _is_import(target):
        raise InputError(
            f"{target} is not an import; choose another --output, and set"
            " preprocess.imported_dir to it"
        )


@contextmanager
def _replaced(target: Path) -> Iterator[Path]:
    """Yields a new folder that replaces `target` at the end."""
    staging = target.with_name(f"{target.name}.new")
    if _is_import(staging):  # of a process that was killed
        shutil.rmtree(staging)
    with new_folder(staging) as folder:
        yield folder
    if target.is_dir():
        shutil.rmtree(target)
    staging.replace(target)


def _is_import(folder: Path) -> bool:
    return (folder / f"{REPORT}.json").is_file()


def _write_report(folder: Path, source: DurationSource, frame: str, outcome: Outcome) -> None:
    report = {
        "source": str(source.path),
        "format": source.format,
        "frame": frame if outcome.off else "",
        "matched": len(outcome.matches.entries),
        "imported": outcome.imported,
        "extra": outcome.matches.extra,
        "rejected": outcome.kinds,
        "frames_off": {f"{off:+d}": n for off, n in sorted(outcome.off.items())},
    }
    if attention := outcome.attention:
        worst_first = sorted(attention.items(), key=lambda row: (row[1].least, row[0]))
        rows = ({"id": id, **_rounded(quality)} for id, quality in worst_first)
        write_jsonl(folder / "attention.jsonl", rows)
        medians = PathQuality(*map(median, zip(*attention.values(), strict=True)))
        report["attention"] = _rounded(medians)
        _log.info("attention, medians: %s; attention.jsonl has each utterance", report["attention"])
    rejected = sorted(outcome.rejected.items())
    write_jsonl(
        folder / "rejected.jsonl",
        ({"id": id, "kind": kind, "reason": reason} for id, (kind, reason) in rejected),
    )
    write_json(folder / f"{REPORT}.json", report)


def _rounded(quality: PathQuality) -> dict[str, float]:
    return {name: round(value, 4) for name, value in quality._asdict().items()}


def _log_outcome(target: Path, frame: FrameRate, outcome: Outcome) -> None:
    if outcome.off:
        off = ", ".join(f"{off:+d} ({n})" for off, n in sorted(outcome.off.items()))
        _log.info("a frame is %s; frames too many or too few, and how often: %s", frame, off)
    _log.info(
        "%d matched, %d imported, %d extra%s: %s",
        len(outcome.matches.entries),
        outcome.imported,
        len(outcome.matches.extra),
        "".join(f", {n} {kind}" for kind, n in outcome.kinds.items()),
        target,
    )


_log = get_logger(__name__)
