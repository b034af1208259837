"""What stage 1 aligned, in the forms that other programs read."""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, cast

from config.schema import PreprocessConfig
from modules.mel import MelConfig
from preprocessors.manifest import Utterance, read_utterances
from processors.alignment.timed import find_words
from processors.dataset.store import FeatureStore, features_folder
from processors.durations.fitting import phones_of, words_of
from processors.durations.formats import AlignedSpeech, find_writer
from processors.durations.frames import FrameRate
from processors.records import Alignment, Features, SpokenText
from processors.text.frontend import TextFrontend
from utils.errors import InputError
from utils.files import read_json
from utils.logging import get_logger, progress


def export_store(
    config: PreprocessConfig,
    folder: Path,
    format: str,
    output: Path,
    find: Callable[[Features], Features] | None = None,
) -> None:
    """Writes the alignments of a data set that stage 1 has prepared.

    Times are those of the frames that models are trained on, in seconds from the start of the
    recording.

    Args:
        config: Stage 1; `text` says what the words are.
        folder: `<processed_dir>/<dataset>`.
        format: Of `writer_names`.
        output: Folder; made where missing, files in it are replaced.
        find: Adds durations to features that have none.

    Raises:
        InputError: If stage 1 was not finished, or left the durations to the model and nothing
            finds them.
    """
    store = FeatureStore(folder)
    if not store.timed and find is None:
        raise InputError(
            f"{folder} holds no durations (preprocess.aligner learned): the voice that was trained"
            " on it has found them; give it as --infer_expt_dir"
        )
    output.mkdir(parents=True, exist_ok=True)
    find_writer(format).write(output, _aligned(config, store, folder, find))
    _log.info("alignments as %s: %d in %s", format, len(store), output)


def _aligned(
    config: PreprocessConfig,
    store: FeatureStore,
    folder: Path,
    find: Callable[[Features], Features] | None,
) -> Iterator[AlignedSpeech]:
    utterances = read_utterances(folder)
    seconds = _seconds(folder)

    @cache
    def frontend(language: str) -> TextFrontend:
        return TextFrontend(config.text, language)

    with progress(len(store), "alignments") as bar:
        for id in store.ids:
            if id not in utterances or id not in seconds:
                raise InputError(f"{folder}: {id} is not in its manifest; run stage 1 again")
            utterance = utterances[id]
            spoken = frontend(utterance.language)(utterance.text)
            features = store.read(id) if find is None else find(store.read(id))
            yield aligned_speech(features, utterance, spoken, seconds[id], store.mel)
            bar.advance()


def aligned_speech(
    features: Features, utterance: Utterance, spoken: SpokenText, seconds: float, mel: MelConfig
) -> AlignedSpeech:
    """What the features of an utterance say about its recording.

    Args:
        features: From the store.
        utterance: From the manifest.
        spoken: What the text frontend makes of its text: the words.
        seconds: Length of the recording.
        mel: Of the store.

    Raises:
        InputError: If the features have no durations.
    """
    if features.durations is None:
        raise InputError(f"{features.id}: stage 1 found no durations, and left them to the model")
    rate = FrameRate(mel.hop_length, mel.sample_rate)
    edges = rate.boundaries_s(features.durations, features.start)  # (N + 1,)
    words = find_words(features.phones, spoken)
    alignment = Alignment(features.phones, edges, words)
    return AlignedSpeech(
        id=features.id,
        text=utterance.text,
        seconds=seconds,
        phones=phones_of(alignment),
        words=words_of(alignment),
        frames=features.durations,
        hop_length=mel.hop_length,
        sample_rate=mel.sample_rate,
    )


def _seconds(folder: Path) -> dict[str, float]:
    """Length of each recording, from the reports on the shards."""
    reports = sorted(features_folder(folder).glob("shard-*.json"))
    rows = (cast("Mapping[str, Any]", read_json(path)) for path in reports)
    return {id: float(s) for row in rows for id, s in row["audio_seconds"].items()}


_log = get_logger(__name__)
