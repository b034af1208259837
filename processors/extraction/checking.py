"""A check of a corpus before stage 1, which writes nothing."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from config.preprocess import PreprocessConfig
from config.schema import Config
from preprocessors.manifest import Listing, Rejection, Utterance
from processors.alignment.aligner import find_aligner, make_aligner
from processors.extraction import shards
from processors.extraction.plan import allowed_faults, limit_of, list_corpus
from utils.errors import listed
from utils.logging import progress
from utils.parallel import run_chunks


@dataclass(frozen=True)
class CorpusCheck:
    """What a check found in a corpus."""

    dataset: str
    root: Path  # folder of the corpus
    listing: Listing  # by the reader of the corpus
    max_bad_ratio: float  # config key of this name
    rejected: list[Rejection]  # what stage 1 would reject, sorted by id
    traces: dict[str, shards.Trace]  # by id

    @property
    def n_listed(self) -> int:
        """Entries of the corpus, good or bad."""
        return len(self.listing.utterances) + len(self.listing.rejected)

    @property
    def passes(self) -> bool:
        """Whether stage 1 would accept the corpus."""
        n_allowed = allowed_faults(self.n_listed, self.max_bad_ratio)
        return len(self.rejected) < self.n_listed and len(self.rejected) <= n_allowed

    def report(self) -> str:
        """Returns the findings as text, a line for each faulty utterance."""
        return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        traces = self.traces.items()
        seconds = [trace.audio_seconds for _, trace in traces if trace.audio_seconds > 0]
        lengths = f"{sum(seconds) / 3600:.2f} h"
        if seconds:
            lengths += f", {min(seconds):.1f} to {max(seconds):.1f} s each"
        yield f"{self.dataset}: {self.n_listed} utterances, {lengths}, in {self.root}"
        speakers = Counter(utterance.speaker for utterance in self.listing.utterances)
        yield f"  speakers: {', '.join(f'{name} ({n})' for name, n in sorted(speakers.items()))}"
        yield from (f"  {notice}" for notice in self.listing.notices)
        if self.rejected:
            yield f"Stage 1 would reject {len(self.rejected)} of {self.n_listed}:"
            yield from (f"  {item.id}: {item.reason}" for item in self.rejected)
        notices = ((id, notice) for id, trace in traces for notice in trace.notices)
        yield from _grouped("Usable, with notices:", notices)
        words = ((id, word) for id, trace in traces for word in trace.out_of_vocabulary)
        yield from _grouped("Words in no lexicon, whose pronunciation is guessed:", words)
        rule, verdict = limit_of(self.n_listed, self.max_bad_ratio), "all utterances can be used"
        if self.rejected:
            verdict = f"stage 1 would fail; {rule}; correct them or raise it"
            if self.passes:
                verdict = f"stage 1 would leave them out and go on; {rule}"
        yield f"{self.dataset}: {verdict}"


def _grouped(title: str, texts: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yields a title, and a line for each text with its ids, the most frequent first."""
    ids = defaultdict(list)
    for id, text in sorted(set(texts)):
        ids[text].append(id)
    if ids:
        yield title
    for text, where in sorted(ids.items(), key=lambda item: (-len(item[1]), item[0])):
        yield f"  {text}: {listed(where)}"


def check_corpus(config: Config, dataset: str, n_jobs: int) -> CorpusCheck:
    """Reads all recordings and texts of a dataset as stage 1 does; writes nothing.

    TextGrids and imported durations are read too; other aligners are not run.
    """
    options = config.preprocess
    root, listing = list_corpus(config, dataset)
    make_checker = partial(UtteranceChecker, options, root, with_text=config.task == "tts")
    make_checker()  # a fault of no single utterance shows now
    rejected, traces = list(listing.rejected), dict[str, shards.Trace]()
    chunks = shards.plan_shards(listing.utterances, options.shard_size)
    work = partial(_check, make_checker)
    with progress(len(listing.utterances), f"check: {dataset}") as bar:
        for done in run_chunks(work, chunks, n_jobs, options.backend):
            found, of_chunk = done.result
            rejected += [*found, *shards.crash_rejections(done.lost, "audio")]
            traces |= of_chunk
            bar.advance(len(chunks[done.key]))
    return CorpusCheck(dataset, root, listing, options.max_bad_ratio, sorted(rejected), traces)


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
