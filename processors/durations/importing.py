"""Imports durations of other programs as the files that stage 1 reads."""

import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Literal

import numpy as np
import soundfile

from config.preprocess import PreprocessConfig
from config.schema import Config
from modules.alignment.attention_quality import PathQuality
from preprocessors.manifest import Utterance
from processors.alignment.aligner import AlignmentError, naming
from processors.alignment.fit import check_coverage
from processors.alignment.imported import imported_folder
from processors.alignment.timed import Grid, align_grid, check_text, check_times
from processors.durations import FRAME_FORMATS, Layout, tokens
from processors.durations.sources import REPORT, TABLE, DurationSource, SourceEntry, match_names
from processors.durations.tokens import WRONG_COUNT, FrameRate, Table, TokenPitch
from processors.durations.writing import AlignedSpeech, aligned_speech
from processors.durations.writing import write_json as write_alignments
from processors.extraction.features import frame_durations
from processors.extraction.plan import check_faults, list_corpus
from processors.records import Alignment, SpokenText
from processors.text.frontend import Frontends
from processors.text.symbols import PAUSES
from utils.errors import InputError, UtteranceError
from utils.files import new_folder, write_json, write_jsonl
from utils.logging import get_logger, progress

_log = get_logger(__name__)


@dataclass(frozen=True)
class Interpretation:
    """Options for reading a source; all but `names` apply to sources of frames only."""

    tokens: Layout = "all"  # which of stage 1's phones have a token
    end_token: bool = False  # there is one more token at the end
    table: Path | None = None  # a file that names the tokens instead
    rate: FrameRate | None = None  # length of a frame; None: that of the table or of stage 1
    tolerance: int = 3  # frames too many or too few that are corrected
    pitch: TokenPitch | None = None  # of the same tokens
    # whether phones keep the names of the source, or take those of the text, in order
    names: Literal["source", "text"] = "source"


class Fitter:
    """Fits the durations of single recordings to their texts and lengths."""

    def __init__(self, config: PreprocessConfig, interpretation: Interpretation) -> None:
        self._config = config
        self._options = interpretation
        self._frontends = Frontends(config.text)
        path = interpretation.table
        self._table = tokens.read_table(path) if path else Table({}, None)
        stage_1 = FrameRate(config.hop_length, config.sample_rate)
        self.rate = interpretation.rate or self._table.rate or stage_1

    def __call__(
        self, entry: SourceEntry, utterance: Utterance
    ) -> tuple[AlignedSpeech, int | None]:
        """Fits the entry of an utterance; AlignmentError if it does not fit text and recording.

        Returns:
            The speech, and the frames that were too many, or too few if negative; None for times.
        """
        spoken = self._frontends[utterance.language](utterance.text)
        with naming(entry.path):
            check_text(entry.text, utterance)
            _check_attention(entry.attention, self._config.min_attention)
            wav, sample_rate = _recording(utterance)
            seconds = len(wav) / sample_rate
            found, off = entry.read(), None
            if isinstance(found, Grid):
                alignment = self._by_times(found, spoken, seconds)
            else:
                of_frames = self._by_table if self._options.table else self._by_layout
                alignment, off = of_frames(found, spoken, seconds, utterance.id)
                alignment = self._with_pitch(alignment, found, utterance.id)
            check_coverage(alignment, wav, sample_rate)
        mel = self._config.mel
        frames = frame_durations(alignment.boundaries_s, mel)
        return aligned_speech(utterance, alignment, seconds, frames, mel), off

    def _by_times(self, grid: Grid, spoken: SpokenText, seconds: float) -> Alignment:
        check_times(grid)
        if self._options.names == "text":
            grid = renamed(grid, spoken)
        return align_grid(grid, spoken, seconds, self._config.edge_silence_s)

    def _by_layout(
        self, frames: np.ndarray, spoken: SpokenText, seconds: float, _id: str
    ) -> tuple[Alignment, int]:
        options, mel = self._options, self._config.mel
        frames = tokens.assign_frames(frames, spoken, options.tokens, end_token=options.end_token)
        frames, off = tokens.correct_sum(frames, seconds, self.rate, options.tolerance)
        most = int(seconds * mel.sample_rate) // mel.hop_length + 1  # frames of stage 1
        end_s = most * mel.hop_length / mel.sample_rate
        boundaries_s = np.minimum(self.rate.boundaries_s(frames), end_s)  # (N + 1,)
        return Alignment(spoken.phones, boundaries_s, spoken.words), off

    def _by_table(
        self, frames: np.ndarray, spoken: SpokenText, seconds: float, id: str
    ) -> tuple[Alignment, int]:
        table, named = self._options.table, self._table.tokens.get(id)
        if named is None:
            raise AlignmentError(f"{table} does not have it")
        if len(frames) != len(named.names):
            counts = f"it has {len(frames)} durations, {table} {len(named.names)} tokens"
            raise AlignmentError(counts, WRONG_COUNT)
        left_s, trimmed = seconds - (named.start_s or 0.0), named.start_s is not None
        tolerance = self._options.tolerance
        frames, off = tokens.correct_sum(frames, left_s, self.rate, tolerance, trimmed=trimmed)
        in_letters = self._config.text.in_letters
        grid = tokens.grid_of_tokens(named, frames, self.rate, in_letters=in_letters)
        return self._by_times(grid, spoken, seconds), off

    def _with_pitch(self, alignment: Alignment, frames: np.ndarray, id: str) -> Alignment:
        """Adds the pitch of tokens that last so many frames, (K,)."""
        if self._options.pitch is None:
            return alignment
        hz = self._options.pitch.read(id, len(frames))  # (K,)
        named = self._table.tokens.get(id)
        start_s = (named.start_s or 0.0) if named else 0.0
        edges_s = self.rate.boundaries_s(frames, start_s * self.rate.sample_rate)
        return replace(alignment, f0_hz=tokens.pitch_of_phones(edges_s, hz, alignment.boundaries_s))


def _check_attention(attention: PathQuality | None, least: float) -> None:
    if attention is not None and attention.least < least:
        measured = ", ".join(f"{name} {value:.2f}" for name, value in attention._asdict().items())
        fault = f"poor attention ({measured}; preprocess.min_attention is {least:g})"
        remedy = "train the voice longer, or check text and recording"
        raise AlignmentError(f"{fault}; {remedy}", "poor attention")


def _recording(utterance: Utterance) -> tuple[np.ndarray, int]:
    """The recording in mono, (S,), and its sample rate."""
    try:
        wav, sample_rate = soundfile.read(utterance.audio, dtype="float32", always_2d=True)
    except (soundfile.LibsndfileError, OSError) as error:
        raise AlignmentError(f"{utterance.audio}: not readable as audio ({error})") from None
    return wav.mean(axis=1), sample_rate


def renamed(grid: Grid, spoken: SpokenText) -> Grid:
    """Gives the phones of a grid the names of the text, in order."""
    names = [name for word in spoken.words for name in spoken.phones[word.start : word.end]]
    n_found = sum(phone.label not in PAUSES for phone in grid.phones)
    if n_found != len(names):
        counts = f"it has {n_found} phones, the text {len(names)}; --names source keeps its own"
        raise AlignmentError(counts, WRONG_COUNT)
    waiting = iter(names)
    labels = (p.label if p.label in PAUSES else next(waiting) for p in grid.phones)
    phones = [p._replace(label=label) for p, label in zip(grid.phones, labels, strict=True)]
    return grid._replace(phones=phones)


class Outcome:
    """The result of an import of the entries of a source, by utterance."""

    def __init__(self, source: DurationSource, utterances: Mapping[str, Utterance]) -> None:
        self.matches = match_names(source.entries, utterances.keys(), source.name_pattern)
        if not self.matches.entries:
            names = [*self.matches.doubled, *self.matches.extra]
            raise InputError(
                f"{source.path}: of its {len(names)} names ({', '.join(names[:3])}, ...) none is"
                f" that of one of the {len(utterances)} utterances alone; describe them by"
                " --name_pattern, as in '{id}_phones'"
            )
        self.utterances = utterances
        self.imported = 0  # utterances that stage 1 can use
        self.off: Counter[int] = Counter()  # frames too many or too few, if the source has frames
        doubled = ("doubled", "the source has it several times; remove all but one")
        missing = ("missing", "the source does not have it")
        # kind and reason, by id
        self.rejected = dict.fromkeys(self.matches.doubled, doubled)
        self.rejected |= dict.fromkeys(self.matches.missing, missing)

    @property
    def kinds(self) -> Counter[str]:
        """Number of rejected utterances of each kind, sorted."""
        return Counter(sorted(kind for kind, _ in self.rejected.values()))

    def fitted(self, fitter: Fitter) -> Iterator[AlignedSpeech]:
        """Yields the utterances that can be used, and counts the others."""
        with progress(len(self.matches.entries), "durations") as bar:
            for id, entry in self.matches.entries.items():
                bar.advance()
                try:
                    speech, off = fitter(entry, self.utterances[id])
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
    pitch, table = interpretation.pitch, interpretation.table
    if pitch is not None and source.format not in FRAME_FORMATS:
        fault = f"--pitch is of tokens with frames ({' or '.join(FRAME_FORMATS)})"
        raise InputError(f"{fault}; {source.path} holds {source.format}")
    outcome = Outcome(source, utterances)
    if table is None and source.format == "npy" and (source.path / TABLE).is_file():
        table = source.path / TABLE
    fitter = Fitter(config.preprocess, replace(interpretation, table=table))
    with _replaced(target) as folder:
        write_alignments(folder, outcome.fitted(fitter))
        _write_report(folder, source, fitter.rate, outcome)
    _log_outcome(target, fitter.rate, outcome)
    if pitch is not None and config.preprocess.pitch_extractor != "imported":
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
        fault = f"{target} is not an import"
        raise InputError(f"{fault}; choose another --output, and set preprocess.imported_dir to it")


def _is_import(folder: Path) -> bool:
    return (folder / f"{REPORT}.json").is_file()


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


def _write_report(folder: Path, source: DurationSource, frame: FrameRate, outcome: Outcome) -> None:
    report = {
        "source": str(source.path),
        "format": source.format,
        "frame": str(frame) if outcome.off else "",
        "matched": len(outcome.matches.entries),
        "imported": outcome.imported,
        "extra": outcome.matches.extra,
        "rejected": outcome.kinds,
        "frames_off": {f"{off:+d}": n for off, n in sorted(outcome.off.items())},
    }
    entries = outcome.matches.entries.items()
    attention = [(entry.attention, id) for id, entry in entries if entry.attention is not None]
    if attention:
        worst_first = sorted(attention, key=lambda row: (row[0].least, row[1]))
        rows = ({"id": id, **_rounded(quality)} for quality, id in worst_first)
        write_jsonl(folder / "attention.jsonl", rows)
        qualities = [quality for quality, _ in attention]
        report["attention"] = _rounded(PathQuality(*map(median, zip(*qualities, strict=True))))
        _log.info("attention, medians: %s; attention.jsonl has each utterance", report["attention"])
    rejected = sorted(outcome.rejected.items())
    rows = ({"id": id, "kind": kind, "reason": reason} for id, (kind, reason) in rejected)
    write_jsonl(folder / "rejected.jsonl", rows)
    write_json(folder / f"{REPORT}.json", report)


def _rounded(quality: PathQuality) -> dict[str, float]:
    return {name: round(value, 4) for name, value in quality._asdict().items()}


def _log_outcome(target: Path, frame: FrameRate, outcome: Outcome) -> None:
    if outcome.off:
        off = ", ".join(f"{off:+d} ({n})" for off, n in sorted(outcome.off.items()))
        _log.info("a frame is %s; frames too many or too few, and how often: %s", frame, off)
    kinds = "".join(f", {n} {kind}" for kind, n in outcome.kinds.items())
    counts = (len(outcome.matches.entries), outcome.imported, len(outcome.matches.extra))
    _log.info("%d matched, %d imported, %d extra%s: %s", *counts, kinds, target)
