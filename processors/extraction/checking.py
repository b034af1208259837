"""A check of a corpus before stage 1, which writes nothing."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from config.preprocess import PreprocessConfig
from config.schema import Config
from preprocessors.corpora import dataset_folder
from preprocessors.manifest import Listing, Rejection, UnusableCorpus, Utterance
from processors.alignment.aligner import find_aligner, make_aligner
from processors.extraction import shards
from processors.extraction.plan import allowed_faults, limit_of, list_corpus
from utils.errors import listed
from utils.logging import progress
from utils.parallel import run_chunks

_STAGES = ("corpus", "audio", "text", "alignment", "features")


class Finding(NamedTuple):
    """A fault or a particularity of some utterances."""

    kind: str  # stage of a rejection; "misfit" of recording and text, "notice" or "word"
    ids: list[str]  # the utterances; empty: the corpus
    text: str  # what was found
    misfit: float = 0.0  # nats, of the kind "misfit"

    @property
    def is_fault(self) -> bool:
        """Whether it must be corrected."""
        return self.kind not in ("notice", "word")


@dataclass(frozen=True)
class CorpusCheck:
    """What a check found in a corpus."""

    dataset: str
    root: Path  # folder of the corpus
    listing: Listing  # by the reader of the corpus
    max_bad_ratio: float  # config key of this name
    rejected: list[Rejection]  # what stage 1 would reject, sorted by id
    traces: dict[str, shards.Trace]  # by id
    fault: str = ""  # why the corpus as a whole cannot be used
    misfits: tuple[Finding, ...] = ()  # worst first

    @property
    def n_listed(self) -> int:
        """Entries of the corpus, good or bad."""
        return len(self.listing.utterances) + len(self.listing.rejected)

    @property
    def passes(self) -> bool:
        """Whether stage 1 would accept the corpus."""
        n_allowed = allowed_faults(self.n_listed, self.max_bad_ratio)
        n_bad = len(self.rejected)
        return not self.fault and n_bad < self.n_listed and n_bad <= n_allowed

    @property
    def findings(self) -> list[Finding]:
        """Everything that was found, the worst first."""
        findings = [Finding("corpus", [], self.fault)] if self.fault else []
        by_stage = sorted(self.rejected, key=lambda item: (_STAGES.index(item.stage), item.id))
        findings += [Finding(item.stage, [item.id], item.reason) for item in by_stage]
        traces = self.traces.items()
        notices = ((id, notice) for id, trace in traces for notice in trace.notices)
        words = ((id, word) for id, trace in traces for word in trace.out_of_vocabulary)
        return [*findings, *self.misfits, *_grouped("notice", notices), *_grouped("word", words)]

    def summary(self) -> dict[str, Any]:
        """Returns the corpus and all findings, for JSON."""
        seconds = [t.audio_seconds for t in self.traces.values() if t.audio_seconds > 0]
        names = {u.id: u.name for u in self.listing.utterances if u.name}
        findings = self.findings
        return {
            "corpus": str(self.root),
            "utterances": self.n_listed,
            "hours": sum(seconds) / 3600,
            "shortest_s": min(seconds, default=0.0),
            "longest_s": max(seconds, default=0.0),
            "speakers": dict(sorted(Counter(u.speaker for u in self.listing.utterances).items())),
            "notices": self.listing.notices,
            "to_correct": sum(finding.is_fault for finding in findings),
            "findings": [
                {**finding._asdict(), "names": [names.get(id, id) for id in finding.ids]}
                for finding in findings
            ],
        }

    def report(self) -> str:
        """Writes the corpus and a table of all findings as text."""
        summary = self.summary()
        lengths = "{hours:.2f} h, {shortest_s:.1f} to {longest_s:.1f} s each".format(**summary)
        speakers = ", ".join(f"{name} ({n})" for name, n in summary["speakers"].items())
        lines = [f"{self.dataset}: {self.n_listed} utterances, {lengths}, in {self.root}"]
        lines += [f"  {line}" for line in (f"speakers: {speakers}", *self.listing.notices)]
        lines.append(f"  {summary['to_correct']} to correct")
        rows = [("found in", "utterances", "what")] if summary["findings"] else []
        for finding in summary["findings"]:
            kind = f"misfit {finding['misfit']:.0f}" if finding["misfit"] else finding["kind"]
            rows.append((kind, listed(finding["names"], 3), " ".join(finding["text"].split())))
        widths = [max((len(row[column]) for row in rows), default=0) for column in (0, 1)]
        lines += [f"{kind:{widths[0]}}  {ids:{widths[1]}}  {text}" for kind, ids, text in rows]
        return "".join(f"{line}\n" for line in lines)

    @property
    def verdict(self) -> str:
        """What stage 1 would do."""
        rule = limit_of(self.n_listed, self.max_bad_ratio)
        if not self.passes:
            return f"{self.dataset}: stage 1 would fail; {rule}; correct them or raise it"
        if self.rejected:
            return f"{self.dataset}: stage 1 would leave them out and go on; {rule}"
        return f"{self.dataset}: all utterances can be used"


def _grouped(kind: str, texts: Iterable[tuple[str, str]]) -> list[Finding]:
    """Makes a finding for each text with its utterances, the most frequent first."""
    ids = defaultdict(list)
    for id, text in sorted(set(texts)):
        ids[text].append(id)
    frequent_first = sorted(ids.items(), key=lambda item: (-len(item[1]), item[0]))
    return [Finding(kind, of_text, text) for text, of_text in frequent_first]


def check_corpus(config: Config, dataset: str, n_jobs: int) -> CorpusCheck:
    """Reads all recordings and texts of a dataset as stage 1 does; writes nothing.

    TextGrids and imported durations are read too; other aligners are not run.
    """
    options = config.preprocess
    fault = ""
    try:
        root, listing = list_corpus(config, dataset)
    except UnusableCorpus as error:
        root, listing = dataset_folder(dataset, config.dataset_path), error.listing
        fault = str(error).partition("\n")[0].rstrip(":")
    make_checker = partial(UtteranceChecker, options, root, with_text=config.task == "tts")
    make_checker()  # a fault of no single utterance shows now
    rejected, traces = list(listing.rejected), dict[str, shards.Trace]()
    chunks = shards.plan_shards(listing.utterances, options.shard_size)
    work = partial(_check, make_checker)
    with progress(len(listing.utterances), f"check: {dataset}") as bar:
        for done in run_chunks(work, chunks, n_jobs, options.backend) if chunks else ():
            rejected += [*done.result[0], *shards.crash_rejections(done.lost, "audio")]
            traces |= done.result[1]
            bar.advance(len(chunks[done.key]))
    ratio = options.max_bad_ratio
    return CorpusCheck(dataset, root, listing, ratio, sorted(rejected), traces, fault)


def _check(
    make_checker: "partial[UtteranceChecker]", _name: str, utterances: Sequence[Utterance]
) -> tuple[list[Rejection], dict[str, shards.Trace]]:
    """Checks a part of a corpus, in a worker process."""
    checker = shards.once_per_process(make_checker, repr(make_checker))
    checker.reader.prepare(utterances if checker.with_text else ())
    rejected: list[Rejection] = []
    traces = {utterance.id: shards.Trace() for utterance in utterances}
    for utterance in utterances:
        shards.extract_or_reject(checker.read, utterance, traces[utterance.id], rejected)
    return rejected, traces


class UtteranceChecker:
    """Reads utterances as stage 1 does; built once per process."""

    def __init__(self, config: PreprocessConfig, root: Path, *, with_text: bool) -> None:
        self.reader = shards.UtteranceReader(config)
        self.with_text = with_text
        self._config = config
        reads_files = with_text and find_aligner(config).files is not None
        self.align = make_aligner(config, root) if reads_files else None

    def read(self, utterance: Utterance, trace: shards.Trace) -> None:
        """Reads recording, text and alignment file; raises as stage 1 does."""
        if not self.with_text:
            shards.read_recording(utterance, self._config, trace)
            return
        wav, spoken = self.reader.read(utterance, trace)
        trace.out_of_vocabulary = spoken.out_of_vocabulary
        if self.align is not None:
            trace.part = "alignment"
            alignment = self.align(utterance, wav, spoken)
            trace.notices = (*trace.notices, *alignment.notices)
