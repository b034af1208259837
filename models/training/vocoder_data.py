"""What training a vocoder takes from stage 1: the mel definition, segments, and recordings."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from config.schema import Config
from models.base.assets import Assets, read_speakers
from preprocessors.split import read_splits
from processors.dataset.batch import VocoderBatch, VocoderItem, collate_recordings
from processors.dataset.segments import RecordingDataset, SegmentDataset
from processors.dataset.store import RecordingStore
from utils.errors import InputError

_LONGEST_VALIDATED_S = 10.0  # of each recording: more would say little, and a batch must fit


def vocoder_assets(config: Config, folders: Sequence[Path]) -> Assets:
    """Mel definition and speakers; a vocoder needs nothing else.

    Args:
        config: The experiment.
        folders: What stage 1 wrote, per dataset.

    Raises:
        InputError: If stage 1 was not run or not finished for one of them.
    """
    for folder in folders:
        RecordingStore(folder, config.preprocess.mel)  # refuses what is unfinished or another mel
    return Assets(mel=config.preprocess.mel, speakers=read_speakers(folders))


def vocoder_datasets(
    config: Config, assets: Assets, folders: Sequence[Path]
) -> tuple[SegmentDataset, RecordingDataset]:
    """Segments to train on, and recordings to validate on.

    Raises:
        InputError: If stage 1 made recordings of another mel, or none; if segments are too short.
    """
    n_frames, mel = config.train.cut_mel_frame, assets.mel
    if n_frames * mel.hop_length < mel.n_fft:
        raise InputError(
            f"train.cut_mel_frame {n_frames}: segments of {n_frames * mel.hop_length} samples are "
            f"shorter than one analysis window of {mel.n_fft}; use more frames"
        )
    stores = [RecordingStore(folder, mel) for folder in folders]
    splits = [read_splits(folder) for folder in folders]
    training = SegmentDataset(
        stores,
        [split.train for split in splits],
        n_frames=n_frames,
        log_floor=mel.log_floor_value,
        seed=config.train.random_seed,
        per_second=[config.train.segments_per_s.get(name, 0) for name in config.dataset],
    )
    valid = [split.valid for split in splits]
    return training, RecordingDataset(stores, valid, longest_s=_LONGEST_VALIDATED_S)


def vocoder_collator(assets: Assets) -> Callable[[Sequence[VocoderItem]], VocoderBatch]:
    """Makes a batch of items."""
    mel = assets.mel
    return partial(collate_recordings, hop_length=mel.hop_length, log_floor=mel.log_floor_value)
