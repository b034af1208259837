"""What training an acoustic model takes from stage 1: vocabulary, statistics, features."""

from collections.abc import Callable, Sequence
from functools import partial, reduce
from pathlib import Path
from typing import cast

from config.schema import Config
from models.base.assets import Assets, read_speakers
from modules.mel import MelConfig
from preprocessors.split import read_splits
from processors.dataset.batch import TtsBatch, TtsItem, collate
from processors.dataset.statistics import CorpusStats
from processors.dataset.store import FeatureStore
from processors.dataset.utterances import FeatureDataset
from processors.text.symbols import Vocabulary, arpabet_vocabulary, vocabulary_of
from utils.errors import InputError
from utils.files import read_json, read_text


def tts_assets(config: Config, folders: Sequence[Path]) -> Assets:
    """Vocabulary, speakers and statistics of all datasets of an experiment, and its lexicon.

    Args:
        config: The experiment.
        folders: What stage 1 wrote, per dataset.

    Raises:
        InputError: If stage 1 was not run or not finished for one of them, or with another kind of
            aligner; if the lexicon is gone.
    """
    lexicon = config.preprocess.text.lexicon_path
    _stores(config, config.preprocess.mel, folders)  # refuses what is unfinished or of another kind
    stats = [CorpusStats.from_plain(read_json(folder / "stats.json")) for folder in folders]
    return Assets(
        mel=config.preprocess.mel,
        vocabulary=_vocabulary(config, folders),
        speakers=read_speakers(folders),
        stats=reduce(CorpusStats.merge, stats),
        lexicon=read_text(Path(lexicon)) if lexicon else None,
    )


def _stores(config: Config, mel: MelConfig, folders: Sequence[Path]) -> list[FeatureStore]:
    """What stage 1 wrote, once it is what this experiment trains on."""
    stores = [FeatureStore(folder, mel) for folder in folders]
    aligner = config.preprocess.aligner
    for store in stores:
        if store.timed and aligner == "learned":
            raise InputError(
                f"{store.folder} holds phones and durations of an aligner, and with"
                " preprocess.aligner learned the model finds its own: run stage 1 with this"
                " configuration, or set preprocess.aligner to what stage 1 was run with"
            )
        if not store.timed and aligner != "learned":
            raise InputError(
                f"{store.folder} holds no durations, since stage 1 was run with preprocess.aligner"
                f" learned, and this configuration has {aligner}: run stage 1 with it, or set"
                " preprocess.aligner to learned"
            )
    return stores


def _vocabulary(config: Config, folders: Sequence[Path]) -> Vocabulary:
    """All of ARPAbet and what else was met, so that every word can be said; or what was met."""
    phones = {
        phone
        for folder in folders
        for phone in cast("dict[str, int]", read_json(folder / "phones.json"))
    }
    if config.preprocess.text.phone_extractor == "espeak":
        return vocabulary_of(phones)
    known = arpabet_vocabulary()
    return Vocabulary((*known.symbols, *sorted(phones - set(known.symbols))))


def tts_datasets(
    config: Config, assets: Assets, folders: Sequence[Path]
) -> tuple[FeatureDataset, FeatureDataset]:
    """Utterances to train and to validate on.

    Raises:
        InputError: If features are missing or do not fit the assets.
    """
    stores = _stores(config, assets.mel, folders)
    splits = [read_splits(folder) for folder in folders]
    train, names = config.train, [speaker.name for speaker in assets.speakers]
    vocabulary = assets.required_vocabulary()
    training = FeatureDataset(
        stores,
        [split.train for split in splits],
        vocabulary,
        names,
        crop_phones=train.crop_phones,
        seed=train.random_seed,
    )
    valid = [split.valid for split in splits]
    return training, FeatureDataset(stores, valid, vocabulary, names)


def tts_collator(assets: Assets) -> Callable[[Sequence[TtsItem]], TtsBatch]:
    """Makes a batch of items."""
    return partial(collate, log_floor=assets.mel.log_floor_value)
