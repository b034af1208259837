"""Stage 1 of a vocoder that is to speak for one acoustic model: that model's mels, and recordings.

A vocoder that saw mels of recordings only makes the smoother ones of an acoustic model sound
metallic; trained further on these it learns what they lack (Kong et al. 2020, section 4.4). The
acoustic model is told the true durations, pitch and energy, so that its mels are in step with the
recordings. The splits are its own: what one model is tested on, neither was trained on.
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

_BATCH_FRAMES = 8192  # of a batch, padding included; some 95 s


def prepare_from_acoustic(config: Config, reference: str | Path, n_threads: int = 1) -> None:
    """Runs stage 1 of a vocoder on what an acoustic model predicts, for every dataset.

    Runs in this process, on a GPU where there is one. Work that is done is not done again.

    Args:
        config: Of the vocoder.
        reference: The acoustic model: an experiment, a checkpoint or a name on the Hub.
        n_threads: Of the network, where there is no GPU.

    Raises:
        InputError: If the experiment is no vocoder's, the reference no acoustic model, their mels
            differ, or the acoustic model's own data are not there.
    """
    if config.task != "vocoder":
        raise InputError(
            "--from_acoustic makes the training data of a vocoder; this configuration is of task"
            f" {config.task}"
        )
    acoustic = load_model(
        fetch(reference, for_training=True), "cuda" if torch.cuda.is_available() else "cpu"
    )
    if acoustic.config.task != "tts":
        raise InputError(f"--from_acoustic: {reference} is a vocoder; expected an acoustic model")
    _check_mels(acoustic.mel, config.preprocess.mel, str(reference))
    # what is wrong with the last dataset should show before the work on the first
    runs = [plan_predicted(config, dataset, acoustic, n_threads) for dataset in config.dataset]
    for run in runs:
        carry_out(run, n_jobs=1)


def _check_mels(acoustic: MelConfig, vocoder: MelConfig, name: str) -> None:
    """Compares what is predicted with what the vocoder is configured to read."""
    if different := acoustic.differences(vocoder, ignore=("padding",)):
        raise InputError(
            f"--from_acoustic: {name} makes another mel than this vocoder reads:"
            f" {', '.join(different)} (model and configuration); use the vocoder configuration of"
            " the same mel"
        )
    if acoustic.padding != vocoder.padding:
        get_logger(__name__).info(
            "mel padding: %s has %s, the configuration %s; the audio is shifted by half a hop to"
            " meet the mels",
            name,
            acoustic.padding,
            vocoder.padding,
        )


def plan_predicted(config: Config, dataset: str, acoustic: LoadedModel, n_threads: int) -> Run:
    """Plans stage 1 of a vocoder on the mels of an acoustic model.

    Raises:
        InputError: If the acoustic model's own data are not there, or were made for other speakers.
    """
    options, source = config.preprocess, processed_folder(acoustic.config.preprocess, dataset)
    try:
        store = FeatureStore(source, acoustic.mel)
        splits = read_splits(source)
        utterances = [u for u in read_utterances(source).values() if u.id in store]
    except InputError as error:
        raise InputError(
            f"--from_acoustic needs what stage 1 of {acoustic.origin} made of {dataset}: {error}"
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
    product = PredictedProduct(acoustic.origin, splits)
    run = plan_run(options, dataset, Listing(utterances, [], []), dependence, product, work)
    # the network is in this process, on its device
    return replace(run, backend="sequential")


def _weights_of(*networks: nn.Module) -> str:
    """Digest of all tensors of networks."""
    digest = hashlib.sha256()
    for name, tensor in (row for net in networks for row in sorted(net.state_dict().items())):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return f"sha256 {digest.hexdigest()[:32]}"


class PredictedProduct:
    """Recordings with the mels of an acoustic model.

    Args:
        mels_from: What it is called.
        splits: Of its own data.
    """

    outputs: tuple[str, ...] = ()

    def __init__(self, mels_from: str, splits: Splits) -> None:
        self.mels_from = mels_from
        self._splits = splits

    def check(self, run: Run, total: ShardReport) -> None:
        """What has features is good."""

    def split(self, run: Run, total: ShardReport) -> Splits:
        """The splits of the acoustic model."""
        return usable_part(run, total, self._splits)

    def complete(self, run: Run, splits: Splits) -> None:
        """Nothing depends on the splits."""


class PredictionWork:
    """Makes shards of recordings and predicted mels.

    Args:
        acoustic: The model.
        store: Its own data.
        config: Stage 1 of the vocoder.
        folder: Where processed data go.
        n_threads: Of the network.
        aligner: Finds the durations, where the store has none.

    Raises:
        InputError: If an utterance has a speaker whom the model does not know.
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

        A fault of one utterance becomes a rejection; damaged features end the work.
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
        """Recordings with their true mels; counts the others as rejected."""
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
