"""Finds, reads and fetches corpora. A format is a file here that ends with `CORPUS = Corpus(...)`.

The download is the standard library's: archives have several gigabytes and must resume, which pooch
cannot, and `http_get` of huggingface_hub is no public interface.
"""

import pkgutil
import shutil
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.client import PARTIAL_CONTENT, REQUESTED_RANGE_NOT_SATISFIABLE, HTTPException
from pathlib import Path, PurePosixPath
from ssl import SSLError
from time import sleep
from typing import NamedTuple
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import preprocessors
from config.preprocess import CorpusConfig
from preprocessors.manifest import Listing, Origin, check_id
from utils.config import build_complete
from utils.errors import InputError, nearest
from utils.files import read_json, sha256_of, user_path
from utils.imports import load_definition
from utils.logging import get_logger, progress

ORIGIN = "corpus.json"  # in the folder of a corpus that a program spoke
_NOT_FORMATS = {"collector", "corpora", "manifest", "parquet"}  # the other files here
_REPOSITORY = Path(__file__).resolve().parents[1]
_log = get_logger(__name__)

_BLOCK = 1 << 20  # bytes
_MEGABYTE = 1_000_000
_TIMEOUT_S = 60.0
_SERVER_ERROR = 500  # HTTP codes from here on may pass; those below will not
_CONNECTION_ERRORS = (URLError, HTTPException, ConnectionError, TimeoutError, SSLError)


class Archive(NamedTuple):
    """A corpus as it is published."""

    url: str  # .tar.gz, .tar.bz2 or .zip
    sha256: str  # of the archive, hexadecimal
    licence: str  # one line: name, author, licence
    complete: str  # name inside the corpus' folder that shows that it is there


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
    fault = f"preprocess.corpus.{dataset}.format: unknown corpus format {name!r}"
    meanings = "folder: your own recordings; audio_folder: without text, for vocoders"
    raise InputError(f"{fault}; known: {', '.join(formats)} ({meanings}){nearest(name, formats)}")


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
    return corpus.utterances(root, dataset, options)._replace(origin=read_origin(root / ORIGIN))


def fetch_archive(
    archive: Archive, root: Path, *, attempts: int = 5, wait: Callable[[float], None] = sleep
) -> None:
    """Downloads and unpacks a corpus into `root`, unless it is there already.

    The archive is kept in the parent folder of `root`; a single top folder inside it is left out.
    An interrupted download is resumed, up to `attempts` times.
    """
    _log.info("%s", archive.licence)
    if (root / archive.complete).exists():
        _log.info("%s is there already, nothing to fetch", root)
        return
    root.parent.mkdir(parents=True, exist_ok=True)
    path = root.parent / PurePosixPath(archive.url).name
    if not path.exists():
        _download(archive.url, path, attempts, wait)
    _log.info("checking %s", path)
    if (checksum := sha256_of(path)) != archive.sha256:
        remedy = "the file was damaged or is another one. Remove it and run stage 0 again"
        raise InputError(f"{path}: SHA-256 is {checksum}, expected {archive.sha256}; {remedy}")
    _unpack(path, root, archive.complete)
    _log.info("%s is complete; %s is no longer needed", root, path)


def _download(url: str, path: Path, attempts: int, wait: Callable[[float], None]) -> None:
    part = path.with_name(path.name + ".part")
    for attempt in range(1, attempts + 1):
        try:
            _continue(url, part)
            break
        except _CONNECTION_ERRORS as error:
            reason = getattr(error, "reason", error)
            if isinstance(error, HTTPError) and error.code < _SERVER_ERROR:
                raise InputError(f"{url}: the server answers {error.code} {reason}") from error
            if attempt == attempts:
                raise InputError(
                    f"{url}: {reason}; run stage 0 again to continue the download, or put the"
                    f" file to {path} yourself"
                ) from error
            _log.warning("%s: %s; trying again", url, reason)
            wait(2.0**attempt)
    part.replace(path)


def _continue(url: str, part: Path) -> None:
    """Downloads what is missing in `part`; raises one of `_CONNECTION_ERRORS` if it cannot."""
    start = part.stat().st_size if part.exists() else 0
    request = Request(url, headers={"Range": f"bytes={start}-"} if start else {})
    try:
        response = urlopen(request, timeout=_TIMEOUT_S)
    except HTTPError as error:
        if error.code == REQUESTED_RANGE_NOT_SATISFIABLE:
            return  # all of it is here; the checksum decides
        raise
    with response:
        if response.status != PARTIAL_CONTENT:
            start = 0  # the server sends the whole file again
        total = start + int(response.headers.get("Content-Length", 0))
        done, name = start, f"{part.stem} (MB)"
        with (
            part.open("r+b" if start else "wb") as file,
            progress(total // _MEGABYTE, name, initial=start // _MEGABYTE) as bar,
        ):
            file.seek(start)
            while block := response.read(_BLOCK):
                file.write(block)
                bar.advance((done + len(block)) // _MEGABYTE - done // _MEGABYTE)
                done += len(block)
    if done < total:
        raise ConnectionError(f"the connection ended after {done} of {total} bytes")


def _unpack(path: Path, root: Path, complete: str) -> None:
    """Unpacks next to `root`, then moves in; `complete` last, as the proof of a whole corpus."""
    unpacked = root.with_name(f"{root.name}.unpacking")
    shutil.rmtree(unpacked, ignore_errors=True)
    unpacked.mkdir()
    _log.info("unpacking %s", path)
    try:
        if path.suffix == ".zip":
            with zipfile.ZipFile(path) as archive:
                archive.extractall(unpacked)
        else:  # as a stream: seeking backwards in a compressed file decompresses it from its start
            with tarfile.open(path, "r|*") as tar:
                # early Python 3.10 and 3.11 have no filter; the checksum was compared before
                tar.extraction_filter = getattr(tarfile, "data_filter", None)
                tar.extractall(unpacked)
        folder = unpacked
        while not (folder / complete).exists():
            inside = [path for path in folder.iterdir() if path.is_dir()]
            if len(inside) != 1:
                raise InputError(f"it holds no {complete}; is it another corpus?")
            folder = inside[0]
        root.mkdir(exist_ok=True)
        for entry in folder.iterdir():
            if (target := root / entry.name).exists():
                raise InputError(f"{target} is in the way; remove it and run stage 0 again")
        for entry in sorted(folder.iterdir(), key=lambda entry: entry.name == complete):
            entry.rename(root / entry.name)
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, InputError) as error:
        raise InputError(f"{path} cannot be unpacked: {error}") from error
    finally:
        shutil.rmtree(unpacked)
