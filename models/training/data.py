"""Training data, of stage 1 or generated: assets, datasets, and the batches of one process."""

import hashlib
import json
import math
import string
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from config.schema import Config
from config.train import TrainConfig
from models.base.assets import STATS, Assets, Speaker, read_speakers
from models.training.processes import leave_signals_to_trainer
from modules.mel import MelConfig
from preprocessors.manifest import Splits, read_splits
from processors.dataset import generated
from processors.dataset.batch import TtsBatch, VocoderBatch, collate, collate_vocoder
from processors.dataset.datasets import FeatureDataset, MelWavDataset, SegmentDataset
from processors.dataset.sampler import Draw, FixedBatches, FrameBudgetSampler, frame_budget
from processors.dataset.statistics import CorpusStats, corpus_stats
from processors.dataset.store import FeatureStore, MelWavStore, Store, processed_folder
from processors.extraction.fingerprint import check_made_with, check_prepared
from processors.text.letters import substitute
from processors.text.symbols import APOSTROPHE, ARPABET
from processors.text.voice_phones import Vocabulary, model_vocabulary
from utils.errors import InputError
from utils.files import read_json, read_text
from utils.parallel import n_cores
from utils.seed import derived_seed

_STATS_OF = 200  # utterances of each dataset: more change nothing
# Datasets by `Draw(epoch, item)`; items of validation are whole utterances.
TrainingItems = FeatureDataset | SegmentDataset
ValidationItems = FeatureDataset | MelWavDataset
Collator = Callable[[Sequence[Any]], TtsBatch | VocoderBatch]  # makes a batch of items
S = TypeVar("S", bound=Store)
_LONGEST_VALIDATED_S = 10.0  # of each recording of a vocoder: a batch must fit into memory


@dataclass
class BatchReader(Dataset[Any]):
    """Reads training batches.

    Returns an InputError instead of raising it, of which a DataLoader's worker would send the text.
    """

    items: TrainingItems
    collator: Collator

    def __getitem__(self, draws: Sequence[Draw]) -> TtsBatch | VocoderBatch | InputError:
        try:
            return self.collator([self.items[draw] for draw in draws])
        except InputError as error:
            return error


class ProcessRank(NamedTuple):
    """This process among the processes of the run."""

    rank: int = 0
    n_processes: int = 1


@dataclass(frozen=True)
class TrainingData:
    """Batches for one process."""

    train: DataLoader[Any]  # training batches; the sampler chooses the epoch
    sampler: FrameBudgetSampler  # order and position of the training batches
    valid: DataLoader[Any]  # validation batches of this process, always the same ones
    validation: ValidationItems  # all validation utterances
    samples: TtsBatch | VocoderBatch | None  # of validation, for the tracker; None without any
    n_utterances: int  # training items of all processes: utterances, or segments of recordings
    plan: str  # fingerprint of utterances, batches and processes

    def validation_batch(self, item: int) -> TtsBatch | VocoderBatch:
        """Makes a batch of one validation utterance."""
        return cast("Collator", self.valid.collate_fn)([self.validation[Draw(0, item)]])


def dataset_folders(config: Config) -> list[Path]:
    """Lists the folder of stage 1 of each dataset."""
    for name in config.dataset:
        check_prepared(config.preprocess, name, config.task, same_keys=True)
    return [processed_folder(config.preprocess, name) for name in config.dataset]


def collect_assets(config: Config) -> Assets:
    """Collects the assets of a model from all datasets of an experiment."""
    if config.train.synthetic_utterances:
        return _generated_assets(config)
    folders, mel, text = dataset_folders(config), config.preprocess.mel, config.preprocess.text
    if config.task == "vocoder":
        _open_stores(config, MelWavStore)  # refuses those of another configuration
        return Assets(mel, speakers=read_speakers(folders))
    stores = _open_stores(config, FeatureStore)
    phones = set[str]()
    for path in (folder / "phones.json" for folder in folders):
        counts = read_json(path)
        if not isinstance(counts, dict):
            raise InputError(f"{path}: expected numbers by phone; delete it and run stage 1 again")
        phones |= counts.keys()
    trained = (
        _trained_phones(store, id, text.p_arpabet)
        for store in stores
        for id in store.reading_order(read_splits(store.folder).train)
    )
    return Assets(
        mel,
        vocabulary=model_vocabulary(text, phones),
        speakers=read_speakers(folders),
        stats=reduce(CorpusStats.merge, (CorpusStats.read(folder / STATS) for folder in folders)),
        lexicon=read_text(Path(text.lexicon_path)) if text.lexicon_path else None,
        trained_phones=frozenset(chain.from_iterable(trained)),
    )


def _generated_assets(config: Config) -> Assets:
    """Builds the assets of a model trained on generated data: a speaker for each dataset."""
    mel, text = config.preprocess.mel, config.preprocess.text
    languages = {name: config.preprocess.corpus_of(name).language for name in config.dataset}
    speakers = tuple(Speaker(*item) for item in sorted(languages.items()))
    if config.task == "vocoder":
        return Assets(mel, speakers=speakers)
    # symbols of the same kind as those of a corpus; for IPA, the names of ARPAbet
    letters = (*string.ascii_lowercase, APOSTROPHE) if text.in_letters else ARPABET
    vocabulary = model_vocabulary(text, letters)
    step = math.ceil(config.train.synthetic_utterances / _STATS_OF)
    stores = _features_of(config, vocabulary)
    of_stores = (corpus_stats(store, store.ids[::step], config.preprocess) for store in stores)
    stats, phones = reduce(CorpusStats.merge, of_stores), frozenset(vocabulary.symbols[1:])
    return Assets(mel, vocabulary, speakers, stats, trained_phones=phones)


def _features_of(config: Config, vocabulary: Vocabulary) -> Sequence[generated.FeatureSource]:
    """Opens the utterances of each dataset, of stage 1 or generated in their place."""
    preprocess, train = config.preprocess, config.train
    if not train.synthetic_utterances:
        return _open_stores(config, FeatureStore)
    n, symbols = train.synthetic_utterances, vocabulary.symbols[1:]  # without the padding
    return [
        generated.GeneratedFeatures(name, n, preprocess, symbols, seed=train.random_seed)
        for name in config.dataset
    ]


def _recordings_of(config: Config) -> Sequence[generated.RecordingSource]:
    """Opens the recordings of each dataset, of stage 1 or generated in their place."""
    n = config.train.synthetic_utterances
    if not n:
        return _open_stores(config, MelWavStore)
    mel, seed = config.preprocess.mel, config.train.random_seed
    return [generated.GeneratedRecordings(name, n, mel, seed=seed) for name in config.dataset]


def _open_stores(config: Config, store_type: type[S]) -> list[S]:
    stores = [store_type(folder, config.preprocess.mel) for folder in dataset_folders(config)]
    for store in stores:
        check_made_with(store.folder, config.preprocess, config.dataset_path)
    return stores


def _splits_of(store: generated.FeatureSource | generated.RecordingSource) -> Splits:
    return read_splits(store.folder) if isinstance(store, Store) else store.split


def _trained_phones(store: FeatureStore, id: str, p_arpabet: float) -> Sequence[str]:
    """Returns the phones and letters of an utterance that training meets."""
    letters, words = store.read_phones(id), store.read_word_phones(id)
    if p_arpabet == 0 or not words:
        return letters
    phones = substitute(letters, words)
    return phones if p_arpabet == 1 else (*letters, *phones)


def make_collator(task: str, mel: MelConfig) -> Collator:
    """Returns a function that makes a batch of items."""
    if task == "vocoder":
        return partial(collate_vocoder, hop_length=mel.hop_length, log_floor=mel.log_floor_value)
    return partial(collate, log_floor=mel.log_floor_value)


def load_data(
    config: Config, assets: Assets, process: ProcessRank, device: torch.device
) -> TrainingData:
    """Opens what stage 1 wrote for training, or generates data (`train.synthetic_utterances`)."""
    make = _vocoder_datasets if config.task == "vocoder" else _tts_datasets
    collator = make_collator(config.task, assets.mel)
    return data_of(*make(config, assets), collator, config.train, process, device)


def _tts_datasets(config: Config, assets: Assets) -> tuple[TrainingItems, ValidationItems]:
    """Opens the utterances to train and to validate on."""
    vocabulary = assets.required_vocabulary()
    stores = _features_of(config, vocabulary)
    splits = [_splits_of(store) for store in stores]
    speakers = [speaker.name for speaker in assets.speakers]
    training = FeatureDataset(
        stores,
        [split.train for split in splits],
        vocabulary,
        speakers,
        crop_phones=config.train.crop_phones,
        p_arpabet=config.preprocess.text.p_arpabet,
        seed=config.train.random_seed,
    )
    valid = [split.valid for split in splits]
    p_arpabet = config.preprocess.text.certain_p_arpabet
    return training, FeatureDataset(stores, valid, vocabulary, speakers, p_arpabet=p_arpabet)


def _vocoder_datasets(config: Config, assets: Assets) -> tuple[TrainingItems, ValidationItems]:
    """Opens segments to train on, and recordings to validate on."""
    n_frames, mel = config.train.cut_mel_frame, assets.mel
    if n_frames * mel.hop_length < mel.n_fft:
        raise InputError(
            f"train.cut_mel_frame {n_frames}: segments of {n_frames * mel.hop_length} samples are "
            f"shorter than one analysis window of {mel.n_fft}; use more frames"
        )
    stores = _recordings_of(config)
    splits = [_splits_of(store) for store in stores]
    training = SegmentDataset(
        stores,
        [split.train for split in splits],
        n_frames=n_frames,
        log_floor=mel.log_floor_value,
        seed=config.train.random_seed,
        per_second=[config.train.segments_per_s.get(name, 0) for name in config.dataset],
    )
    valid = [split.valid for split in splits]
    return training, MelWavDataset(stores, valid, longest_s=_LONGEST_VALIDATED_S)


def global_batch(train: TrainConfig, data: TrainingData) -> tuple[float, float]:
    """Computes the mean utterances and frames (without padding) of an update, of all processes."""
    n_batches = data.sampler.processes * train.gradient_accumulation_step  # of an update
    updates = len(data.sampler.plan(0)) / n_batches
    return data.n_utterances / updates, data.sampler.n_frames / updates


def data_of(
    training: TrainingItems,
    validation: ValidationItems,
    collator: Collator,
    train: TrainConfig,
    process: ProcessRank,
    device: torch.device,
) -> TrainingData:
    """Plans the batches of both datasets."""
    budget = frame_budget(training.lengths, train.batch_size, train.batch_frames)
    window, (rank, processes) = train.gradient_accumulation_step, process
    fixed = None
    if train.compile == "buckets":
        phones = np.zeros_like(training.lengths)
        if isinstance(training, FeatureDataset):
            phones = training.phone_counts()
        fixed = partial(FixedBatches, phones, training.lengths, train.compile_buckets, budget)
    sampler = FrameBudgetSampler(
        training.lengths,
        budget,
        seed=train.random_seed,
        window=window,
        processes=processes,
        rank=rank,
        fixed=fixed,
    )
    shapes = () if sampler.fixed is None else sampler.fixed.shapes
    fill = collator
    if shapes and isinstance(training, FeatureDataset):  # segments have one length
        fill = partial(cast("Callable[..., TtsBatch]", collator), shapes=shapes)
    loader = _training_loader(BatchReader(training, fill), sampler, train, device)
    samples = [validation[Draw(0, n)] for n in range(min(train.valid_samples, len(validation)))]
    # of validation; other processes may have one batch more or less
    plan = FrameBudgetSampler(validation.lengths, budget, seed=0).plan(0) if len(validation) else []
    batches = [[Draw(0, item) for item in batch] for batch in plan[rank::processes]]
    generator = torch.Generator()  # not the global one, on which dropout depends
    valid = DataLoader(validation, batch_sampler=batches, collate_fn=collator, generator=generator)
    shown = collator(samples) if samples else None
    facts = [training.ids, training.lengths.tolist(), budget, window, processes, *shapes]
    digest = hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]
    return TrainingData(loader, sampler, valid, validation, shown, len(training), digest)


def _training_loader(
    reader: BatchReader, sampler: FrameBudgetSampler, train: TrainConfig, device: torch.device
) -> DataLoader[Any]:
    n_workers = min(train.dataloader.num_worker, n_cores())  # PyTorch warns of more
    return DataLoader(
        reader,
        batch_size=None,  # an item is a batch
        sampler=sampler,
        collate_fn=_unchanged,
        num_workers=n_workers,
        pin_memory=train.dataloader.pin_memory and device.type == "cuda",
        persistent_workers=n_workers > 0,
        worker_init_fn=leave_signals_to_trainer,
        # iterators draw a seed; from the global generator, that would change the dropout of a
        # resumed run
        generator=torch.Generator().manual_seed(derived_seed("loader", train.random_seed)),
    )


def _unchanged(batch: Any) -> Any:  # noqa: ANN401  (PyTorch's default makes lists of tuples)
    return batch


def windows(loader: DataLoader[Any], size: int) -> Iterator[list[Any]]:
    """Yields the micro-batches of each update; raises the InputError of an unreadable batch."""
    window: list[Any] = []
    for batch in loader:
        if isinstance(batch, InputError):
            raise batch
        window.append(batch)
        if len(window) == size:
            yield window
            window = []
