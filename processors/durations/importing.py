"""Imports durations of other programs as the files that stage 1 reads."""

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from config.preprocess import PreprocessConfig
from config.schema import Config
from preprocessors.manifest import Utterance
from processors.alignment.aligner import AlignmentError, naming
from processors.alignment.fit import check_coverage
from processors.alignment.imported import imported_folder
from processors.alignment.timed import Grid, align_grid, check_text, make_grid
from processors.durations import FRAME_FORMATS, sources
from processors.durations.sources import DurationSource, FrameRate, Matches, ReadPitch, Table
from processors.durations.writing import AlignedSpeech, aligned_speech
from processors.durations.writing import write_json as write_alignments
from processors.extraction.features import frame_durations
from processors.extraction.plan import check_faults, list_corpus
from processors.extraction.shards import Trace, read_recording
from processors.records import SpokenText, TimedPhone
from processors.text.frontend import Frontends
from processors.text.symbols import APOSTROPHE
from utils.errors import InputError, UtteranceError
from utils.files import new_folder, write_json, write_jsonl
from utils.logging import get_logger, progress

_log = get_logger(__name__)

# tokens of other projects that are not phones
_SIGNS = {*",.!?;:-'\"_|~#", *["", "...", "<space>", "sil", "sp", "end"]}
_SIGNS |= {"eos", "<eos>", "bos", "<bos>"}


class Fitter:
    """Fits the durations of single recordings to their texts and lengths.

    The tokens of a source of frames are those of stage 1, or named by a table.
    """

    def __init__(
        self, config: PreprocessConfig, table: Table | None = None, pitch: ReadPitch | None = None
    ) -> None:
        self._config = config
        self._frontends = Frontends(config.text)
        self._tokens = None if table is None else table.tokens
        self._stage_1 = FrameRate(config.hop_length, config.sample_rate)
        self._rate = (table.rate if table else None) or self._stage_1
        self._pitch = pitch

    def __call__(self, entry: sources.SourceEntry, utterance: Utterance) -> AlignedSpeech:
        """Fits the entry of an utterance; AlignmentError if it does not fit text and recording."""
        spoken = self._frontends[utterance.language](utterance.spoken)
        with naming(entry.path):
            check_text(entry.text, utterance)
            least, attention = self._config.min_attention, entry.attention
            if attention is not None and attention.least < least:
                shown = ", ".join(f"{name} {v:.2f}" for name, v in attention._asdict().items())
                fault = f"poor attention ({shown}; preprocess.min_attention is {least:g})"
                remedy = "train the voice longer, or check text and recording"
                raise AlignmentError(f"{fault}; {remedy}")
            wav = read_recording(utterance, self._config, Trace())  # (S,)
            sample_rate = self._config.sample_rate
            seconds = len(wav) / sample_rate
            grid = entry.read()
            if not isinstance(grid, Grid):
                grid = self._grid(grid, spoken, seconds, utterance.id)
            alignment = align_grid(grid, spoken, seconds, self._config.edge_silence_s)
            check_coverage(alignment, wav, sample_rate)
        frames = frame_durations(alignment.boundaries_s, self._config.mel)
        return aligned_speech(utterance, alignment, seconds, frames, self._config.mel)

    def _grid(self, frames: np.ndarray, spoken: SpokenText, seconds: float, id: str) -> Grid:
        """Returns the tokens of an utterance with the times of their frames, (N,)."""
        tokens = sources.Tokens(spoken.phones) if self._tokens is None else self._tokens.get(id)
        if tokens is None:
            raise AlignmentError("the table of tokens does not have it")
        names = tokens.names
        if len(frames) != len(names):
            counts = f"it has {len(frames)} durations for {len(names)} tokens"
            raise AlignmentError(f"{counts} ({' '.join(names)[:60]} ...); see --phones_file")
        start_s = tokens.start_s or 0.0
        is_trimmed = tokens.start_s is not None
        frames = sources.correct_sum(frames, seconds - start_s, self._rate, trimmed=is_trimmed)
        times_s = self._rate.boundaries_s(frames, start_s * self._rate.sample_rate)  # (N + 1,)
        hop, rate = self._stage_1
        most = int((seconds - start_s) * rate) // hop + 1  # frames
        end_s = self._stage_1.boundaries_s(np.array([most]), start_s * rate)[-1]
        edges: list[float] = np.minimum(times_s, end_s).tolist()
        if self._tokens is not None and names != spoken.phones:
            in_letters = self._config.text.in_letters
            signs = _SIGNS - {APOSTROPHE} if in_letters else _SIGNS  # apostrophes are letters
            names = tuple("" if name.lower() in signs else name for name in names)
            return make_grid(None, [], [*map(TimedPhone, names, edges[:-1], edges[1:])])
        grid = Grid(None, [], [*map(TimedPhone, names, edges[:-1], edges[1:])])
        if self._pitch is None:
            return grid
        hz = np.where(np.diff(edges) > 0, self._pitch(id, len(frames)), 0.0)  # (N,)
        return grid._replace(f0_hz=tuple(hz.tolist()))


def import_durations(
    config: Config,
    dataset: str,
    source: DurationSource,
    *,
    phones_file: Path | None = None,
    pitch: ReadPitch | None = None,
    output: Path | None = None,
) -> None:
    """Writes `<id>.json` for each utterance of a corpus that a source has durations of.

    The folder also gets `import.json`, with counts, and `rejected.jsonl`, with the reason for each
    utterance that was left out; if the source is a voice also `attention.jsonl`, with the quality
    of the attention on each utterance, the worst first. The source is only read. An InputError ends
    it before anything is written, if the source or the corpus cannot be used, and at the end, if
    too many utterances have no durations.

    Args:
        phones_file: Names the tokens of a source of frames; None: `phones.txt` next to them, if
            there is one, else they are those of stage 1.
        pitch: Reads the pitch of the tokens of an utterance; None: stage 1 measures it.
        output: Folder, in which an older import is replaced; None: the one that stage 1 reads.
    """
    options = config.preprocess
    root, listing = list_corpus(config, dataset)
    utterances = {utterance.id: utterance for utterance in listing.utterances}
    target = output or imported_folder(options, root)
    if source.path.resolve().is_relative_to(target.resolve()):
        raise InputError(f"{target} holds the source; choose another --output")
    is_empty = not target.exists() or (target.is_dir() and not any(target.iterdir()))
    if not is_empty and not (target / sources.REPORT).is_file():  # no import wrote it
        remedy = "choose another --output, and set preprocess.imported_dir to it"
        raise InputError(f"{target} is not an import; {remedy}")
    fitter = Fitter(options, _table_of(source, phones_file, pitch), pitch)
    matches = sources.match_names(source, utterances.keys())
    rejected: dict[str, str] = {}
    complete = target.with_name(f"{target.name}.new")
    with new_folder(complete) as folder:
        write_alignments(folder, _fitted(fitter, matches, utterances, rejected))
        rejected |= matches.rejected  # missing utterances last
        _write_report(folder, source, matches, rejected)
    if target.is_dir():
        shutil.rmtree(target)
    complete.replace(target)
    counts = (len(utterances) - len(rejected), len(rejected), len(matches.extra))
    _log.info("%d imported, %d rejected, %d extra: %s", *counts, target)
    reasons = [f"{id}: {reason}" for id, reason in rejected.items()]
    what = f"{len(reasons)} of {len(utterances)} utterances have no durations"
    check_faults(what, reasons, len(utterances), options.max_bad_ratio, target / "rejected.jsonl")


def _table_of(
    source: DurationSource, phones_file: Path | None, pitch: ReadPitch | None
) -> Table | None:
    """Returns the names of the tokens of a source; None: they are those of stage 1."""
    if phones_file is None and source.format == "npy" and (source.path / sources.TABLE).is_file():
        phones_file = source.path / sources.TABLE
    if pitch is not None and (phones_file or source.format not in FRAME_FORMATS):
        fault = f"--pitch goes with frames of the tokens of stage 1 ({' or '.join(FRAME_FORMATS)})"
        raise InputError(f"{fault}; {source.path} holds {source.format} of named tokens")
    return sources.read_table(phones_file) if phones_file else None


def _fitted(
    fitter: Fitter, matches: Matches, utterances: Mapping[str, Utterance], rejected: dict[str, str]
) -> Iterator[AlignedSpeech]:
    """Yields the utterances that can be used; adds the reason for each of the others."""
    with progress(len(matches.entries), "durations") as bar:
        for id, entry in matches.entries.items():
            bar.advance()
            try:
                speech = fitter(entry, utterances[id])
            except (UtteranceError, InputError) as error:
                rejected[id] = str(error)
            else:
                yield speech


def _write_report(
    folder: Path, source: DurationSource, matches: Matches, rejected: Mapping[str, str]
) -> None:
    rows = [{"id": id, "reason": reason} for id, reason in sorted(rejected.items())]
    write_jsonl(folder / "rejected.jsonl", rows)
    attention = {id: e.attention for id, e in matches.entries.items() if e.attention is not None}
    if worst_first := sorted(attention.items(), key=lambda item: (item[1].least, item[0])):
        qualities = ((id, quality._asdict().items()) for id, quality in worst_first)
        rows = [{"id": id, **{name: round(v, 4) for name, v in q}} for id, q in qualities]
        write_jsonl(folder / "attention.jsonl", rows)
    counts = {"matched": len(matches.entries), "rejected": len(rejected), "extra": matches.extra}
    report = {"source": str(source.path), "format": source.format, **counts}
    write_json(folder / sources.REPORT, report)
