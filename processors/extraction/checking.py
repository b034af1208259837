"""A check of a corpus before stage 1, which writes nothing."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

from config.preprocess import PreprocessConfig
from config.schema import Config
from preprocessors.manifest import Listing, Rejection, Utterance
from processors.alignment import alignment_file, make_aligner
from processors.audio.files import read_audio
from processors.extraction.finishing import allowed_faults
from processors.extraction.plan import list_corpus
from processors.extraction.reading import UtteranceReader
from processors.extraction.shards import Trace, extract_or_reject, plan_shards, tools_for
from utils.logging import progress
from utils.parallel import run_chunks

_SHOWN = 5  # ids of one notice or word
_WITHOUT_ALIGNMENT = ("learned", "none")  # aligners that find no times in stage 1


class Findings(NamedTuple):
    """What a check found in some utterances."""

    rejected: list[Rejection]
    seconds: dict[str, float]  # of each readable recording, by id
    notices: list[tuple[str, str]]  # ids, and what is odd about them
    guessed: list[tuple[str, str]]  # ids, and words that no lexicon has

    def add(self, other: "Findings") -> None:
        """Adds what was found in other utterances."""
        self.rejected.extend(other.rejected)
        self.seconds.update(other.seconds)
        self.notices.extend(other.notices)
        self.guessed.extend(other.guessed)


@dataclass
class CorpusCheck:
    """What a check found in a corpus."""

    dataset: str
    root: Path  # folder of the corpus
    listing: Listing  # by the reader of the corpus
    max_bad_ratio: float  # config key of this name
    # the aligner that stage 1 runs after this check; empty if it computes nothing
    computing_aligner: str = ""
    found: Findings = field(default_factory=lambda: Findings([], {}, [], []))

    @property
    def rejected(self) -> list[Rejection]:
        """Utterances that stage 1 would reject, sorted by id."""
        return sorted([*self.listing.rejected, *self.found.rejected])

    @property
    def n_listed(self) -> int:
        """Entries of the corpus, good or bad."""
        return len(self.listing.utterances) + len(self.listing.rejected)

    @property
    def passes(self) -> bool:
        """Whether stage 1 would accept the corpus."""
        n_bad, n_all = len(self.rejected), self.n_listed
        return n_bad < n_all and n_bad <= allowed_faults(n_all, self.max_bad_ratio)

    def report(self) -> str:
        """The findings as text, a line for each faulty utterance."""
        return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        seconds = self.found.seconds
        hours = sum(seconds.values()) / 3600
        yield f"{self.dataset}: {self.n_listed} utterances, {hours:.2f} h, in {self.root}"
        if seconds:
            yield f"  lengths: {min(seconds.values()):.1f} to {max(seconds.values()):.1f} s"
        speakers = Counter(utterance.speaker for utterance in self.listing.utterances)
        yield f"  speakers: {', '.join(f'{name} ({n})' for name, n in sorted(speakers.items()))}"
        yield from (f"  {notice}" for notice in self.listing.notices)
        if rejected := self.rejected:
            yield f"Stage 1 would reject {len(rejected)} of {self.n_listed}:"
            yield from (f"  {item.id}: {item.reason}" for item in rejected)
        yield from _grouped("Usable, with notices:", self.found.notices)
        guessed = "Words in no lexicon, whose pronunciation is guessed:"
        yield from _grouped(guessed, self.found.guessed)
        if self.computing_aligner:
            yield (
                f"Not checked: whether preprocess.aligner {self.computing_aligner} can align the"
                " recordings; stage 1 computes the alignments"
            )
        yield self._verdict()

    def _verdict(self) -> str:
        if not self.rejected:
            return f"{self.dataset}: all utterances can be used"
        allowed = allowed_faults(self.n_listed, self.max_bad_ratio)
        rule = f"preprocess.max_bad_ratio {self.max_bad_ratio:g} allows {allowed}"
        if self.passes:
            return f"{self.dataset}: stage 1 would leave them out and go on; {rule}"
        return f"{self.dataset}: stage 1 would fail; {rule}: correct them or raise max_bad_ratio"


def _grouped(title: str, found: Sequence[tuple[str, str]]) -> Iterator[str]:
    """A title, and a line for each text with its ids, the most frequent first."""
    ids = defaultdict(list)
    for id, text in sorted(found):
        ids[text].append(id)
    if ids:
        yield title
    for text, where in sorted(ids.items(), key=lambda item: (-len(item[1]), item[0])):
        more = f" and {len(where) - _SHOWN} more" if len(where) > _SHOWN else ""
        yield f"  {text}: {', '.join(where[:_SHOWN])}{more}"


def check_corpus(config: Config, dataset: str, n_jobs: int) -> CorpusCheck:
    """Reads all recordings and texts of a corpus as stage 1 does; writes nothing.

    TextGrids and imported durations are read too; other aligners are not run.

    Args:
        config: The experiment.
        dataset: One of `config.dataset`.
        n_jobs: Worker processes.

    Raises:
        InputError: If the corpus or the config cannot be used.
    """
    options = config.preprocess
    root, listing = list_corpus(config, dataset)
    make_tools = partial(_Tools, options, root, with_text=config.task == "tts")
    tools = make_tools()  # a fault of no single utterance shows now
    computed = tools.with_text and not tools.aligns and options.aligner not in _WITHOUT_ALIGNMENT
    aligner = options.aligner if computed else ""
    check = CorpusCheck(dataset, root, listing, options.max_bad_ratio, aligner)
    chunks = plan_shards(listing.utterances, options.shard_size)
    with progress(len(listing.utterances), f"check: {dataset}") as bar:
        for done in run_chunks(_Work(make_tools), chunks, n_jobs, options.backend):
            lost = [
                Rejection(
                    one.id, "audio", "a worker process crashed on it; is the recording damaged?"
                )
                for one in done.lost
            ]
            check.found.add(done.result)
            check.found.rejected.extend(lost)
            bar.advance(len(chunks[done.key]))
    return check


@dataclass(frozen=True)
class _Work:
    """Checks a part of a corpus; it is sent to the worker processes."""

    make_tools: "partial[_Tools]"

    def __call__(self, _name: str, utterances: Sequence[Utterance]) -> Findings:
        tools = tools_for(self.make_tools, repr(self))
        tools.reader.prepare(utterances if tools.with_text else ())
        found = Findings([], {}, [], [])
        for utterance in utterances:
            trace = Trace()
            extract_or_reject(tools.read, utterance, trace, found.rejected)
            if trace.audio_seconds > 0:
                found.seconds[utterance.id] = trace.audio_seconds
            found.notices.extend((utterance.id, notice) for notice in trace.notices)
            found.guessed.extend((utterance.id, word) for word in trace.out_of_vocabulary)
        return found


class _Tools:
    """What checks utterances; built once per process."""

    def __init__(self, config: PreprocessConfig, root: Path, *, with_text: bool) -> None:
        self.reader = UtteranceReader(config)
        self.with_text = with_text
        self._config = config
        some = Utterance("a", Path("a.wav"), "", "")
        from_files = with_text and alignment_file(some, config, root) is not None
        self._align = make_aligner(config, root) if from_files else None

    @property
    def aligns(self) -> bool:
        """Whether alignments are read, from files."""
        return self._align is not None

    def read(self, utterance: Utterance, trace: Trace) -> None:
        """Reads recording, text and alignment file; raises as stage 1 does."""
        if not self.with_text:
            audio = read_audio(utterance.audio, self._config)
            trace.audio_seconds = len(audio.wav) / self._config.sample_rate
            trace.notices = audio.notices
            return
        wav, spoken, trace.notices = self.reader.read(utterance, trace)
        trace.out_of_vocabulary = tuple(dict.fromkeys(spoken.out_of_vocabulary))
        if self._align is not None:
            trace.start("alignment")
            found = self._align(utterance, wav, self._config.sample_rate, spoken)
            trace.notices = (*trace.notices, *found.notices)
