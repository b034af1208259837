"""One shard of a store: its utterances, the work that makes it, and the report on that work."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

from config.preprocess import PreprocessConfig
from modules.mel import MelConfig
from preprocessors.manifest import Rejection, Utterance
from processors.audio.files import read_audio
from processors.dataset.store import IndexRow, is_whole, shard_path, shard_writer
from processors.records import AlignmentScore, Features, MelWav, SpokenText
from processors.text.frontend import Frontends
from utils.errors import InputError, UtteranceError
from utils.files import read_json, write_json
from utils.seed import derived_seed

# small corpora too are spread over the cores, and show progress
_LEAST_SHARDS, _LEAST_SIZE = 16, 8  # the size in utterances, if there are so many
_COUNTED = ("phones", "text_phones", "out_of_vocabulary", "notices")
Record = TypeVar("Record")
Made = TypeVar("Made")


@dataclass
class Trace:
    """Progress of the work on one utterance, and what the report says about it."""

    part: str = "audio"  # of the work: audio, text, alignment or features
    audio_seconds: float = 0.0  # length of the recording; 0 while it is not read
    score: AlignmentScore | None = None  # fit of recording and text, if the aligner measures it
    notices: tuple[str, ...] = ()  # about audio, text and alignment of a usable utterance
    # what follows is set when the work has succeeded
    phones: tuple[str, ...] = ()  # of the alignment
    text_phones: tuple[str, ...] = ()  # from the text frontend; an aligner may have others
    out_of_vocabulary: tuple[str, ...] = ()  # words pronounced by rule


@dataclass
class ShardReport:
    """Result of the work on a shard; written next to it, as `shard-00000.json`."""

    rows: list[IndexRow] = field(default_factory=list)  # its part of the index
    rejected: list[Rejection] = field(default_factory=list)
    audio_seconds: dict[str, float] = field(default_factory=dict)  # of readable recordings, by id
    scores: dict[str, AlignmentScore] = field(default_factory=dict)  # by id, also of rejected ones
    phones: Counter[str] = field(default_factory=Counter)  # phones and pauses of the alignments
    text_phones: Counter[str] = field(default_factory=Counter)
    out_of_vocabulary: Counter[str] = field(default_factory=Counter)
    notices: Counter[str] = field(default_factory=Counter)
    fingerprint: str = ""  # of what the shard was made from

    def add_utterance(self, id: str, trace: Trace) -> None:
        """Adds the trace of a usable or rejected utterance."""
        if trace.score is not None:
            self.scores[id] = trace.score
        if trace.audio_seconds > 0:
            self.audio_seconds[id] = trace.audio_seconds
        self._count(trace)

    def add(self, other: "ShardReport") -> None:
        """Adds the report on another shard."""
        self.rows += other.rows
        self.rejected += other.rejected
        self.audio_seconds |= other.audio_seconds
        self.scores |= other.scores
        self._count(other)

    def _count(self, other: "Trace | ShardReport") -> None:
        for name in _COUNTED:
            getattr(self, name).update(getattr(other, name))


def most_common(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """Names and their counts, the most frequent first; equally frequent ones by name."""
    # `Counter.most_common` depends on the order of counting, and so on which shard ends first
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def plan_shards(utterances: Sequence[Utterance], shard_size: int) -> dict[str, list[Utterance]]:
    """Distributes utterances over shards, by id alone: sorted utterances by name of the shard.

    The shard of an utterance follows from a hash of its id, by linear hashing (Litwin 1980), so
    that neither the order nor other utterances matter, and one utterance more or less changes one
    shard, or the two between which a shard is split when there are too many. `shard_size` is a
    mean; single shards have up to about twice as many.
    """
    n = len(utterances)
    n_shards = max(math.ceil(n / shard_size), min(_LEAST_SHARDS, n // _LEAST_SIZE), 1)
    power = 1 << (n_shards - 1).bit_length()
    shards: dict[str, list[Utterance]] = {}
    for utterance in sorted(utterances, key=lambda utterance: utterance.id):
        number = derived_seed("shard", utterance.id) % power  # the lowest bits
        number -= power // 2 if number >= n_shards else 0  # one less: it is not split yet
        shards.setdefault(f"shard-{number:05d}", []).append(utterance)
    return dict(sorted(shards.items()))


# Makes the record of one utterance; raises UtteranceError or InputError for its faults.
Extract = Callable[[Utterance, Trace], Features | MelWav]


@dataclass(frozen=True)
class ShardWork:
    """Makes one shard at a time; it is sent to the worker processes."""

    make_extractor: Callable[[], Extract]  # called once per process; its `repr` names the dataset
    folder: Path  # where processed data go
    mel: MelConfig
    # what the extractor depends on that is not in that `repr`, such as the content of a file:
    # processes outlive a run, and must not reuse what an earlier run read
    other: Mapping[str, object] = field(default_factory=dict)

    def __call__(self, name: str, utterances: Sequence[Utterance]) -> ShardReport:
        """Extracts and writes the shard of this name.

        A fault of one utterance becomes a rejection, and so does an unexpected exception: one
        utterance must not cost a day of work. Faults of the disk and of the extractor end the work.
        """
        extract, report = once_per_process(self.make_extractor, repr(self)), ShardReport()
        ids = [utterance.id for utterance in utterances]
        with shard_writer(shard_path(self.folder, name), ids, self.mel) as writer:
            for utterance in utterances:
                trace = Trace()
                record = extract_or_reject(extract, utterance, trace, report.rejected)
                if record is not None:
                    writer.add(record)
                report.add_utterance(utterance.id, trace)
        report.rows = writer.rows
        return report


def extract_or_reject(
    extract: Callable[[Utterance, Trace], Record],
    utterance: Utterance,
    trace: Trace,
    rejected: list[Rejection],
) -> Record | None:
    """Makes the record of one utterance, or None: its fault, or a bug, is added to `rejected`."""
    try:
        return extract(utterance, trace)
    except (UtteranceError, InputError) as error:
        reason = str(error)
    except Exception as error:  # noqa: BLE001  (one utterance must not cost a day of work)
        reason = f"unexpected {type(error).__name__}: {error}"
    trace.notices = ()
    rejected.append(Rejection(utterance.id, trace.part, reason))
    return None


def crash_rejections(utterances: Iterable[Utterance], stage: str) -> list[Rejection]:
    """Rejects utterances that crashed their worker process."""
    reason = "a worker process crashed on it; is the recording damaged?"
    return [Rejection(utterance.id, stage, reason) for utterance in utterances]


_made: dict[str, Any] = {}  # one entry: of the dataset that this process works on


def once_per_process(make: Callable[[], Made], key: str) -> Made:
    """Returns the cached result of `make`; another `key` replaces it."""
    if key not in _made:
        _made.clear()
        _made[key] = make()
    return cast(Made, _made[key])


def write_shard_report(path: Path, report: ShardReport) -> None:
    """Writes the report on the shard at `path`, which marks it as finished."""
    write_json(path.with_suffix(".json"), vars(report))


def read_shard_report(path: Path, fingerprint: str) -> ShardReport | None:
    """Reads the report on a shard; None if it is unfinished, damaged or of another fingerprint."""
    try:
        plain = cast("dict[str, Any]", read_json(path.with_suffix(".json")))
        if not is_whole(path) or plain["fingerprint"] != fingerprint:
            return None
        report = ShardReport(**{name: plain[name] for name in vars(ShardReport())})
        report.rows = [IndexRow(*row) for row in plain["rows"]]
        report.scores = {id: AlignmentScore(*row) for id, row in plain["scores"].items()}
        report.rejected = [Rejection(*row) for row in plain["rejected"]]
        for counted in _COUNTED:
            setattr(report, counted, Counter(plain[counted]))
    except (InputError, LookupError, TypeError, ValueError, AttributeError):
        return None
    return report


def read_recording(utterance: Utterance, config: PreprocessConfig, trace: Trace) -> np.ndarray:
    """Reads the audio of an utterance, (S,) float32; raises AudioError if it cannot be used."""
    wav, trace.notices = read_audio(utterance.audio, config)
    trace.audio_seconds = len(wav) / config.sample_rate
    return wav


class UtteranceReader:
    """Reads recordings and texts; built once per process."""

    def __init__(self, config: PreprocessConfig) -> None:
        self._config = config
        self._frontends = Frontends(config.text)

    def prepare(self, utterances: Iterable[Utterance]) -> None:
        """Loads the text frontends of these utterances; InputError for a language without one."""
        for language in {utterance.language for utterance in utterances}:
            _ = self._frontends[language]

    def read(self, utterance: Utterance, trace: Trace) -> tuple[np.ndarray, SpokenText]:
        """Reads the recording, (S,) float32, and the phones of the text."""
        wav = read_recording(utterance, self._config, trace)
        trace.part = "text"
        spoken = self._frontends[utterance.language](utterance.spoken)
        unspoken = (f"the text holds the sign {s}, which is not spoken" for s in spoken.unspoken)
        trace.notices = (*trace.notices, *unspoken)
        return wav, spoken
