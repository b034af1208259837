"""Where the recording of an utterance is, what is said in it, and when."""

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np

from config.schema import PreprocessConfig
from models.evaluation.inputs import Result
from modules.mel import MelConfig
from preprocessors.audio_folder import SUFFIXES
from preprocessors.manifest import MANIFEST, Utterance, read_utterances
from processors.audio.files import AudioError, read_audio
from processors.audio.pcm import from_pcm16
from processors.dataset.store import FeatureStore, RecordingStore
from processors.records import TimedPhone
from utils.errors import InputError
from utils.files import user_path


@dataclass(frozen=True)
class References:
    """Where recordings and texts are looked for.

    Attributes:
        preprocess: Stage 1: the sample rate, and where its data sets are.
        recordings: A folder of `<id>.wav` or other audio, there or in its `wavs`; None: the
            recordings that stage 1 or 3 read.
        languages: espeak language code by speaker, for what is in no manifest; of "" for speakers
            that are not known.
        datasets: In which files that name none are looked for.
        texts: What is said, by id, in copies and in files that stage 3 did not write; None: as in
            the manifests of stage 1.
    """

    preprocess: PreprocessConfig
    recordings: Path | None = None
    languages: Mapping[str, str] = field(default_factory=dict)
    datasets: tuple[str, ...] = ()
    texts: Mapping[str, str] | None = None


class Found(NamedTuple):
    """What belongs to an utterance."""

    recorded: Callable[[], np.ndarray] | None  # (S,) at the mel's rate; None: it has no recording
    audio: Path | None  # the file that this reads; None where it is in a store
    phones: Callable[[], tuple[TimedPhone, ...]] | None  # of the recording
    text: str
    language: str
    speaker: str
    written: str = ""  # the text as it was typed, where that is known


class MissingError(Exception):
    """There is no recording; the message says where it was looked for."""


class Finder:
    """Finds what belongs to a file; keeps the manifests and indexes that it has read.

    Args:
        references: Where it looks.
    """

    def __init__(self, references: References) -> None:
        self._references = references
        self._manifest = functools.cache(_manifest_of)
        self._aligned = functools.cache(_aligned_in)

    def find(self, result: Result) -> Found:
        """The recording of a file, and its text.

        A text of the user's, or a file that is in no data set, has no recording unless there is a
        folder of them.

        Raises:
            MissingError: If the recording is nowhere.
            InputError: If several data sets have an utterance of that name.
        """
        if result.kind == "copy":
            return self._of_copy(result)
        return self._of_speech(result)

    def _of_copy(self, result: Result) -> Found:
        """The recording is in the store of stage 1, or the file that stage 3 was given."""
        source, preprocess = cast("Path", result.source), self._references.preprocess
        said = self._manifest(source).get(result.id)
        audio = None
        recorded: Callable[[], np.ndarray]
        if self._references.recordings is not None:
            audio = self._given(result.id)
        elif source.is_dir():
            if result.id not in _recording_store(source, preprocess.mel):
                raise MissingError(f"not in {source}")
            recorded = partial(_stored, source, preprocess.mel, result.id)
        elif source.is_file() and source.suffix.lower() in SUFFIXES:
            audio = source
        else:
            raise MissingError(f"{source} holds none; give --recordings")
        if audio is not None:
            recorded = partial(_read, audio, preprocess)
        return self._found(result, recorded, audio, None, said)

    def _of_speech(self, result: Result) -> Found:
        """The recording is in the corpus that stage 1 read, unless a folder was given."""
        folder, said = self._said(result)
        audio = None
        if self._references.recordings is not None:
            audio = self._given(result.id)
        elif said is not None:
            audio = said.audio
            if not audio.is_file():
                raise MissingError(f"{audio} is missing")
        elif result.dataset:
            raise MissingError(f"not in {folder}; give --recordings")
        phones = None
        known = said is not None and audio is not None and _same(audio, said.audio)
        if known and result.id in self._aligned(folder):
            phones = partial(_aligned_phones, folder, result.id)
        read = partial(_read, audio, self._references.preprocess) if audio is not None else None
        return self._found(result, read, audio, phones, said)

    def _found(
        self,
        result: Result,
        recorded: Callable[[], np.ndarray] | None,
        audio: Path | None,
        phones: Callable[[], tuple[TimedPhone, ...]] | None,
        said: Utterance | None,
    ) -> Found:
        speaker = result.speaker or (said.speaker if said is not None else "")
        language = said.language if said else self._references.languages.get(speaker, "")
        text = result.normalized or (said.text if said is not None else "")
        if result.kind != "text" and self._references.texts is not None:
            text = self._references.texts.get(result.id, text)
        return Found(recorded, audio, phones, text, language, speaker, result.text)

    def _said(self, result: Result) -> tuple[Path, Utterance | None]:
        """The folder of the data set that an utterance is of, and what its manifest says."""
        folders = [self._folder(name) for name in self._datasets_of(result)]
        holding = [folder for folder in folders if result.id in self._manifest(folder)]
        if len(holding) > 1:
            raise InputError(
                f"{result.file}: an utterance of {' and '.join(one.name for one in holding)}; say "
                "which by --infer_dataset"
            )
        folder = (holding or folders or [self._folder("")])[0]
        return folder, self._manifest(folder).get(result.id)

    def _datasets_of(self, result: Result) -> tuple[str, ...]:
        if result.dataset:
            return (result.dataset,)
        return self._references.datasets if result.kind == "file" else ()

    def _folder(self, dataset: str) -> Path:
        return user_path(self._references.preprocess.processed_dir) / dataset

    def _given(self, id: str) -> Path:
        folder = cast("Path", self._references.recordings)
        for parent in (folder, folder / "wavs"):
            for suffix in SUFFIXES:
                if (path := parent / f"{id}{suffix}").is_file():
                    return path
        raise MissingError(f"no {id}{SUFFIXES[0]} in {folder} or in its wavs")


def _same(one: Path, other: Path) -> bool:
    return one.resolve() == other.resolve()


def _manifest_of(folder: Path) -> dict[str, Utterance]:
    """The utterances of a data set of stage 1, by id; none if the folder is none."""
    return read_utterances(folder) if (folder / MANIFEST).is_file() else {}


def _aligned_in(folder: Path) -> frozenset[str]:
    """Utterances whose phones stage 1 has aligned; none where it did not get so far."""
    try:
        store = _feature_store(folder)
        return frozenset(store.ids if store.timed else ())
    except InputError:  # unfinished, or recordings without phones: scores do without
        return frozenset()


# By process: stores travel between processes by their place, not as thousands of copies.
@functools.lru_cache(maxsize=8)
def _feature_store(folder: Path) -> FeatureStore:
    return FeatureStore(folder)


@functools.lru_cache(maxsize=8)
def _recording_store(folder: Path, mel: MelConfig) -> RecordingStore:
    return RecordingStore(folder, mel)


def _aligned_phones(folder: Path, id: str) -> tuple[TimedPhone, ...]:
    store = _feature_store(folder)
    features, mel = store.read(id), store.mel
    start_s = features.start / mel.sample_rate
    phones = features.timed_phones(mel.hop_length / mel.sample_rate)
    return tuple(TimedPhone(p.name, start_s + p.start_s, start_s + p.end_s) for p in phones)


def _stored(folder: Path, mel: MelConfig, id: str) -> np.ndarray:
    return from_pcm16(_recording_store(folder, mel).read(id).wav)


def _read(path: Path, preprocess: PreprocessConfig) -> np.ndarray:
    unlimited = dataclasses.replace(preprocess, min_seconds=0.0, max_seconds=math.inf)
    try:
        return read_audio(path, unlimited).wav
    except AudioError as error:
        raise InputError(f"{path.parent}: {error}") from error
