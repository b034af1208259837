"""Stage 0: downloads a corpus, checks it and unpacks it.

The download is the standard library's: archives have several gigabytes and must resume, which pooch
cannot, and `http_get` of huggingface_hub is no public interface.
"""

import http.client
import shutil
import ssl
import tarfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from time import sleep
from typing import NamedTuple

from utils.errors import InputError
from utils.files import sha256_of
from utils.logging import get_logger, progress

_log = get_logger(__name__)

_BLOCK = 1 << 20  # bytes
_MEGABYTE = 1_000_000
_TIMEOUT_S = 60.0
_SERVER_ERROR = 500  # HTTP codes from here on may pass; those below will not
_CONNECTION_ERRORS = (
    urllib.error.URLError,
    http.client.HTTPException,
    ConnectionError,
    TimeoutError,
    ssl.SSLError,
)


class Archive(NamedTuple):
    """A corpus as it is published."""

    url: str  # .tar.gz, .tar.bz2 or .zip
    sha256: str  # of the archive, hexadecimal
    licence: str  # one line: name, author, licence
    complete: str  # name inside the corpus' folder that shows that it is there


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
        raise InputError(
            f"{path}: SHA-256 is {checksum}, expected {archive.sha256}; the file was damaged or is"
            " another one. Remove it and run stage 0 again"
        )
    _unpack(path, root, archive.complete)
    _log.info("%s is complete; %s is no longer needed", root, path)


def _download(url: str, path: Path, attempts: int, wait: Callable[[float], None]) -> None:
    part = path.with_name(path.name + ".part")
    for attempt in range(1, attempts + 1):
        try:
            _continue(url, part)
            break
        except _CONNECTION_ERRORS as error:
            if isinstance(error, urllib.error.HTTPError) and error.code < _SERVER_ERROR:
                raise InputError(
                    f"{url}: the server answers {error.code} {error.reason}"
                ) from error
            reason = getattr(error, "reason", error)
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
    request = urllib.request.Request(url, headers={"Range": f"bytes={start}-"} if start else {})
    try:
        response = urllib.request.urlopen(request, timeout=_TIMEOUT_S)
    except urllib.error.HTTPError as error:
        if error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE:
            return  # all of it is here; the checksum decides
        raise
    with response:
        if response.status != http.client.PARTIAL_CONTENT:
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
        _extract(path, unpacked)
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


def _extract(path: Path, folder: Path) -> None:
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            archive.extractall(folder)
        return
    # Read as a stream: seeking backwards in a compressed file decompresses it from its start.
    with tarfile.open(path, "r|*") as tar:
        # early releases of Python 3.10 and 3.11 have no filter; the checksum was compared before
        tar.extraction_filter = getattr(tarfile, "data_filter", None)
        tar.extractall(folder)
