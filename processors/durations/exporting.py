"""Exports the alignments of stage 1 in the formats of other programs."""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, cast

from config.preprocess import PreprocessConfig
from preprocessors.manifest import read_utterances
from processors.alignment.timed import find_words
from processors.dataset.store import FeatureStore, features_folder
from processors.durations.frames import FrameRate
from processors.durations.writing import WRITERS, AlignedSpeech, aligned_speech
from processors.records import Alignment, Features
from processors.text.frontend import TextFrontend
from processors.text.letters.mixing import mix
from utils.errors import InputError
from utils.files import read_json
from utils.logging import get_logger, progress

FindDurations = Callable[[Features], Features]  # adds durations to features that have none


def export_store(
    config: PreprocessConfig,
    folder: Path,
    format: str,
    output: Path,
    find: FindDurations | None = None,
) -> None:
    """Writes the alignments of a dataset that stage 1 has prepared.

    Times are those of the training frames, in seconds from the start of the recording. `find` adds
    durations to features that have none.
    """
    store = FeatureStore(folder)
    if not store.timed and find is None:
        raise InputError(
            f"{folder} holds no durations (preprocess.aligner {config.aligner}): a voice that was"
            " trained on it with learned has found them; give it as --infer_expt_dir"
        )
    output.mkdir(parents=True, exist_ok=True)
    WRITERS[format](output, _aligned(config, store, folder, find))
    _log.info("alignments as %s: %d in %s", format, len(store), output)


def _aligned(
    config: PreprocessConfig, store: FeatureStore, folder: Path, find: FindDurations | None
) -> Iterator[AlignedSpeech]:
    utterances = read_utterances(folder)
    seconds: dict[str, float] = {}
    for path in features_folder(folder).glob("shard-*.json"):
        seconds |= cast("Mapping[str, Any]", read_json(path))["audio_seconds"]
    rate = FrameRate(store.mel.hop_length, store.mel.sample_rate)

    @cache
    def frontend(language: str) -> TextFrontend:
        return TextFrontend(config.text, language)

    with progress(len(store), "alignments") as bar:
        for id in store.ids:
            if id not in utterances or id not in seconds:
                raise InputError(f"{folder}: {id} is not in its manifest; run stage 1 again")
            utterance = utterances[id]
            read = frontend(utterance.language)(utterance.text)
            spoken = mix(read, config.text.certain_p_arpabet)
            features = store.read(id) if find is None else find(store.read(id))
            if features.durations is None:
                raise InputError(f"{folder}: {id} has no durations; run stage 1 again")
            edges = rate.boundaries_s(features.durations, features.start)  # (N + 1,)
            alignment = Alignment(features.phones, edges, find_words(features.phones, spoken))
            yield aligned_speech(utterance, alignment, seconds[id], features.durations, store.mel)
            bar.advance()


_log = get_logger(__name__)
