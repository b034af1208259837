"""Finds and reads corpora. A format is a module of this package that has `utterances`."""

import pkgutil
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType

import preprocessors
from config.preprocess import CorpusConfig
from preprocessors.fetch import Archive
from preprocessors.manifest import Listing, check_id
from utils.errors import InputError, nearest
from utils.files import user_path

_REPOSITORY = Path(__file__).resolve().parents[1]


def known_formats() -> list[str]:
    """Names of the corpus formats, sorted."""
    names = (module.name for module in pkgutil.iter_modules(preprocessors.__path__))
    return sorted(name for name in names if hasattr(_module(name), "utterances"))


def find_format(dataset: str, options: CorpusConfig) -> ModuleType:
    """The module that reads a dataset: of its format, or of its name in any case.

    Raises:
        InputError: If there is no such format; lists the known ones and the nearest.
    """
    name = (options.format or dataset).lower()
    formats = known_formats()
    if name in formats:
        return _module(name)
    raise InputError(
        f"preprocess.corpus.{dataset}.format: unknown corpus format {name!r}; known:"
        f" {', '.join(formats)} (folder: your own recordings; audio_folder: without text, for"
        f" vocoders){nearest(name, formats)}"
    )


def archive_of(dataset: str, options: CorpusConfig) -> Archive | None:
    """The published archive of a dataset; None for a dataset that only borrows a format.

    Raises:
        InputError: If there is no such format.
    """
    find_format(dataset, options)
    return getattr(_published(dataset, options), "ARCHIVE", None)


def licence_of(dataset: str, options: CorpusConfig) -> str:
    """The licence of a dataset's recordings; empty where neither config nor corpus gives one."""
    return options.licence or getattr(_published(dataset, options), "LICENCE", "")


def on_the_hub(dataset: str, options: CorpusConfig) -> str:
    """The name of a dataset on the Hugging Face Hub; empty where it is not known to be there."""
    return getattr(_published(dataset, options), "ON_THE_HUB", "")


def _published(dataset: str, options: CorpusConfig) -> ModuleType | None:
    """The module of a published corpus; None for a dataset that only borrows its format."""
    name = dataset.lower()
    borrows = options.format.lower() not in ("", name)
    return None if borrows or name not in known_formats() else _module(name)


def _module(name: str) -> ModuleType:
    return import_module(f"preprocessors.{name}")


def dataset_folder(dataset: str, dataset_path: Mapping[str, str]) -> Path:
    """The folder of a dataset, which need not exist; relative paths start at the repository root.

    Raises:
        InputError: If the key is missing, empty or still a placeholder.
    """
    path = dataset_path.get(dataset, "").strip()
    # example configs hold `[...]`, `<...>` and /path/to as placeholders
    if not path or path[0] in "[<" or path.startswith("/path/to"):
        raise InputError(f"dataset_path.{dataset} is {path!r}: set it to the folder of the corpus")
    return _REPOSITORY / user_path(path)


def read_corpus(dataset: str, root: Path, options: CorpusConfig) -> Listing:
    """Lists what a corpus on disk holds. Audio is looked for, but not opened.

    Returns:
        Utterances sorted by id; entries that cannot be used, with reasons; notices for the log.

    Raises:
        InputError: If the format is unknown, the folder is missing or of another layout, a file is
            in another encoding, an id occurs twice, or nothing usable was found.
    """
    try:
        check_id(dataset)
    except InputError as error:
        raise InputError(f"dataset: {error}") from None
    reader = find_format(dataset, options)
    if not root.is_dir():
        fetch = "; stage 0 fetches this corpus" if archive_of(dataset, options) else ""
        raise InputError(
            f"{dataset}: no folder {root}; set dataset_path.{dataset} to the folder of the corpus"
            f"{fetch}"
        )
    return reader.utterances(root, dataset, options)
