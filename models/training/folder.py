"""The folder of an experiment: what it holds besides checkpoints, and what may change in it."""

import shutil
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from config.schema import Config
from models.base.assets import ASSET_FILES, Assets
from models.base.registry import load_config, model_of
from models.checkpoint.folders import MANIFEST, remove_partial, steps_of, write_manifest
from models.checkpoint.history import HISTORY, History, history_of
from models.checkpoint.loading import CHECKPOINTS, CONFIG
from models.training.data import dataset_folders
from models.training.observing.backends import LOG
from utils.config import leaves, to_plain
from utils.errors import InputError
from utils.files import write_json
from utils.logging import get_logger

# Neither the updates nor the order of the data depend on these, except that learning rate schedules
# that end with training depend on max_steps and max_epoch.
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
    "train.keep_*",
    "train.log_steps",
    "train.max_bad_steps",
    "train.max_epoch",
    "train.max_steps",
    "train.profile",
    "train.save_steps",
    "train.score_*",
    "train.tracker",
    "train.valid_*",
)
# What may differ between the machines of a run: places, and how a machine loads its data.
_OF_A_MACHINE = ("dataset_path", "log_dir", "preprocess", "inference", "train.dataloader")


def check_run(folder: Path, config: Config, *, resume: bool, restart: bool) -> None:
    """Refuses flags that contradict the folder, and to resume with what gives other updates."""
    steps = steps_of(folder / CHECKPOINTS)
    if steps and not (resume or restart):
        remedy = "give --resume to continue, or --restart to delete its checkpoints and start again"
        raise InputError(f"{folder} was trained before, up to update {steps[-1]}: {remedy}")
    if not resume:
        return
    if not steps:
        raise InputError(f"{folder}: no checkpoint to continue from; train without --resume")
    before, after = flat_config(load_config(folder / CONFIG)), flat_config(config)
    may_change = (*_MAY_CHANGE, *(f"model.{key}" for key in model_of(config).options))
    if changed := [
        f"{key} was {before.get(key)}, is {after.get(key)}"
        for key in sorted(before.keys() | after.keys())
        if before.get(key) != after.get(key) and not _is_one_of(key, may_change)
    ]:
        raise InputError(
            f"--resume with another config: {'; '.join(changed)}; undo these changes, or train "
            "under another --name (with --init_from to start from these weights)"
        )


def resumed_history(config: Config, folder: Path, *, resume: bool) -> History:
    """Returns the history so far, that of the folder if a run is resumed."""
    is_generated = config.train.synthetic_utterances > 0
    data = History() if is_generated else history_of(config, dataset_folders(config))
    if not (resume and (folder / HISTORY).exists()):
        return data
    history = History.load(folder)
    if history.mels_from != data.mels_from:
        before, now = (origin or "recordings" for origin in (history.mels_from, data.mels_from))
        raise InputError(
            f"--resume: {folder.name} was trained on mels of {before}, and stage 1 now holds mels"
            f" of {now}; run stage 1 as before (with or without --from_acoustic), or train under"
            " another --name with --init_from"
        )
    return history


def prepare_folder(folder: Path, config: Config, assets: Assets, *, restart: bool) -> None:
    """Writes config and assets, so that the folder is self-contained; applies --restart."""
    checkpoints = folder / CHECKPOINTS
    checkpoints.mkdir(parents=True, exist_ok=True)
    remove_partial(checkpoints)
    if restart and (steps := steps_of(checkpoints)):
        get_logger(__name__).warning(
            "--restart: deleting the checkpoints (%d) and the log in %s", len(steps), folder
        )
        shutil.rmtree(checkpoints)
        shutil.rmtree(folder / LOG, ignore_errors=True)
        checkpoints.mkdir()
    (folder / MANIFEST).unlink(missing_ok=True)  # of an earlier run
    write_json(folder / CONFIG, plain_config(config))
    assets.save(folder)
    write_manifest(folder, [n for n in (CONFIG, *ASSET_FILES) if (folder / n).is_file()])


def plain_config(config: Config) -> dict[str, Any]:
    """Returns a configuration for a JSON file, with paths relative to the current folder."""
    root = Path.cwd()

    def portable(plain: Any) -> Any:  # noqa: ANN401  (JSON)
        if isinstance(plain, dict):
            return {name: portable(value) for name, value in plain.items()}
        if isinstance(plain, str) and plain.startswith("/") and Path(plain).is_relative_to(root):
            return Path(plain).relative_to(root).as_posix()
        return plain

    return {name: portable(section) for name, section in to_plain(config).items()}


def flat_config(config: Config) -> dict[str, object]:
    """Returns values by key with dots, such as `train.adam.lr`; paths as in `plain_config`."""
    return {".".join(keys): value for keys, value in leaves(plain_config(config))}


def _is_one_of(key: str, names: Sequence[str]) -> bool:
    """Returns whether a key, or a section that it is in, matches one of the names."""
    return any(fnmatch(key, name) or key.startswith(f"{name}.") for name in names)


def shared_facts(config: Config, plan: str, step: int) -> dict[str, object]:
    """Returns what all processes must agree on: the plan of the data stands for `preprocess`."""
    keys = flat_config(config).items()
    shared = {key: value for key, value in keys if not _is_one_of(key, _OF_A_MACHINE)}
    return shared | {"the data of stage 1": plan, "the checkpoint of --resume": step}
