"""Utterances of a corpus as typed records, the manifest of stage 1, and splits.

Splits for training, validation and test are functions of ids and seed, never of order.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from config.preprocess import SplitConfig
from utils.errors import InputError
from utils.files import iterate_jsonl, read_json, write_json, write_jsonl

MANIFEST = "manifest.jsonl"  # in the folder of a dataset that stage 1 prepared
_LISTS = ("test_ids", "valid_ids", "golden_ids")  # of SplitConfig
_LONGEST_STEM = 100  # characters of a name that are kept before its checksum
# Ids become file names: no separators, no leading dot, nothing that a shell or a disk trips over.
_SAFE_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")


@dataclass(frozen=True)
class Utterance:
    """One recording and its text."""

    id: str  # unique in its dataset; safe as a file name (`check_id`)
    audio: Path  # audio file
    text: str  # its words, as the corpus writes them
    speaker: str  # speaker name, unique over all datasets (`LJSpeech`, `VCTK_p225`)
    language: str = "en-us"  # espeak language code, such as `en-us`
    source: str = ""  # place of the text, for messages: `metadata.csv:12`
    name: str = ""  # the name in the corpus that the id was made from; empty: the id
    phones: str = ""  # phones of the corpus, in braces; empty: they follow from the text

    @property
    def spoken(self) -> str:
        """What the text front end reads: the phones of the corpus, or else the text."""
        return self.phones or self.text


class Rejection(NamedTuple):
    """An utterance that cannot be used, and why."""

    id: str
    stage: str  # "corpus", "audio", "text", "alignment", "features"
    reason: str


@dataclass(frozen=True)
class Origin:
    """The program that spoke a corpus."""

    spoken_by: str = ""  # its name; empty: people spoke it
    licence: str = ""  # of its speech


class Listing(NamedTuple):
    """The result of a corpus reader."""

    utterances: list[Utterance]  # sorted by id
    rejected: list[Rejection]
    notices: list[str]  # one line each, for the log
    origin: Origin = Origin()


class UnusableCorpus(InputError):  # noqa: N818  (an error of the corpus)
    """A corpus with too few usable utterances; `listing` has the reasons."""

    def __init__(self, message: str, listing: Listing) -> None:
        super().__init__(message)
        self.listing = listing


class Splits(NamedTuple):
    """Ids of each split, sorted."""

    train: list[str]
    valid: list[str]
    test: list[str]
    golden_test: list[str]  # a part of test


def is_safe_id(id: str) -> bool:
    """Returns whether an id is safe as a file name on any disk."""
    return _SAFE_ID.fullmatch(id) is not None


def safe_id(name: str) -> str:
    """Makes an id of a name, replacing `/` by `_`.

    If other characters remain than an id may have, they become `_`, and the first digits of the
    SHA-256 of the name are added, so that different names have different ids.
    """
    id = name.replace("/", "_")
    if is_safe_id(id):
        return id
    checksum = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    readable = re.sub(r"[^A-Za-z0-9_.-]+", "_", id)[:_LONGEST_STEM].lstrip(".-")
    return f"{readable or '_'}-{checksum}"


def check_id(id: str) -> str:
    """Returns an id unchanged if it is safe as a file name on any disk."""
    if not is_safe_id(id):
        shown = id if len(id) <= 40 else f"{id[:40]}... ({len(id)} characters)"
        rule = "use 1 to 128 of A-Z a-z 0-9 _ - . and start with a letter, a digit or _"
        raise InputError(f"{shown!r} is not a safe id: {rule}")
    return id


def write_manifest(path: Path, utterances: Iterable[Utterance]) -> None:
    """Writes utterances as JSON lines, in the order given."""
    write_jsonl(path, ({**asdict(u), "audio": str(u.audio)} for u in utterances))


def read_utterances(folder: Path) -> dict[str, Utterance]:
    """Returns the utterances of a dataset that stage 1 prepared, by id."""
    path = folder / MANIFEST
    rows = (_utterance(row, f"{path}:{n}") for n, row in enumerate(iterate_jsonl(path), 1))
    return {utterance.id: utterance for utterance in rows}


def _utterance(row: object, source: str) -> Utterance:
    if not isinstance(row, dict) or not all(isinstance(value, str) for value in row.values()):
        raise InputError(f"{source}: not an utterance; run stage 1 again")
    try:
        utterance = Utterance(**{**row, "audio": Path(row["audio"])})
    except (TypeError, KeyError) as error:
        raise InputError(f"{source}: not an utterance ({error}); run stage 1 again") from error
    check_id(utterance.id)
    return utterance


def listed_among(options: SplitConfig, ids: Iterable[str]) -> SplitConfig:
    """Keeps only the listed ids that are among `ids`: the lists name utterances of all datasets."""
    all_ids, lists = set(ids), {key: getattr(options, key) for key in _LISTS}
    among: dict[str, Any] = {k: tuple(id for id in v if id in all_ids) for k, v in lists.items()}
    return replace(options, **among)


def split_ids(
    seconds: Mapping[str, float], options: SplitConfig, speakers: Mapping[str, str] | None = None
) -> Splits:
    """Splits utterances into train, valid and test, and picks the golden test set.

    Ids are ranked by a hash of seed and id; the first ones are the test split, the next ones the
    validation split. Shares are of all utterances, rounded, at least one. Lists of exact ids come
    first. What is left trains, and so does one utterance of each speaker who would have none there.

    Args:
        speakers: Speaker of each utterance, by id; None: they do not matter.

    Returns:
        Sorted ids; train, valid and test hold every id exactly once.

    Raises:
        InputError: If listed ids are unknown, are in two splits, or nothing is left to train on.
    """
    check_listed(options, seconds)
    test, valid = set(options.test_ids), set(options.valid_ids)
    if both := sorted(test & valid):
        raise InputError(f"preprocess.split: in test_ids and in valid_ids: {', '.join(both[:5])}")

    def rank(id: str) -> bytes:
        return hashlib.sha256(f"{options.seed}\n{id}".encode()).digest()

    ranked = sorted(seconds.keys() - (test | valid), key=rank)
    n_test = 0 if options.test_ids else max(1, round(options.test * len(seconds)))
    n_valid = 0 if options.valid_ids else max(1, round(options.valid * len(seconds)))
    held_out, train = ranked[: n_test + n_valid], set(ranked[n_test + n_valid :])
    test, valid = test | {*held_out[:n_test]}, valid | {*held_out[n_test:]}
    if not train:
        fault = f"of {len(seconds)} utterances, {len(test)} test and {len(valid)} validate"
        remedy = "none are left to train on; at least 3 are needed"
        raise InputError(f"preprocess.split: {fault}, {remedy}")
    if speakers is not None:
        trained = {speakers[id] for id in train}
        # the last of the ranked utterances of each speaker without a training utterance
        last = {speakers[id]: id for id in held_out if speakers[id] not in trained}
        train |= set(last.values())
    test, valid = test - train, valid - train
    return Splits(sorted(train), sorted(valid), sorted(test), _golden(seconds, test, options))


def check_listed(options: SplitConfig, ids: Iterable[str]) -> None:
    """Refuses listed ids that are not among `ids`, which are of all datasets (InputError)."""
    all_ids = set(ids)
    for key in _LISTS:
        if unknown := sorted(set(getattr(options, key)) - all_ids):
            names = ", ".join(unknown[:5])
            fault = f"{len(unknown)} ids are not among the usable utterances: {names}"
            remedy = "correct the key, or see rejected.jsonl"
            raise InputError(f"preprocess.split.{key}: {fault}; {remedy}")


def _golden(seconds: Mapping[str, float], test: set[str], options: SplitConfig) -> list[str]:
    """Returns the listed ids, or test items at even steps from the shortest to the longest."""
    if options.golden_ids:
        if outside := sorted(set(options.golden_ids) - test):
            fault = f"preprocess.split.golden_ids: not in the test split: {', '.join(outside[:5])}"
            raise InputError(f"{fault}; add them to test_ids")
        return sorted(set(options.golden_ids))
    by_length = sorted(test, key=lambda id: (seconds[id], id))
    size = min(options.golden_size, len(by_length))
    if size == 1:
        return [by_length[len(by_length) // 2]]
    return sorted(by_length[i * (len(by_length) - 1) // (size - 1)] for i in range(size))


def write_splits(folder: Path, splits: Splits) -> None:
    """Writes `<split>.json`, a list of ids each, into `<processed_dir>/<dataset>`."""
    for name, ids in splits._asdict().items():
        write_json(folder / f"{name}.json", ids)


def read_splits(folder: Path) -> Splits:
    """Reads what `write_splits` wrote."""
    return Splits(*(_read_ids(folder / f"{name}.json") for name in Splits._fields))


def read_split(folder: Path, name: str) -> list[Utterance]:
    """Returns the utterances of one split of a dataset that stage 1 prepared, sorted by id."""
    utterances = read_utterances(folder)
    ids: list[str] = getattr(read_splits(folder), name)
    if unknown := [id for id in ids if id not in utterances]:
        raise InputError(f"{folder}: {unknown[0]} is not in manifest.jsonl; run stage 1 again")
    return [utterances[id] for id in ids]


def _read_ids(path: Path) -> list[str]:
    ids = read_json(path)
    if not isinstance(ids, list) or not all(isinstance(id, str) for id in ids):
        raise InputError(f"{path}: expected a list of ids; run stage 1 again")
    return ids
