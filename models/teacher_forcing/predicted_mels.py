"""Stage 1 of a vocoder for one acoustic model: recordings with the mels that the model predicts.

A vocoder trained only on mels of recordings makes the smoother mels of an acoustic model sound
metallic; fine-tuning on predicted mels corrects this (Kong et al. 2020, section 4.4). With the true
durations, pitch and energy, they are aligned with the recordings. The splits of the acoustic model
are used, so that neither model was trained on the test utterances of the other.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import cast

import numpy as np

from config.preprocess import PreprocessConfig
from config.schema import Config
from models.base.aligner import JointAligner
from models.base.devices import resolved_device
from models.base.model import AcousticModel
from models.base.registry import model_of
from models.checkpoint.foreign import fetch
from models.checkpoint.loading import TrainedModel, load_model
from models.checkpoint.tensors import weights_digest
from models.teacher_forcing.durations import VoiceData, load_joint_aligner
from modules.mel import MelSpectrogram
from preprocessors.corpora import read_origin
from preprocessors.manifest import Listing, Utterance, read_splits, read_utterances
from processors.audio.files import read_audio
from processors.audio.frames import SpanError, cut_span, mel_of, to_pcm16
from processors.dataset.store import FeatureStore, processed_folder, shard_writer
from processors.extraction import fingerprint
from processors.extraction.fingerprint import Dependence
from processors.extraction.plan import DatasetRun, plan_run
from processors.extraction.run import carry_out
from processors.extraction.shards import ShardReport, Trace, extract_or_reject, shard_path
from processors.records import Features, MelWav
from utils.errors import InputError
from utils.files import size_and_time
from utils.parallel import n_cores, torch_threads

_SAME_MEL = 0.05  # mean difference: another version of PyTorch gives 1e-6, another take 1 and more


def prepare_from_acoustic(
    config: Config, reference: str | Path, n_threads: int = 1, processed: Path | None = None
) -> None:
    """Runs stage 1 of a vocoder with the mels of an acoustic model, for every dataset.

    Runs in this process, on a GPU if there is one. Finished work is not repeated.

    Args:
        reference: The acoustic model: an experiment, a checkpoint or a name on the Hub.
        processed: Holds the data of the acoustic model, as `<processed>/<dataset>`; None: the
            `processed_dir` of its configuration.
    """
    if config.task != "vocoder":
        fault = f"the task of this configuration is {config.task}"
        raise InputError(f"--from_acoustic prepares the training data of a vocoder; {fault}")
    acoustic = load_model(fetch(reference, for_training=True), resolved_device())
    acoustic.require_task("tts", f"--from_acoustic: {reference}")
    # of another padding, the audio is shifted by half a hop to match the mels
    if different := acoustic.mel.differences(config.preprocess.mel, ignore=("padding",)):
        fault = f"--from_acoustic: {reference} predicts another mel than this vocoder reads"
        values = f"{', '.join(different)} (model and configuration)"
        raise InputError(f"{fault}: {values}; use the vocoder configuration of the same mel")
    source = acoustic.config.preprocess
    if processed is not None:
        source = replace(source, processed_dir=str(processed))
    # all datasets are checked before the first one is processed
    n_threads = min(n_threads, n_cores())
    for run in [_plan(config.preprocess, d, acoustic, source, n_threads) for d in config.dataset]:
        carry_out(run, n_jobs=1)


def _plan(
    preprocess: PreprocessConfig,
    dataset: str,
    acoustic: TrainedModel,
    made_with: PreprocessConfig,
    n_threads: int,
) -> DatasetRun:
    """Plans stage 1 of a vocoder for one dataset, from features `made_with` that configuration."""
    # the network stays in this process, on its device
    options = replace(preprocess, backend="sequential")
    source = processed_folder(made_with, dataset)
    try:
        fingerprint.check_prepared(made_with, dataset, "tts", flag="--acoustic_data")
        store = FeatureStore(source, acoustic.mel)
        splits = read_splits(source)
        utterances = [u for u in read_utterances(source).values() if u.id in store]
    except InputError as error:
        needed = f"the features of {dataset} that {acoustic.origin} was trained on"
        raise InputError(f"--from_acoustic needs {needed}: {error}") from error

    networks = [acoustic.network]
    is_timed = store.timed or not model_of(acoustic.config).needs_durations
    aligner = None if is_timed else load_joint_aligner(acoustic)
    if aligner is not None:
        networks.append(aligner.to(next(acoustic.network.parameters()).device))
    data = VoiceData(acoustic, store)

    def identity(utterance: Utterance) -> list[object]:
        features = [store.checksum(utterance.id), int(store.starts[store.index_of(utterance.id)])]
        return [utterance.id, utterance.speaker, *features, *size_and_time(utterance.audio)]

    dependence = Dependence(
        "vocoder",
        {*fingerprint.IGNORED["vocoder"], "split"},
        identity,
        {fingerprint.PREDICTED_BY: f"sha256 {weights_digest(*networks)[:32]}"},
        {fingerprint.MODEL_OF_MELS: acoustic.origin, "from_acoustic.splits": splits._asdict()},
    )
    folder, spectrogram = processed_folder(options, dataset), MelSpectrogram(store.mel)
    work = PredictionWork(data, options, folder, spectrogram, n_threads, aligner)
    listing = Listing(utterances, [], [], read_origin(source / "report.json"))
    run = plan_run(options, dataset, listing, dependence, work)
    return replace(run, mels_from=acoustic.origin, splits=splits)


@dataclass(frozen=True)
class PredictionWork:
    """Makes shards of recordings and predicted mels."""

    data: VoiceData
    config: PreprocessConfig  # of the vocoder
    folder: Path  # where processed data go
    spectrogram: MelSpectrogram  # of the features
    n_threads: int
    aligner: JointAligner | None = None  # of a voice whose data have no durations

    def __call__(self, name: str, utterances: Sequence[Utterance]) -> ShardReport:
        """Predicts and writes one shard."""
        report = ShardReport()
        by_id = {utterance.id: utterance for utterance in utterances}
        with shard_writer(shard_path(self.folder, name), list(by_id), self.config.mel) as writer:
            for group in self.data.groups(by_id):
                recordings = list(self._read([by_id[id] for id in group], report))
                for record in self._predict(recordings) if recordings else ():
                    writer.add(record)
        report.rows = writer.rows
        return report

    def _read(self, utterances: Sequence[Utterance], report: ShardReport) -> Iterator[MelWav]:
        """Yields recordings with their true mels; the others are counted as rejected."""
        store = self.data.store
        features = {u.id: store.read(u.id) for u in utterances}  # a fault here ends the work
        for utterance in utterances:
            trace = Trace()
            cut = partial(self._cut, features[utterance.id])
            record = extract_or_reject(cut, utterance, trace, report.rejected)
            report.add_utterance(utterance.id, trace)
            if record is not None:
                yield record

    def _cut(self, features: Features, utterance: Utterance, trace: Trace) -> MelWav:
        """Cuts a recording to the span of its features, with the mel that they have."""
        audio = read_audio(utterance.audio, self.config)
        trace.audio_seconds = len(audio.wav) / self.config.sample_rate
        trace.part = "features"
        self.data.vocabulary.ids(features.phones)
        T, mel = features.mel.shape[1], self.data.store.mel
        span = cut_span(audio.wav, features.start, T, mel)
        difference = float(np.abs(mel_of(span, self.spectrogram) - features.mel).mean())
        if difference > _SAME_MEL:
            fault = f"its mel differs from the features' by {difference:.2f} in the mean"
            remedy = "run stage 1 of the acoustic model again"
            raise SpanError(f"{fault}, so that they are of another recording; {remedy}")
        # the window of a frame begins at the same sample in both mel definitions
        start = features.start + self.config.mel.edge_samples[0] - mel.edge_samples[0]
        wav = cut_span(audio.wav, start, T, self.config.mel)
        trace.notices = audio.notices
        return MelWav(utterance.id, features.speaker, features.mel, to_pcm16(wav), start)

    def _predict(self, recordings: Sequence[MelWav]) -> list[MelWav]:
        """Returns the same recordings with the mels that the model predicts."""
        batch = self.data.batch(recording.id for recording in recordings)
        network = cast("AcousticModel", self.data.voice.network)
        with torch_threads(self.n_threads):  # the rest of a run has one
            if self.aligner is not None:
                batch = batch._replace(durations=self.aligner.find_durations(batch))
            mels = network.teacher_forced_mel(batch).cpu().numpy()  # (B, M, T)
        pairs = zip(recordings, mels, strict=True)
        return [replace(r, mel=mel[:, : r.mel.shape[1]]) for r, mel in pairs]
