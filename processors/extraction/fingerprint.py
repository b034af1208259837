"""Fingerprints of the output of stage 1: with the same one there is nothing to do."""

import hashlib
import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

from config.preprocess import CorpusConfig, PreprocessConfig
from preprocessors.corpora import dataset_folder, is_given, portable_path
from preprocessors.manifest import Listing, Utterance
from processors.dataset.store import processed_folder
from utils.config import leaves
from utils.errors import InputError
from utils.files import read_json, sha256_of, write_json

_FILE = "fingerprint.json"
VERSION = 2  # of the store: raised when the same input gives another store than before

# Keys that change how the work is done or where its input lies, and not what comes out. The content
# of the corpus is fingerprinted utterance by utterance.
_WITHOUT_EFFECT = {"processed_dir", "backend", "shard_size", "corpus"}
ALIGNMENTS = {"textgrid_dir", "imported_dir"}  # their content is, too
# Keys that also have no effect on the output for each task
IGNORED = {
    "tts": ALIGNMENTS | {"min_attention"},  # only imports of durations read it
    "vocoder": ALIGNMENTS
    | {"text", "aligner", "edge_silence_s", "max_misfit"}
    | {"pitch_extractor", "f0_min", "f0_max", "pitch_remove_outlier", "energy_remove_outlier"},
}
# `pauses` are those of imported voices, and the store holds letters and phones of each word
_WITHOUT_EFFECT_ON_TEXT = {"preprocess.text.pauses", "preprocess.text.p_arpabet"}
# Keys that splits, statistics and limits depend on, and records do not.
_FINISHING = {"split", "pitch_remove_outlier", "energy_remove_outlier", "max_bad_ratio"}
# Entries of stores whose mels an acoustic model predicted
PREDICTED_BY, MODEL_OF_MELS = "from_acoustic.weights", "from_acoustic.model"
DATASET_PATH = "dataset_path"  # entry of stores of a corpus: its folder
TABLE = "preprocess.corpus.table"  # of stores of a table that is not metadata.csv: its name
# Stores hold these keys under other names.
_KEYS = ("win_length", "hop_length", "n_mels", "f_min", "f_max")
_NAMES = ("win_size", "hop_size", "n_mel", "fmin", "fmax")
_NAME_OF = {
    f"preprocess.{key}": f"preprocess.{name}" for key, name in zip(_KEYS, _NAMES, strict=True)
}
_KEY_OF = {name: key for key, name in _NAME_OF.items()}
# keys that older stores do not hold, with the value that these were made with
_LATER: dict[str, object] = {"preprocess.mel_scale": "slaney"}
_DERIVED = re.compile(r"data/(tts|vocoder)_\w+_\d+_[0-9a-f]{8}")
_LEXICON = "preprocess.text.lexicon_path"


@dataclass(frozen=True)
class Fingerprint:
    """Everything that the processed data of one dataset depend on."""

    # Config keys, and what else records depend on. A key is here unless it is known to have no
    # effect, so that a new key is never forgotten.
    features: dict[str, object]
    finishing: dict[str, object]  # config keys that only splits, statistics and limits depend on
    listing: str  # digest of the rejections, notices, texts and origin that the reader returned
    shards: dict[str, str]  # digest of each shard's utterances and `features`
    task: str = "tts"  # or "vocoder"; version 1 had only "tts"
    version: int = VERSION  # of the store
    # whether all of it is made; False while a run is at work, and after it was killed
    finished: bool = True


class Dependence(NamedTuple):
    """Everything that a kind of store depends on."""

    task: str
    ignored: Collection[str]  # keys of `preprocess` without effect, in addition to the common ones
    identity: Callable[[Utterance], list[object]]  # what its record of an utterance depends on
    other: Mapping[str, object]  # what all records depend on in addition to keys of the config
    finishing: Mapping[str, object] = {}  # what only splits and the report depend on


def fingerprint_of(
    config: PreprocessConfig,
    listing: Listing,
    shards: Mapping[str, Sequence[Utterance]],
    dependence: Dependence,
) -> Fingerprint:
    """Computes the fingerprint of work to be done, by size and time of files."""
    keys = _keys(config, dependence.ignored)
    finishing = {key: value for key, value in keys.items() if key.split(".")[1] in _FINISHING}
    features = {key: value for key, value in keys.items() if key not in finishing}
    features |= dependence.other
    finishing |= dependence.finishing
    rows = ((u.id, u.text, u.language, u.phones) for u in listing.utterances)
    texts = [row if row[-1] else row[:-1] for row in rows]
    origin = [asdict(listing.origin)] if listing.origin.spoken_by else []
    of_listing = _digest([listing.rejected, listing.notices, texts, *origin])
    of_shards = {
        name: _digest([VERSION, features, [dependence.identity(u) for u in items]])
        for name, items in shards.items()
    }
    return Fingerprint(features, finishing, of_listing, of_shards, dependence.task)


def _keys(config: PreprocessConfig, ignored: Collection[str] = ()) -> dict[str, object]:
    """Returns keys that can have an effect, flat and sorted."""
    plain = json.loads(json.dumps(asdict(config)))  # tuples as lists, as they come from a file
    kept = sorted(plain.keys() - _WITHOUT_EFFECT - set(ignored))
    flat = leaves({"preprocess": {name: plain[name] for name in kept}})
    keys = {".".join(path): value for path, value in flat}
    keys = {_NAME_OF.get(key, key): value for key, value in keys.items()}
    without_effect = {*_WITHOUT_EFFECT_ON_TEXT, *(k for k, v in _LATER.items() if keys.get(k) == v)}
    return {key: value for key, value in keys.items() if key not in without_effect}


def derived_folder(task: Literal["tts", "vocoder"], config: PreprocessConfig) -> str:
    """Returns the folder of the output of stage 1 where the configuration names none.

    Its name has a digest of the keys that differ from their defaults, of those that features depend
    on. Keys that only splits and statistics depend on are not in it, since changing them keeps the
    features; nor are `dataset_path`, which the fingerprint holds, and `preprocess.corpus`.
    """
    ignored = IGNORED[task] | _FINISHING | {"min_attention"}
    if task == "tts":
        ignored -= ALIGNMENTS
    keys, defaults = _keys(config, ignored), _keys(PreprocessConfig(), ignored)
    digest = _digest(sorted(item for item in keys.items() if item[1] != defaults.get(item[0])))[:8]
    kind = config.aligner if task == "tts" else config.mel_padding
    return f"data/{task}_{kind}_{config.sample_rate}_{digest}"


def lexicon_digest(config: PreprocessConfig) -> dict[str, object]:
    """Returns the user's lexicon by its content, not by its path; empty without one."""
    path = Path(config.text.lexicon_path)
    if not config.text.lexicon_path:
        return {}
    if not path.is_file():
        raise InputError(f"{_LEXICON}: no file {path}")
    return {_LEXICON: f"sha256 {sha256_of(path)[:16]}"}


def _digest(value: object) -> str:
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def changes(old: Fingerprint, new: Fingerprint) -> list[str]:
    """Describes how the work to be done differs from the data on disk, for the log."""
    if old.version != new.version:
        return [f"features are of version {old.version}, now {new.version}: all are made again"]
    redone = [name for name in new.shards if new.shards[name] != old.shards.get(name)]
    work = f"{len(redone)} of {len(new.shards)} shards of features are made again"
    differences = _differences(old.features | old.finishing, new.features | new.finishing)
    return [*differences, work if redone else "features are kept, splits and statistics made again"]


def _differences(old: Mapping[str, object], new: Mapping[str, object]) -> list[str]:
    return [
        f"{_KEY_OF.get(key, key)} was {old.get(key)!r}, is {new.get(key)!r}"
        for key in sorted(old.keys() | new.keys())
        if old.get(key) != new.get(key)
    ]


def check_same_data(folder: Path, previous: Fingerprint | None, new: Fingerprint) -> None:
    """Keeps data, also unfinished, from being overwritten by those of another kind or corpus.

    Kinds are the data of acoustic models, those of vocoders, and mels that a model predicted.
    """
    if previous is None:
        return
    elsewhere = "set preprocess.processed_dir to another folder, or remove this one"
    if previous.task != new.task:
        raise InputError(f"{folder} holds the data of a {previous.task} experiment; {elsewhere}")
    if PREDICTED_BY in previous.features and PREDICTED_BY not in new.features:
        model = previous.finishing.get(MODEL_OF_MELS)
        remedy = f"give --from_acoustic again; for the mels of the recordings, {elsewhere}"
        raise InputError(f"{folder} holds mels that the acoustic model {model} predicted: {remedy}")
    # a corpus that was moved with the times of its files has the same shards
    old_path, new_path = (made.finishing.get(DATASET_PATH) for made in (previous, new))
    if old_path and new_path and old_path != new_path and previous.shards != new.shards:
        fault = f"{folder} holds the data of another corpus, {old_path}, not of {new_path}"
        raise InputError(f"{fault}: {elsewhere} (also if it is the same corpus, changed and moved)")


def check_made_with(
    folder: Path, config: PreprocessConfig, dataset_path: Mapping[str, str] | None = None
) -> None:
    """Makes sure that the data of a folder are finished and were made with these keys.

    Keys that the data do not depend on are not compared, and neither is a lexicon whose file is
    missing: the data may have been moved to another machine. They must be of the same corpus,
    unless `dataset_path` does not have it, and of the same table of it.
    """
    made = read_fingerprint(folder)
    if made is None or not made.finished or made.version != VERSION:
        raise InputError(f"{folder / _FILE}: stage 1 was not finished by this version; run it")
    if changed := _changed(made, config):
        fault = f"{folder} was made with another configuration: {changed}"
        raise InputError(f"{fault}; run stage 1 with this one, or undo the change")
    table = config.corpus_of(folder.name).table
    made_of = made.finishing.get(TABLE, CorpusConfig.table)
    if table != made_of:
        fault = f"{folder} holds the data of the table {made_of}, not of {table}"
        raise InputError(f"{fault}; run stage 1")
    corpus = given = made.finishing.get(DATASET_PATH)
    if dataset_path and is_given(folder.name, dataset_path):
        given = portable_path(dataset_folder(folder.name, dataset_path))
    if corpus and corpus != given:
        fault = f"{folder} holds the data of the corpus {corpus}, not of {given}"
        flag = f"--set dataset_path.{folder.name}={corpus}"
        raise InputError(f"{fault}; run stage 1, or use the data by {flag}")


def _changed(made: Fingerprint, config: PreprocessConfig) -> str:
    """Returns the keys that data depend on and that have another value now, with both values."""
    expected = _LATER | _keys(config)
    if Path(config.text.lexicon_path).is_file():
        expected |= lexicon_digest(config)
    elif config.text.lexicon_path:
        del expected[_LEXICON]
    stored = _LATER | made.features | made.finishing
    common = stored.keys() & expected.keys()
    common -= {"preprocess.max_bad_ratio"}  # may end the stage, and changes nothing that it writes
    stored, expected = ({key: keys[key] for key in common} for keys in (stored, expected))
    return "; ".join(_differences(stored, expected))


def check_prepared(
    config: PreprocessConfig,
    dataset: str,
    task: Literal["tts", "vocoder"] | None,
    *,
    same_keys: bool = False,
    flag: str = "--set preprocess.processed_dir",
) -> None:
    """Makes sure that a dataset is not in another folder than the derived one, with other keys.

    Other folders are those next to the derived one, and the one that holds it. Without a task only
    texts and splits are read, which data of both have. With `same_keys` data that other keys made
    cannot be used. `flag` names the folder that is read.
    """
    folder = processed_folder(config, dataset)
    if not _DERIVED.fullmatch(config.processed_dir) or (folder / _FILE).is_file():
        return
    root = folder.parent.parent
    prepared = {}
    for processed in [root, *sorted(root.glob("*"))]:
        made = read_fingerprint(processed / dataset)
        if made is None or not made.finished or made.version != VERSION:
            continue
        if task is None or (made.task == task and PREDICTED_BY not in made.features):
            prepared[processed] = _changed(made, config)
    if not prepared:
        return
    nearest, changed = min(prepared.items(), key=lambda item: item[1].count(" was "))
    keys = f"another configuration: {changed}" if changed else "the same keys"
    use = "undo the change" if changed and same_keys else f"use it by {flag}={nearest}"
    fault = f"{folder} is missing: stage 1 was not run with this configuration"
    raise InputError(f"{fault}; {nearest / dataset} was made with {keys}; run stage 1, or {use}")


def write_fingerprint(folder: Path, fingerprint: Fingerprint) -> None:
    """Records what a folder holds: before the work, as unfinished, and as the last step of it."""
    write_json(folder / _FILE, asdict(fingerprint))


def read_fingerprint(folder: Path) -> Fingerprint | None:
    """Reads the fingerprint of a folder, finished or not; None if there is no valid one."""
    try:
        fingerprint = Fingerprint(**cast("dict[str, Any]", read_json(folder / _FILE)))
    except (InputError, TypeError):
        return None
    sections = (fingerprint.features, fingerprint.finishing, fingerprint.shards)
    return fingerprint if all(isinstance(section, dict) for section in sections) else None
