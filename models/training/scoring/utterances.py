"""The validation utterances that are scored during training, and their recordings."""

import importlib.util
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple, cast

from config.preprocess import PreprocessConfig
from config.schema import Config
from models.training.data.loading import TrainingData
from preprocessors.manifest import MANIFEST, Utterance, read_utterances
from processors.dataset.batch import TtsBatch, VocoderBatch
from processors.metrics.recognition.labelled_speech import LabelledSpeech
from processors.records import Features
from utils.seed import derived_seed

_AUDIO_PACKAGES = ("soundfile", "soxr", "parselmouth")  # training needs none of them


class ValidationUtterance(NamedTuple):
    """A validation utterance that is scored."""

    id: str
    batch: TtsBatch | VocoderBatch  # a batch of it alone
    # reads its recording, cut to the span of its features
    read_recording: Callable[[], LabelledSpeech]


class UnavailableError(Exception):
    """Utterances cannot be scored on this machine; the message says why."""


def choose_utterances(config: Config, data: TrainingData) -> list[ValidationUtterance]:
    """Takes the first `train.score_utterances` validation utterances in a random, fixed order.

    The random order spreads them over speakers and datasets, and so also the first few of them.

    Raises:
        UnavailableError: If there are none, or a recording or a package to read it is missing.
    """
    if missing := [p for p in _AUDIO_PACKAGES if importlib.util.find_spec(p) is None]:
        raise UnavailableError(f"not installed: {', '.join(missing)}")
    ids = data.validation.ids
    order = sorted(range(len(ids)), key=lambda item: derived_seed("score", ids[item]))
    if not order:
        raise UnavailableError("there is no validation data")
    chosen = order[: config.train.score_utterances]
    manifests = {
        folder: read_utterances(folder) if (folder / MANIFEST).is_file() else {}
        for folder in {data.validation.store_of(item).folder for item in chosen}
    }
    return [_utterance(item, data, manifests, config.preprocess) for item in chosen]


def _utterance(
    item: int,
    data: TrainingData,
    manifests: Mapping[Path, Mapping[str, Utterance]],
    preprocess: PreprocessConfig,
) -> ValidationUtterance:
    id, store = data.validation.ids[item], data.validation.store_of(item)
    batch, utterance = data.validation_batch(item), manifests[store.folder].get(id)
    if isinstance(batch, VocoderBatch):
        is_whole = batch.mel.shape[2] == store.frames[store.index_of(id)]
        text, language = "", ""  # unknown if it was cut
        if utterance is not None and is_whole:
            text, language = utterance.text, utterance.language
        wav, rate = batch.wav[0].numpy(), preprocess.sample_rate
        speech = LabelledSpeech(wav, rate, text, language, id=id, recorded=True)
        return ValidationUtterance(id, batch, lambda: speech)
    if utterance is None:
        raise UnavailableError(f"{id} is not in {store.folder / MANIFEST}")
    if not utterance.audio.is_file():
        raise UnavailableError(f"{utterance.audio} is missing")
    features = cast("Features", store.read(id))
    return ValidationUtterance(id, batch, partial(_read_span, features, utterance, preprocess))


def _read_span(
    features: Features, utterance: Utterance, preprocess: PreprocessConfig
) -> LabelledSpeech:
    """The span of a recording that its features cover."""
    from processors.audio.files import read_audio
    from processors.audio.frames import cut_span

    mel, T = preprocess.mel, features.mel.shape[1]
    audio = read_audio(utterance.audio, preprocess.of_any_length())
    wav = cut_span(audio.wav, features.start, T, mel)
    phones = features.timed_phones(mel.hop_length / mel.sample_rate)
    text, language = utterance.text, utterance.language
    return LabelledSpeech(wav, mel.sample_rate, text, language, phones, utterance.id, recorded=True)
