"""Empty splits after stage 1, and the speaker to name after stage 2."""

from collections.abc import Sequence
from pathlib import Path

from models.base.assets import Assets
from models.base.registry import load_config
from preprocessors.split import read_splits
from processors.dataset.store import processed_folder
from utils.files import user_path


def empty_splits(config_path: Path, overrides: Sequence[str]) -> list[str]:
    """Lists the splits in which stage 1 left no utterance, as "valid of LJSpeech"."""
    config = load_config(config_path, overrides)
    return [
        f"{name} of {dataset}"
        for dataset in config.dataset
        for name, ids in read_splits(processed_folder(config.preprocess, dataset))._asdict().items()
        if not ids and name != "golden_test"
    ]


def last_speaker(config_path: Path, overrides: Sequence[str], name: str) -> str | None:
    """Returns the speaker that was added last to a trained voice; None if it has only one."""
    folder = user_path(load_config(config_path, overrides).log_dir) / name
    speakers = Assets.load(folder).speakers
    return speakers[-1].name if len(speakers) > 1 else None
