"""What stage 3 wrote, each file with the recording it stands for and what is said in it."""

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np

from config.schema import PreprocessConfig
from models.copy_synthesis import ClipLine
from models.results import METADATA, Line
from preprocessors.audio_folder import SUFFIXES
from preprocessors.manifest import Utterance, read_manifest
from processors.audio import AudioError, read_audio
from processors.pcm import from_pcm16
from processors.scoring import Item
from processors.store import RecordingStore
from utils.errors import InputError
from utils.files import read_jsonl, user_path

SHOWN = 20  # missing files, in a message


@dataclass(frozen=True)
class References:
    """Where recordings and texts are looked for.

    Attributes:
        preprocess: Stage 1: the sample rate, and where its data sets are.
        recordings: A folder of `<id>.wav` or other audio, there or in its `wavs`; None: the
            recordings that stage 1 or 3 read.
        languages: espeak language code by speaker, for what is in no manifest.
    """

    preprocess: PreprocessConfig
    recordings: Path | None = None
    languages: Mapping[str, str] = field(default_factory=dict)


def read_results(folder: Path) -> list[Line] | list[ClipLine]:
    """What `metadata.jsonl` says, of spoken texts or of copies of recordings.

    Raises:
        InputError: If there is none, or it holds something else.
    """
    path = folder / METADATA
    if not path.is_file():
        raise InputError(f"{path} is missing: run stage 3, or correct --infer_output_dir")
    rows = cast("list[dict[str, Any]]", read_jsonl(path))
    if not rows:
        raise InputError(f"{path} is empty: run stage 3")
    try:
        if "mel_source" in rows[0]:
            return [ClipLine(**row) for row in rows]
        return [Line(**row) for row in rows]
    except TypeError as error:
        raise InputError(f"{path}: not what stage 3 writes ({error}); run it again") from error


def items_of(folder: Path, lines: Sequence[Line | ClipLine], references: References) -> list[Item]:
    """Pairs files with recordings by their ids.

    Args:
        folder: Where the files are.
        lines: About the files.
        references: Where the recordings are.

    Raises:
        InputError: If a file or a recording is missing; lists them.
    """
    missing = [str(folder / line.file) for line in lines if not (folder / line.file).is_file()]
    _refuse(missing, len(lines), "that stage 3 wrote are missing; run it again")
    finder = _Finder(references)
    items = []
    for line in lines:
        try:
            items.append(finder.item(line, folder / line.file))
        except _MissingError as error:
            missing.append(f"{line.id}: {error}")
    _refuse(missing, len(lines), "have no recording to be compared with")
    return items


class _MissingError(Exception):
    """There is no recording; the message says where it was looked for."""


class _Finder:
    """Finds what belongs to a line; keeps the stores and manifests that it has read."""

    def __init__(self, references: References) -> None:
        self._references = references
        self._store = functools.cache(RecordingStore)
        self._manifest = functools.cache(_manifest_of)

    def item(self, line: Line | ClipLine, file: Path) -> Item:
        """A file with its recording.

        Raises:
            _MissingError: If that is nowhere.
        """
        if isinstance(line, ClipLine):
            return self._of_clip(line, file)
        return self._of_text(line, file)

    def _of_clip(self, line: ClipLine, file: Path) -> Item:
        """The recording is in the store of stage 1, or the file that stage 3 was given."""
        source, preprocess = Path(line.mel_source), self._references.preprocess
        said = self._manifest(source).get(line.id)
        recorded: Callable[[], np.ndarray]
        if self._references.recordings is not None:
            recorded = self._given(line.id)
        elif source.is_dir():
            store = self._store(source, preprocess.mel)
            if line.id not in store:
                raise _MissingError(f"not in {source}")
            recorded = partial(_stored, store, line.id)
        elif source.is_file() and source.suffix.lower() in SUFFIXES:
            recorded = partial(_read, source, preprocess)
        else:
            raise _MissingError(f"{source} holds none; give --recordings")
        text, language = (said.text, said.language) if said is not None else ("", "")
        return Item(line.id, file, recorded, text, language)

    def _of_text(self, line: Line, file: Path) -> Item:
        """The recording is in the corpus that stage 1 read."""
        preprocess = self._references.preprocess
        processed = user_path(preprocess.processed_dir) / line.dataset
        said = self._manifest(processed).get(line.id) if line.dataset else None
        if self._references.recordings is not None:
            recorded = self._given(line.id)
        elif said is None:
            where = f"not in {processed}" if line.dataset else "a text of the user's"
            raise _MissingError(f"{where}; give --recordings")
        elif not said.audio.is_file():
            raise _MissingError(f"{said.audio} is missing")
        else:
            recorded = partial(_read, said.audio, preprocess)
        language = said.language if said else self._references.languages.get(line.speaker, "")
        return Item(line.id, file, recorded, line.normalized, language)

    def _given(self, id: str) -> Callable[[], np.ndarray]:
        folder = cast("Path", self._references.recordings)
        for parent in (folder, folder / "wavs"):
            for suffix in SUFFIXES:
                if (path := parent / f"{id}{suffix}").is_file():
                    return partial(_read, path, self._references.preprocess)
        raise _MissingError(f"no {id}{SUFFIXES[0]} in {folder} or in its wavs")


def _manifest_of(folder: Path) -> dict[str, Utterance]:
    """The utterances of a data set of stage 1, by id; none if the folder is none."""
    path = folder / "manifest.jsonl"
    return {u.id: u for u in read_manifest(path)} if path.is_file() else {}


def _stored(store: RecordingStore, id: str) -> np.ndarray:
    return from_pcm16(store.read(id).wav)


def _read(path: Path, preprocess: PreprocessConfig) -> np.ndarray:
    unlimited = dataclasses.replace(preprocess, min_seconds=0.0, max_seconds=math.inf)
    try:
        return read_audio(path, unlimited).wav
    except AudioError as error:
        raise InputError(f"{path.parent}: {error}") from error


def _refuse(missing: Sequence[str], n_files: int, fault: str) -> None:
    if not missing:
        return
    more = [f"and {len(missing) - SHOWN} more"] if len(missing) > SHOWN else []
    listed = "".join(f"\n  {line}" for line in (*missing[:SHOWN], *more))
    raise InputError(f"{len(missing)} of {n_files} files {fault}:{listed}")
