"""What may change between a run and its continuation, and what must not."""

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from config.schema import Config
from models.checkpoint.history import HISTORY, History, history_of
from models.training.data.loading import dataset_folders
from utils.config import to_plain
from utils.errors import InputError
from utils.logging import get_logger

# Neither the updates nor the order of the data depend on these. Learning rate schedules that end
# with training depend on max_steps and max_epoch; check_unchanged warns of it.
_MAY_CHANGE = (
    "dataset_path",
    "inference",
    "log_dir",
    "preprocess.backend",
    "preprocess.corpus.*.licence",
    "preprocess.processed_dir",
    "preprocess.shard_size",
    "train.dataloader",
    "train.init_from",
    "train.keep_last",
    "train.keep_milestones",
    "train.log_steps",
    "train.max_bad_steps",
    "train.max_epoch",
    "train.max_steps",
    "train.profile",
    "train.save_steps",
    "train.score_metrics",
    "train.score_seconds",
    "train.score_steps",
    "train.score_utterances",
    "train.tracker",
    "train.valid_samples",
    "train.valid_steps",
)


def check_unchanged(old: Config, new: Config) -> None:
    """Refuses to resume with a configuration that would give other updates.

    Raises:
        InputError: If keys changed that must not; it names all of them.
    """
    before, after = flat_config(old), flat_config(new)
    changed = [
        f"{key} was {before.get(key)}, is {after.get(key)}"
        for key in sorted(before.keys() | after.keys())
        if before.get(key) != after.get(key) and not is_one_of(key, _MAY_CHANGE)
    ]
    if changed:
        raise InputError(
            f"--resume with another config: {'; '.join(changed)}; undo these changes, or train "
            "under another --name (with --init_from to start from these weights)"
        )
    ends = [(config.train.max_steps, config.train.max_epoch) for config in (old, new)]
    ending = new.train.lr_scheduler.ends_with_training(new.train.scheduler)
    if ending and ends[0] != ends[1]:
        get_logger(__name__).warning(
            "train.scheduler %s ends with training, whose end has changed: the learning rate jumps "
            "to the new curve",
            new.train.scheduler,
        )


def resumed_history(config: Config, folder: Path, *, resume: bool) -> History:
    """The history so far."""
    generated = config.train.synthetic_utterances > 0
    data = History() if generated else history_of(config, dataset_folders(config))
    if not (resume and (folder / HISTORY).exists()):
        return data
    try:
        history = History.load(folder)
    except InputError as error:
        get_logger(__name__).warning("the model card begins again: %s", error)
        return data
    if history.mels_from != data.mels_from:
        before, now = (_kind_of_mels(origin) for origin in (history.mels_from, data.mels_from))
        raise InputError(
            f"--resume: {folder.name} was trained on {before}, and stage 1 now holds {now}; run"
            " stage 1 as before (with or without --from_acoustic), or train under another --name"
            " with --init_from"
        )
    return history


def _kind_of_mels(model: str) -> str:
    return f"mels predicted by {model}" if model else "mels of recordings"


def plain_config(config: Config) -> dict[str, Any]:
    """A configuration for a JSON file, with paths below the current folder relative to it."""
    plain: dict[str, Any] = _portable(to_plain(config), Path.cwd())
    return plain


def flat_config(config: Config) -> dict[str, object]:
    """Values by key with dots, such as `train.adam.lr`; paths as in `plain_config`."""
    return dict(_flat(plain_config(config)))


def is_one_of(key: str, names: Sequence[str]) -> bool:
    """Whether a key, or a section that it is in, matches one of the names."""
    return any(fnmatch(key, name) or key.startswith(f"{name}.") for name in names)


def _flat(plain: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, object]]:
    for name, value in plain.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _portable(plain: Any, root: Path) -> Any:  # noqa: ANN401  (JSON)
    """The value with paths below a folder made relative to it."""
    if isinstance(plain, dict):
        return {name: _portable(value, root) for name, value in plain.items()}
    if isinstance(plain, str) and plain.startswith("/") and Path(plain).is_relative_to(root):
        return Path(plain).relative_to(root).as_posix()
    return plain
