"""Validation utterances that are scored while a model trains, and their recordings."""

import dataclasses
import functools
import importlib.util
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple, cast

from config.schema import Config, PreprocessConfig
from models.training.data import TrainingData
from preprocessors.manifest import MANIFEST, Utterance, read_utterances
from processors.dataset.batch import TtsBatch, VocoderBatch
from processors.records import Features
from processors.scoring.recognition import LabelledSpeech
from utils.seed import derived_seed

_AUDIO_PACKAGES = ("soundfile", "soxr", "parselmouth")


class ValidationUtterance(NamedTuple):
    """A validation utterance.

    Attributes:
        id: Its name.
        batch: It alone.
        recorded: Reads its recording, of the span that its features were made of.
    """

    id: str
    batch: TtsBatch | VocoderBatch
    recorded: Callable[[], LabelledSpeech]


class UnavailableError(Exception):
    """Recordings cannot be had here; the message says why."""


def missing_audio_packages() -> list[str]:
    """Those that are not installed of what reads and analyses sound; training needs none of it."""
    return [name for name in _AUDIO_PACKAGES if importlib.util.find_spec(name) is None]


def sentences_of(config: Config, data: TrainingData) -> list[ValidationUtterance]:
    """The first `train.score_utterances` of the validation data in an order of their own.

    The order is by chance and the same each time: it spreads over speakers and datasets, and so do
    the first few of it.

    Raises:
        UnavailableError: If there is none, a recording is missing, or a package that reads them.
    """
    if missing := missing_audio_packages():
        raise UnavailableError(f"not installed: {', '.join(missing)}")
    ids = data.validation.ids
    order = sorted(range(len(ids)), key=lambda item: derived_seed("score", ids[item]))
    if not order:
        raise UnavailableError("there is no validation data")
    said = functools.cache(_manifest_of)
    return [
        _sentence(item, data, said, config.preprocess)
        for item in order[: config.train.score_utterances]
    ]


def _sentence(
    item: int,
    data: TrainingData,
    said: Callable[[Path], dict[str, Utterance]],
    preprocess: PreprocessConfig,
) -> ValidationUtterance:
    id, store = data.validation.ids[item], data.validation.store_of(item)
    batch, utterance = data.validation_batch(item), said(store.folder).get(id)
    if isinstance(batch, VocoderBatch):
        is_whole = batch.mel.shape[2] == store.frames[store.index_of(id)]
        said_in_it = utterance if is_whole else None
        return ValidationUtterance(id, batch, partial(_of_store, batch, preprocess, said_in_it))
    if utterance is None:
        raise UnavailableError(f"{id} is not in {store.folder / 'manifest.jsonl'}")
    if not utterance.audio.is_file():
        raise UnavailableError(f"{utterance.audio} is missing")
    features = cast("Features", store.read(id))
    return ValidationUtterance(id, batch, partial(_of_corpus, features, utterance, preprocess))


def _manifest_of(folder: Path) -> dict[str, Utterance]:
    return read_utterances(folder) if (folder / MANIFEST).is_file() else {}


def _of_store(
    batch: VocoderBatch, preprocess: PreprocessConfig, utterance: Utterance | None
) -> LabelledSpeech:
    """As vocoders validate on it: the beginning of a long one."""
    text, language = ("", "") if utterance is None else (utterance.text, utterance.language)
    wav, rate = batch.wav[0].numpy(), preprocess.sample_rate
    return LabelledSpeech(wav, rate, text, language, id=batch.ids[0], recorded=True)


def _of_corpus(
    features: Features, utterance: Utterance, preprocess: PreprocessConfig
) -> LabelledSpeech:
    """The span of a recording that features were made of.

    Raises:
        AudioError: If the file cannot be read.
        SpanError: If it is shorter than its features.
    """
    from processors.audio.files import read_audio
    from processors.extraction.aligned_recordings import cut_span

    unlimited = dataclasses.replace(preprocess, min_seconds=0.0, max_seconds=math.inf)
    mel = preprocess.mel
    T = features.mel.shape[1]
    wav = cut_span(read_audio(utterance.audio, unlimited).wav, features.start, T, mel)
    frame_s = mel.hop_length / mel.sample_rate
    phones = features.timed_phones(frame_s)
    text, language = utterance.text, utterance.language
    return LabelledSpeech(wav, mel.sample_rate, text, language, phones, utterance.id, recorded=True)
