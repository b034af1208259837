"""Finds and reads corpora. A format is a file here that ends with `CORPUS = Corpus(...)`."""

import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import preprocessors
from config.preprocess import CorpusConfig
from preprocessors.fetch import Archive
from preprocessors.manifest import Listing, Origin, check_id
from utils.config import build_complete
from utils.errors import InputError, nearest
from utils.files import read_json, user_path
from utils.imports import load_definition

ORIGIN = "corpus.json"  # in the folder of a corpus that a program spoke
_NOT_FORMATS = {"collector", "corpora", "fetch", "manifest", "parquet"}  # the other files here
_REPOSITORY = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """A corpus format, and the published corpus of that name if there is one."""

    # lists what a folder holds, given the name of its dataset; raises InputError if it cannot
    utterances: Callable[[Path, str, CorpusConfig], Listing]
    archive: Archive | None = None  # that stage 0 fetches
    licence: str = ""  # of the recordings, one line
    hub_name: str = ""  # on the Hugging Face Hub


def read_origin(path: Path) -> Origin:
    """Reads `origin` of corpus.json, or of a report of stage 1; empty without it."""
    plain = read_json(path) if path.exists() else None
    if not isinstance(plain, dict) or "origin" not in plain:
        return Origin()
    return build_complete(Origin, plain["origin"], path)


def known_formats() -> list[str]:
    """Returns names of the corpus formats, sorted."""
    # not imported: a fault in one of them concerns its own datasets only
    names = {module.name for module in pkgutil.iter_modules(preprocessors.__path__)}
    return sorted(names - _NOT_FORMATS)


def find_format(dataset: str, options: CorpusConfig) -> Corpus:
    """Returns the format of a dataset: the configured one, or that of its name in any case."""
    name, formats = (options.format or dataset).lower(), known_formats()
    if name in formats:
        return _corpus(name)
    raise InputError(
        f"preprocess.corpus.{dataset}.format: unknown corpus format {name!r}; known:"
        f" {', '.join(formats)} (folder: your own recordings; audio_folder: without text, for"
        f" vocoders){nearest(name, formats)}"
    )


def archive_of(dataset: str, options: CorpusConfig) -> Archive | None:
    """Returns the published archive of a dataset; None for a dataset that only borrows a format."""
    find_format(dataset, options)  # refuses an unknown one
    corpus = published(dataset, options)
    return corpus.archive if corpus else None


def licence_of(dataset: str, options: CorpusConfig) -> str:
    """Returns the licence of a dataset's recordings, by config or corpus; empty if unknown."""
    corpus = published(dataset, options)
    return options.licence or (corpus.licence if corpus else "")


def published(dataset: str, options: CorpusConfig) -> Corpus | None:
    """Returns the published corpus of this name; None if a dataset only borrows its format."""
    name = dataset.lower()
    borrows = options.format.lower() not in ("", name)
    return None if borrows or name not in known_formats() else _corpus(name)


def _corpus(name: str) -> Corpus:
    return load_definition(f"preprocessors.{name}", "CORPUS", Corpus)


def dataset_folder(dataset: str, dataset_path: Mapping[str, str]) -> Path:
    """Returns a dataset's folder, which may be missing; relative paths start at the repository."""
    if not is_given(dataset, dataset_path):
        path = dataset_path.get(dataset, "")
        raise InputError(f"dataset_path.{dataset} is {path!r}: set it to the folder of the corpus")
    return _REPOSITORY / user_path(dataset_path[dataset].strip())


def is_given(dataset: str, dataset_path: Mapping[str, str]) -> bool:
    """Returns whether a configuration names the folder of a dataset."""
    path = dataset_path.get(dataset, "").strip()
    # example configs hold `[...]`, `<...>` and /path/to as placeholders
    return bool(path) and path[0] not in "[<" and not path.startswith("/path/to")


def portable_path(root: Path) -> str:
    """Returns the path of a corpus; relative to the repository if it is in it, and may move."""
    root = root.resolve()
    return str(root.relative_to(_REPOSITORY) if root.is_relative_to(_REPOSITORY) else root)


def read_corpus(dataset: str, root: Path, options: CorpusConfig) -> Listing:
    """Lists what a corpus on disk holds. Audio is looked for, but not opened.

    Returns:
        Utterances sorted by id; entries that cannot be used, with reasons; notices for the log.
    """
    try:
        check_id(dataset)
    except InputError as error:
        raise InputError(f"dataset: {error}") from None
    corpus = find_format(dataset, options)
    if not root.is_dir():
        fetch = "; stage 0 fetches this corpus" if archive_of(dataset, options) else ""
        fault = f"{dataset}: no folder {root}"
        raise InputError(f"{fault}; set dataset_path.{dataset} to the folder of the corpus{fetch}")
    origin = read_origin(root / ORIGIN)
    return corpus.utterances(root, dataset, options)._replace(origin=origin)
