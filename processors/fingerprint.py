"""What stage 1 was made from: the same fingerprint means that there is nothing to do."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

from config.schema import PreprocessConfig
from preprocessors.manifest import Listing, Utterance
from processors.alignment import alignment_file
from utils.errors import InputError
from utils.files import read_json, sha256_of, write_json

VERSION = 1  # of the features: raised when the same input gives other features than before

# Keys that change how the work is done or where its input lies, and not what comes out. The content
# of textgrid_dir and of corpus is fingerprinted utterance by utterance.
_WITHOUT_EFFECT = {"processed_dir", "backend", "shard_size", "textgrid_dir", "corpus"}
# Keys that splits and statistics depend on, and features do not.
_FINISHING = {"split", "pitch_remove_outlier", "energy_remove_outlier", "max_bad_ratio"}


@dataclass(frozen=True)
class Fingerprint:
    """What the processed data of one dataset depend on.

    Attributes:
        features: Config keys that features depend on. A key is here unless it is known to have no
            effect, so that a new key is never forgotten.
        finishing: Config keys that only splits, statistics and limits depend on.
        listing: Digest of what the corpus reader refused or noticed.
        shards: Digest of each shard's utterances and `features`.
    """

    features: dict[str, object]
    finishing: dict[str, object]
    listing: str
    shards: dict[str, str]
    version: int = VERSION


def fingerprint_of(
    config: PreprocessConfig,
    dataset_root: Path,
    listing: Listing,
    shards: Mapping[str, Sequence[Utterance]],
) -> Fingerprint:
    """The fingerprint of work that is to be done; looks at files' size and time, not into them.

    Raises:
        InputError: If the user's lexicon is missing.
    """
    plain = json.loads(json.dumps(asdict(config)))  # tuples as lists, as they come from a file
    keys = _flat({name: plain[name] for name in sorted(plain.keys() - _WITHOUT_EFFECT)})
    finishing = {key: value for key, value in keys.items() if key.split(".")[1] in _FINISHING}
    features = {key: value for key, value in keys.items() if key not in finishing}
    features |= _lexicon(config)
    return Fingerprint(
        features=features,
        finishing=finishing,
        listing=_digest([listing.rejected, listing.notices]),
        shards={
            name: _digest([VERSION, features, [_identity(u, config, dataset_root) for u in items]])
            for name, items in shards.items()
        },
    )


def _flat(section: Mapping[str, Any], prefix: str = "preprocess") -> dict[str, object]:
    """Nested keys as `preprocess.text.normalizer`."""
    flat: dict[str, object] = {}
    for name, value in section.items():
        key = f"{prefix}.{name}"
        flat |= _flat(value, key) if isinstance(value, Mapping) else {key: value}
    return flat


def _lexicon(config: PreprocessConfig) -> dict[str, object]:
    """The user's lexicon counts by what it says, wherever it lies."""
    path = Path(config.text.lexicon_path)
    if not config.text.lexicon_path:
        return {}
    if not path.is_file():
        raise InputError(f"preprocess.text.lexicon_path: no file {path}")
    return {"preprocess.text.lexicon_path": f"sha256 {sha256_of(path)[:16]}"}


def _identity(utterance: Utterance, config: PreprocessConfig, root: Path) -> list[object]:
    files = [utterance.audio]
    if (aligned := alignment_file(utterance, config, root)) is not None:
        files.append(aligned)
    words = [utterance.id, utterance.text, utterance.speaker, utterance.language]
    return [*words, *(number for path in files for number in _size_and_time(path))]


def _size_and_time(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError:
        return -1, -1  # the utterance will be rejected, until there is a file
    return status.st_size, status.st_mtime_ns


def _digest(value: object) -> str:
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def changes(old: Fingerprint, new: Fingerprint) -> list[str]:
    """What differs, one line each, for the log."""
    if old.version != new.version:
        return [f"features are of version {old.version}, now {new.version}: all are made again"]
    lines = _changed_keys(old.features, new.features, "features are made again")
    redone = [name for name in new.shards if new.shards[name] != old.shards.get(name)]
    if redone and not lines:
        lines.append(f"utterances of {len(redone)} of {len(new.shards)} shards have changed")
    if gone := old.shards.keys() - new.shards.keys():
        lines.append(f"{len(gone)} shards are no longer needed")
    if old.listing != new.listing:
        lines.append("what the corpus reader refused or noticed has changed")
    return lines + _changed_keys(old.finishing, new.finishing, "features are kept")


def _changed_keys(old: Mapping[str, object], new: Mapping[str, object], effect: str) -> list[str]:
    return [
        f"{key} was {old.get(key)!r}, is {new.get(key)!r}: {effect}"
        for key in sorted(old.keys() | new.keys())
        if old.get(key) != new.get(key)
    ]


def fingerprint_path(folder: Path) -> Path:
    """Where a dataset's folder holds its fingerprint."""
    return folder / "fingerprint.json"


def write_fingerprint(folder: Path, fingerprint: Fingerprint) -> None:
    """Says that everything in the folder is finished; written last."""
    write_json(fingerprint_path(folder), asdict(fingerprint))


def read_fingerprint(folder: Path) -> Fingerprint | None:
    """The fingerprint of finished work; None if there is none, or it cannot be understood."""
    try:
        return Fingerprint(**cast("dict[str, Any]", read_json(fingerprint_path(folder))))
    except (InputError, TypeError):
        return None
