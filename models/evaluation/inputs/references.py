"""References: recordings of utterances, their texts and phones, and resynthesised copies."""

import functools
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import cast

import numpy as np

from config.preprocess import PreprocessConfig
from models.base.devices import resolved_device
from models.evaluation.inputs.options import EvaluationInputs, EvaluationOptions
from models.evaluation.inputs.systems import SystemFile
from models.synthesizer.fingerprint import fingerprint
from models.synthesizer.runs import copy_synthesis
from models.synthesizer.runs.results import CopyLine, ResultFolder
from models.synthesizer.vocoders import BUILT_IN, OpenedVocoder, open_vocoder
from modules.mel import MelConfig, MelSpectrogram
from preprocessors.audio_folder import SUFFIXES
from preprocessors.manifest import MANIFEST, Utterance, read_utterances
from processors.audio.files import AudioError, read_audio
from processors.audio.frames import from_pcm16, mel_of
from processors.dataset.store import FeatureStore, MelWavStore
from processors.extraction.fingerprint import check_prepared
from processors.metrics.utterance_scorer import EvaluatedUtterance, SpeechFile
from processors.records import TimedPhone
from utils.errors import InputError
from utils.files import user_path
from utils.logging import get_logger

COPY = "copy"  # resynthesised recordings, as a system
_VERSION = 2  # raised when the same recording and vocoder give another copy than before


class MissingRecordingError(Exception):
    """There is no recording; the message says where it was looked for."""


class ReferenceFinder:
    """Finds references; keeps the manifests that it has read."""

    def __init__(self, inputs: EvaluationInputs) -> None:
        self._inputs = inputs
        self._manifest = functools.cache(_read_manifest)

    def find(self, file: SystemFile) -> EvaluatedUtterance:
        """Finds the recording, text and phones of a file; the result has no speech yet.

        The user's own texts and files of no dataset have no recording, unless the folder of
        recordings is given. A missing recording is a MissingRecordingError.
        """
        folder = self._folder_of(file)
        utterance = self._manifest(folder).get(file.id)
        audio = self._audio_of(file, folder, utterance)
        preprocess, texts = self._inputs.preprocess, self._inputs.texts
        recorded = None
        phones: Callable[[], tuple[TimedPhone, ...]] = tuple
        if audio is not None:
            recorded = partial(_read, audio, preprocess)
        elif file.kind == "copy":
            recorded = partial(_read_stored, folder, preprocess.mel, file.id)
        text, language = file.normalised, self._inputs.languages.get(file.speaker, "")
        if utterance is not None:
            text, language = text or utterance.text, utterance.language
            is_listed = audio is not None and audio.resolve() == utterance.audio.resolve()
            if file.kind != "copy" and is_listed:
                phones = partial(_read_phones, folder, file.id)
        if file.kind != "text" and texts is not None:
            text = texts.get(file.id, text)
            if file.kind == "file" and not text:
                raise InputError(f"{file.file}: the table of --texts has no line of {file.id}")
        return EvaluatedUtterance(file.id, recorded, text, language, phones, {}, file.text, audio)

    def _folder_of(self, file: SystemFile) -> Path:
        """Returns the folder of stage 1 of an utterance; of a copy: the source of its mel."""
        if file.kind == "copy":
            return cast("Path", file.source)
        names = self._inputs.datasets if file.kind == "file" else ()
        processed = user_path(self._inputs.preprocess.processed_dir)
        folders = [processed / name for name in ((file.dataset,) if file.dataset else names)]
        holding = [folder for folder in folders if file.id in self._manifest(folder)]
        if len(holding) > 1:
            both = " and ".join(path.name for path in holding)
            raise InputError(f"{file.file}: an utterance of {both}; say which by --infer_dataset")
        return (holding or folders or [processed])[0]

    def _audio_of(self, file: SystemFile, folder: Path, utterance: Utterance | None) -> Path | None:
        """Returns the file of the recording; None if it is missing or in the store of stage 1."""
        if self._inputs.recordings is not None:
            return _find_recording(self._inputs.recordings, file.id)
        if file.kind == "copy" and folder.is_dir():  # the store
            if file.id not in _recording_store(folder, self._inputs.preprocess.mel):
                raise MissingRecordingError(f"not in {folder}")
            return None
        if file.kind == "copy":  # the file that stage 3 was given
            if folder.is_file() and folder.suffix.lower() in SUFFIXES:
                return folder
            raise MissingRecordingError(f"{folder} holds none; give --recordings")
        if utterance is not None:
            if not utterance.audio.is_file():
                raise MissingRecordingError(f"{utterance.audio} is missing")
            return utterance.audio
        if file.dataset:
            check_prepared(self._inputs.preprocess, file.dataset, task=None)
            raise MissingRecordingError(f"not in {folder}; give --recordings")
        return None


def _find_recording(folder: Path, id: str) -> Path:
    for parent, suffix in product((folder, folder / "wavs"), SUFFIXES):
        if (path := parent / f"{id}{suffix}").is_file():
            return path
    raise MissingRecordingError(f"no {id}{SUFFIXES[0]} in {folder} or in its wavs")


def _read_manifest(folder: Path) -> dict[str, Utterance]:
    """Returns the utterances of a dataset of stage 1, by id; none if it is not prepared."""
    return read_utterances(folder) if (folder / MANIFEST).is_file() else {}


# One per process: workers get the path of a store, not thousands of copies of its index.
_feature_store = functools.lru_cache(maxsize=8)(FeatureStore)
_recording_store = functools.lru_cache(maxsize=8)(MelWavStore)


def _read_phones(folder: Path, id: str) -> tuple[TimedPhone, ...]:
    try:
        store = _feature_store(folder)
    except InputError:  # unfinished, or recordings without phones: no phones to compare
        return ()
    if not store.timed or id not in store:
        return ()
    features, mel = store.read(id), store.mel
    start_s = features.start / mel.sample_rate
    phones = features.timed_phones(mel.frame_s)
    return tuple(TimedPhone(p.name, start_s + p.start_s, start_s + p.end_s) for p in phones)


def _read_stored(folder: Path, mel: MelConfig, id: str) -> np.ndarray:
    return from_pcm16(_recording_store(folder, mel).read(id).wav)


def _read(path: Path, preprocess: PreprocessConfig) -> np.ndarray:
    try:
        return read_audio(path, preprocess.of_any_length()).wav
    except AudioError as error:
        raise InputError(f"{path.parent}: {error}") from error


def add_copies(
    items: list[EvaluatedUtterance],
    vocoders: set[str],
    inputs: EvaluationInputs,
    options: EvaluationOptions,
    folder: Path,
) -> list[EvaluatedUtterance]:
    """Adds resynthesised recordings as the system `copy`; without, logs why and returns `items`."""
    if not options.copies:
        return items
    name, *others = vocoders or {""}
    # without a name, one that all systems used
    reference = options.vocoder or (None if others else BUILT_IN.get(name))
    is_copy = any(spoken.is_copy for spoken in items[0].spoken.values())
    if items[0].recorded is None or is_copy or reference is None:
        names = ", ".join(sorted(vocoders - {""})) or "an unknown vocoder"
        reason = f"stage 3 used {names}; name a vocoder by --vocoder_dir"
        if items[0].recorded is None or is_copy:
            reason = "it needs recordings, and systems that are no copies"
        get_logger(__name__).info("no copy-synthesis: %s", reason)
        return items
    vocoder = open_vocoder(reference, inputs.preprocess.mel, resample=options.resample)
    files = resynthesise(items, vocoder, inputs, folder)
    return [
        replace(item, spoken={**item.spoken, COPY: SpeechFile(files[item.id], is_copy=True)})
        for item in items
    ]


def resynthesise(
    items: Sequence[EvaluatedUtterance],
    vocoder: OpenedVocoder,
    inputs: EvaluationInputs,
    folder: Path,
) -> dict[str, Path]:
    """Writes a copy of each recording to `<folder>/<id>.wav`, without its last partial frame.

    An existing copy is kept while recording, mel, vocoder and its settings are the same. Runs on a
    GPU if there is one, one recording at a time: batches are no faster.
    """
    device, settings = resolved_device(), inputs.inference
    network, spectrogram = vocoder.load(settings, device), MelSpectrogram(vocoder.mel)
    facts = fingerprint(_VERSION, asdict(vocoder.mel), *vocoder.facts(network, settings))
    synthesis = copy_synthesis.CopySynthesis(
        network, vocoder.mel, inputs.preprocess, vocoder.name, folder, device, facts
    )
    pairs = [(item, item.recorded) for item in items if item.recorded is not None]
    sources = [_source(item, recorded, folder, spectrogram) for item, recorded in pairs]
    copy_synthesis.synthesise_mels(synthesis, sources, ResultFolder(folder, CopyLine))
    return {source.id: folder / f"{source.id}.wav" for source in sources}


def _source(
    item: EvaluatedUtterance, recorded: Callable[[], np.ndarray], folder: Path, mel: MelSpectrogram
) -> copy_synthesis.MelSource:
    n_samples, hop_length = len(wav := recorded()), mel.config.hop_length
    n_whole = n_samples // hop_length * hop_length
    if n_whole < mel.config.n_fft:
        fault = f"{item.id} has {n_samples} samples, too few for a mel"
        raise InputError(f"copy-synthesis: {fault}; leave it out, or all copies by --copies no")
    digest = hashlib.sha256(np.ascontiguousarray(wav).tobytes()).digest()
    version = (int.from_bytes(digest[:8], "big"),)

    def load() -> copy_synthesis.VocoderInput:
        return mel_of(recorded()[:n_whole], mel), None

    return copy_synthesis.MelSource(item.id, "", item.audio or folder, version, load)
