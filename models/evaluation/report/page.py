"""Writes the page of stage 4.

More than 20 MB of sounds and pictures go to a folder next to it, `report_files` for `report.html`,
which the page links by relative paths: both can be moved together. The page loads nothing else,
and a browser runs no other script in it.
"""

import re
import shutil
import tempfile
from functools import partial
from pathlib import Path
from urllib.parse import quote

from models.evaluation.report.html import MediaFolder, data_of, render
from models.evaluation.report.tables import shown_systems
from models.evaluation.report.tracks import Track, write_tracks
from models.evaluation.results import Evaluation
from utils.errors import InputError
from utils.files import replacing
from utils.logging import progress
from utils.parallel import Backend, n_cores, run_chunks

EMBEDDED_BYTES = 20_000_000  # of sounds and pictures in a page; more go to a folder next to it
_PAGE_FILE = re.compile(r"\d+-\d+\.(flac|png)")


def write_page(
    path: Path,
    evaluation: Evaluation,
    *,
    n_jobs: int | None = None,
    backend: Backend = "loky",
) -> None:
    """Writes a page of scores and sounds.

    Args:
        path: The HTML file. `<its name>_files` next to it is replaced, too.
        evaluation: Results of `evaluate`.
        n_jobs: Worker processes; None: as many as there are cores.
        backend: Where they run.

    Raises:
        InputError: If a sound cannot be read, or there are other files in `<its name>_files`.
    """
    systems = shown_systems(evaluation)
    path.parent.mkdir(parents=True, exist_ok=True)
    final = path.with_name(f"{path.stem}_files")
    _check_replaceable(final)
    with tempfile.TemporaryDirectory(prefix=f".{path.stem}", dir=path.parent) as name:
        folder = Path(name) / final.name
        folder.mkdir()
        tracks = _write_files(folder, evaluation, n_jobs or n_cores(), backend)
        n_bytes = sum(file.stat().st_size for file in folder.iterdir())
        embedded = n_bytes * 4 / 3 <= EMBEDDED_BYTES  # base64
        media = MediaFolder(folder, "" if embedded else quote(final.name))
        data = (
            data_of(item, tracks[position], systems, evaluation.mel, media)
            for position, item in enumerate(evaluation.items)
        )
        with replacing(path) as temporary:
            render(temporary, evaluation, data, embedded=embedded)
            shutil.rmtree(final, ignore_errors=True)  # of an earlier page
            if not embedded:
                folder.rename(final)


def _write_files(
    folder: Path, evaluation: Evaluation, n_jobs: int, backend: Backend
) -> list[list[Track]]:
    """The sounds and pictures of every utterance, named by its position."""
    work = partial(write_tracks, folder=folder, mel=evaluation.mel)
    chunks = {f"{position:05d}": [item] for position, item in enumerate(evaluation.items)}
    tracks: dict[str, list[Track]] = {}
    with progress(len(chunks), "page: utterances") as bar:
        for chunk in run_chunks(work, chunks, n_jobs, backend):
            if chunk.lost:
                raise InputError(
                    f"{chunk.lost[0].id}: its sounds crash the process that draws them; are the "
                    "files damaged? --page no leaves the page out"
                )
            (tracks[chunk.key],) = chunk.result
            bar.advance()
    return [tracks[key] for key in chunks]


def _check_replaceable(folder: Path) -> None:
    """Makes sure that a folder holds only files of an earlier page."""
    files = folder.iterdir() if folder.is_dir() else ()
    others = (file.name for file in files if not _PAGE_FILE.fullmatch(file.name))
    if name := next(others, None):
        raise InputError(f"{folder} holds {name}, which is not of a page: move it away")
