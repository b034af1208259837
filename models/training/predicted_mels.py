"""Stage 1 of a vocoder for one acoustic model: recordings with the mels that the model predicts.

A vocoder trained only on mels of recordings makes the smoother mels of an acoustic model sound
metallic; fine-tuning on predicted mels corrects this (Kong et al. 2020, section 4.4). The acoustic
model predicts by teacher forcing, with the true durations, pitch and energy, so that its mels are
aligned with the recordings. Its splits are used too, so that neither model was trained on the test
utterances of the other.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import cast

import torch
from torch import nn

from config.schema import Config, PreprocessConfig
from models.base.interfaces import AcousticModel
from models.base.joint_aligner import JointAligner, find_durations
from models.checkpoint.hub_files import fetch
from models.checkpoint.joint_aligner_loading import load_joint_aligner
from models.checkpoint.loading import LoadedModel, load_model
from modules.mel import MelConfig
from preprocessors.manifest import Listing, Splits, Utterance, read_utterances
from preprocessors.split import read_splits
from processors.dataset.batch import collate, on_device
from processors.dataset.sampler import Draw
from processors.dataset.shard_file import shard_writer
from processors.dataset.store import FeatureStore, processed_folder
from processors.dataset.utterances import FeatureDataset
from processors.extraction.aligned_recordings import AlignedTools
from processors.extraction.fingerprint import Dependence
from processors.extraction.plan import Run, plan_run
from processors.extraction.run import carry_out
from processors.extraction.shards import ShardReport, extract_or_reject, shard_path
from processors.extraction.summary import usable_part
from processors.extraction.trace import Trace
from processors.extraction.vocoder_plan import IGNORED
from processors.records import Recording
from utils.errors import InputError
from utils.files import size_and_time
from utils.logging import get_logger
from utils.parallel import torch_threads

_BATCH_FRAMES = 8192  # padding included; about 95 s


def prepare_from_acoustic(config: Config, reference: str | Path, n_threads: int = 1) -> None:
    """Runs stage 1 of a vocoder with the mels of an acoustic model, for every dataset.

    Runs in this process, on a GPU if there is one. Finished work is not repeated.

    Args:
        config: Of the vocoder.
        reference: The acoustic model: an experiment, a checkpoint or a name on the Hub.
        n_threads: CPU threads of the network.

    Raises:
        InputError: If the config is not of a vocoder, the reference not an acoustic model, their
            mels differ, or the processed data of the acoustic model are missing.
    """
    if config.task != "vocoder":
        raise InputError(
            "--from_acoustic prepares the training data of a vocoder; the task of this"
            f" configuration is {config.task}"
        )
    acoustic = load_model(
        fetch(reference, for_training=True), "cuda" if torch.cuda.is_available() else "cpu"
    )
    if acoustic.config.task != "tts":
        raise InputError(f"--from_acoustic: {reference} is a vocoder; expected an acoustic model")
    _check_mels(acoustic.mel, config.preprocess.mel, str(reference))
    # all datasets are checked before the first one is processed
    runs = [_plan(config, dataset, acoustic, n_threads) for dataset in config.dataset]
    for run in runs:
        carry_out(run, n_jobs=1)


def _check_mels(acoustic: MelConfig, vocoder: MelConfig, name: str) -> None:
    """Compares what is predicted with what the vocoder is configured to read."""
    if different := acoustic.differences(vocoder, ignore=("padding",)):
        raise InputError(
            f"--from_acoustic: {name} predicts another mel than this vocoder reads:"
            f" {', '.join(different)} (model and configuration); use the vocoder configuration of"
            " the same mel"
        )
    if acoustic.padding != vocoder.padding:
        get_logger(__name__).info(
            "mel padding: %s has %s, the configuration %s; the audio is shifted by half a hop to"
            " match the mels",
            name,
            acoustic.padding,
            vocoder.padding,
        )


def _plan(config: Config, dataset: str, acoustic: LoadedModel, n_threads: int) -> Run:
    """Plans stage 1 of a vocoder for one dataset."""
    options, source = config.preprocess, processed_folder(acoustic.config.preprocess, dataset)
    try:
        store = FeatureStore(source, acoustic.mel)
        splits = read_splits(source)
        utterances = [u for u in read_utterances(source).values() if u.id in store]
    except InputError as error:
        raise InputError(
            f"--from_acoustic needs the features of {dataset} that {acoustic.origin} was trained"
            f" on: {error}"
        ) from error

    networks = [acoustic.network]
    aligner = None if store.timed else load_joint_aligner(acoustic)
    if aligner is not None:
        networks.append(aligner.to(next(acoustic.network.parameters()).device))

    def identity(utterance: Utterance) -> list[object]:
        position = store.index_of(utterance.id)
        features = [store.checksum(utterance.id), int(store.starts[position])]
        return [utterance.id, utterance.speaker, *features, *size_and_time(utterance.audio)]

    dependence = Dependence(
        "vocoder",
        {*IGNORED, "split"},
        identity,
        {"from_acoustic.weights": _weights_of(*networks)},
        {"from_acoustic.model": acoustic.origin, "from_acoustic.splits": splits._asdict()},
    )
    work = PredictionWork(
        acoustic, store, options, processed_folder(options, dataset), n_threads, aligner
    )
    product = _PredictedProduct(acoustic.origin, splits)
    run = plan_run(options, dataset, Listing(utterances, [], []), dependence, product, work)
    # the network stays in this process, on its device
    return replace(run, backend="sequential")


def _weights_of(*networks: nn.Module) -> str:
    """Digest of all tensors of networks."""
    digest = hashlib.sha256()
    for name, tensor in (row for net in networks for row in sorted(net.state_dict().items())):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return f"sha256 {digest.hexdigest()[:32]}"


class _PredictedProduct:
    """Recordings with predicted mels, as the product of a run.

    Args:
        mels_from: Name of the acoustic model.
        splits: Of its data.
    """

    outputs: tuple[str, ...] = ()

    def __init__(self, mels_from: str, splits: Splits) -> None:
        self.mels_from = mels_from
        self._splits = splits

    def check(self, run: Run, total: ShardReport) -> None:
        """Accepts every utterance that has features."""

    def split(self, run: Run, total: ShardReport) -> Splits:
        """The splits of the acoustic model."""
        return usable_part(run, total, self._splits)

    def complete(self, run: Run, splits: Splits) -> None:
        """Nothing depends on the splits."""


class PredictionWork:
    """Makes shards of recordings and predicted mels.

    Args:
        acoustic: The acoustic model.
        store: Its features.
        config: Stage 1 of the vocoder.
        folder: Receives the shards.
        n_threads: CPU threads of the network.
        aligner: Finds the durations if the store has none.

    Raises:
        InputError: If the model does not know the speaker of an utterance.
    """

    def __init__(
        self,
        acoustic: LoadedModel,
        store: FeatureStore,
        config: PreprocessConfig,
        folder: Path,
        n_threads: int,
        aligner: JointAligner | None = None,
    ) -> None:
        vocabulary = acoustic.assets.required_vocabulary(acoustic.home)
        self._acoustic = acoustic
        self._store = store
        self._mel = config.mel
        self._folder = folder
        self._n_threads = n_threads
        self._tools = AlignedTools(config, store, vocabulary)
        speakers = [speaker.name for speaker in acoustic.speakers]
        self._items = FeatureDataset([store], [store.ids], vocabulary, speakers)
        self._collate = partial(collate, log_floor=acoustic.mel.log_floor_value)
        self._aligner = aligner

    def __call__(self, name: str, utterances: Sequence[Utterance]) -> ShardReport:
        """Predicts and writes one shard.

        Args:
            name: Of the shard.
            utterances: Of the shard; a fault of one of them becomes a rejection.

        Raises:
            InputError: If features are damaged.
        """
        report = ShardReport()
        ids = [utterance.id for utterance in utterances]
        with shard_writer(shard_path(self._folder, name), ids, self._mel) as writer:
            for batch in self._batches(utterances):
                self._tools.prepare(batch)
                recordings = list(self._read(batch, report))
                for record in self._predict(recordings, report) if recordings else ():
                    writer.add(record)
        report.rows = writer.rows
        return report

    def _batches(self, utterances: Sequence[Utterance]) -> Iterator[list[Utterance]]:
        """Utterances of similar length."""
        batch: list[Utterance] = []
        frames = {u.id: int(self._store.frames[self._store.index_of(u.id)]) for u in utterances}
        for utterance in sorted(utterances, key=lambda u: (frames[u.id], u.id)):
            if batch and (len(batch) + 1) * frames[utterance.id] > _BATCH_FRAMES:
                yield batch
                batch = []
            batch.append(utterance)
        yield batch

    def _read(self, utterances: Sequence[Utterance], report: ShardReport) -> Iterator[Recording]:
        """Recordings with their true mels; the others are counted as rejected."""
        for utterance in utterances:
            trace = Trace()
            extraction = extract_or_reject(utterance, self._tools, trace, report.rejected)
            report.add_trace(utterance.id, trace)
            if extraction is not None:
                report.count(utterance.id, extraction)
                yield cast("Recording", extraction.record)

    def _predict(self, recordings: Sequence[Recording], report: ShardReport) -> list[Recording]:
        """The same recordings with the mels that the model predicts."""
        trace = Trace(part="network")
        positions = [self._store.index_of(recording.id) for recording in recordings]
        batch = self._collate([self._items[Draw(0, position)] for position in positions])
        device = next(self._acoustic.network.parameters()).device
        batch = on_device(batch, device)
        network = cast("AcousticModel", self._acoustic.network)
        with torch_threads(self._n_threads):  # the rest of a run has one
            if self._aligner is not None:
                batch = batch._replace(durations=find_durations(self._aligner, batch))
            mels = network.teacher_forced_mel(batch).cpu().numpy()  # (B, M, T)
        predicted = [
            replace(recording, mel=mel[:, : recording.mel.shape[1]])
            for recording, mel in zip(recordings, mels, strict=True)
        ]
        trace.stop()
        report.cpu_seconds.update(trace.cpu_seconds)
        return predicted
