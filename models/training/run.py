"""The record of a run of stage 2, how it is opened, and what may change before it continues."""

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from accelerate import Accelerator
from accelerate.utils import DistributedType

from config.schema import Config
from config.train import TrainConfig
from models.base.assets import ASSET_FILES, Assets, read_speakers
from models.base.devices import has_bfloat16, training_precision
from models.base.registry import load_config, model_of
from models.base.task import Task
from models.checkpoint import folders
from models.checkpoint.folders import latest_checkpoint, step_of, steps_of
from models.checkpoint.history import HISTORY, Card, History, Position, history_of, update_card
from models.checkpoint.loading import CHECKPOINTS, CONFIG, load_assets, open_model
from models.training import data as training_data
from models.training.data import ProcessRank, TrainingData, global_batch
from models.training.initialisation import extend_assets, initialise, train_only_speakers
from models.training.observing import tracker as tracking
from models.training.observing.scoring import PeriodicScoring, build_scoring, check_score_metrics
from models.training.processes import check_agreement
from processors.dataset.datasets import FeatureDataset
from utils.config import leaves, to_plain
from utils.errors import InputError
from utils.files import user_path, write_json
from utils.locks import locked
from utils.logging import get_logger
from utils.seed import derived_seed, seed_everything

_log = get_logger(__name__)

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
# These split weights or gradients in ways of their own.
_UNSUPPORTED = {
    DistributedType.DEEPSPEED,
    DistributedType.FSDP,
    DistributedType.MEGATRON_LM,
    DistributedType.XLA,
}


class Run(NamedTuple):
    """What is trained, on what, and who observes it: only the first process has observers."""

    task: Task[Any]  # its networks are moved to the device
    data: TrainingData
    config: TrainConfig
    accelerator: Accelerator  # device, mixed precision and processes
    checkpoints: Path  # their folder
    tracker: tracking.Tracker  # takes curves and samples
    # takes the position, and the last losses and scores, after each checkpoint and measurement
    write_card: Callable[[Position, Mapping[str, float]], None] = lambda _position, _values: None
    scoring: PeriodicScoring | None = None  # of validation utterances; None: they are not scored
    resumes: Path | None = None  # the checkpoint to continue from

    @property
    def last_update(self) -> int:
        """The update at which training will end."""
        config = self.config
        n_updates = len(self.data.sampler) // config.gradient_accumulation_step  # of an epoch
        return min(n for n in (config.max_steps, config.max_epoch * n_updates) if n > 0)


@contextmanager
def open_run(
    config: Config,
    name: str,
    *,
    resume: bool = False,
    restart: bool = False,
    init_from: str | None = None,
) -> Iterator[Run]:
    """Opens a run of an experiment, new or from its newest checkpoint; ends it after the block.

    Everything is checked before the folder of the experiment is changed.
    """
    folder, train = user_path(config.log_dir) / name, config.train
    _check_run(folder, config, resume=resume, restart=restart)
    if not resume:
        init_from = init_from or train.init_from or None
    tracking.check_backends(train.trackers, train.valid_samples)
    check_score_metrics(config)
    checkpoint = latest_checkpoint(folder / CHECKPOINTS) if resume else None
    assets = load_assets(folder) if resume else _new_assets(config, init_from)
    accelerator = _make_accelerator(train)
    with ExitStack() as stack:
        stack.callback(accelerator.end_training)
        if accelerator.is_main_process:
            stack.enter_context(locked(folder, "wait for its end, or give another --name"))
        seed_everything(train.random_seed)
        try:
            task = model_of(config).task.build(config, assets)
        except RuntimeError as error:  # of torch: sizes that fit no memory
            fault = f"cannot be built: {str(error).splitlines()[0]}"
            remedy = "lower the sizes in the section model"
            raise InputError(f"the networks of {config.model_type} {fault}; {remedy}") from error
        process = ProcessRank(accelerator.process_index, accelerator.num_processes)
        data = training_data.load_data(config, assets, process, accelerator.device)
        step = 0 if checkpoint is None else step_of(checkpoint) or 0
        check_agreement(shared_facts(config, data.plan, step))
        history = _resumed_history(config, folder, resume=resume)
        assets, history = _initialised(task, config, assets, history, init_from)
        checkpoints = folder / CHECKPOINTS
        if accelerator.is_main_process:
            _prepare_folder(folder, config, assets, restart=restart)
            if checkpoint is not None:
                folders.set_aside(checkpoints, step)
        accelerator.wait_for_everyone()
        tracker = tracking.Tracker(folder)
        run = Run(task, data, train, accelerator, checkpoints, tracker, resumes=checkpoint)
        if accelerator.is_main_process:
            name = folder.name if folder.is_absolute() else folder.as_posix()
            card = Card(name, config, assets, history)
            run = stack.enter_context(_observed(run, folder, card, step))
        # each process has its own dropout; a checkpoint restores the generators of each process
        seed_everything(derived_seed("process", train.random_seed, process.rank))
        yield run


def _check_run(folder: Path, config: Config, *, resume: bool, restart: bool) -> None:
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


def _new_assets(config: Config, init_from: str | None) -> Assets:
    """Returns the assets of a new run: of its data, or of a voice and its new speakers."""
    assets = training_data.collect_assets(config)
    if config.train.trained == "all":
        return assets
    if init_from is None:
        raise InputError(
            "train.trained=speakers adds speakers to a trained voice: name it by --init_from"
        )
    return extend_assets(open_model(init_from).assets, assets)


def _make_accelerator(config: TrainConfig) -> Accelerator:
    """Finds the device and the processes of a run; refuses a precision that they lack."""
    device = torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")
    precision = training_precision(config.mixed_precision, device)
    try:
        accelerator = Accelerator(
            # without it, accelerate treats several processes without a GPU as separate runs
            cpu=device.type == "cpu",
            mixed_precision="no" if precision == "fp32" else precision,
        )
    except ValueError as error:
        raise InputError(f"train.mixed_precision={precision}: {error}; use fp32") from error
    if accelerator.distributed_type in _UNSUPPORTED:
        fault = f"{accelerator.distributed_type.value}, which this trainer does not support"
        remedy = "use MULTI_GPU, or a single process"
        raise InputError(f"accelerate was launched for {fault}; {remedy}")
    if precision == "fp16" and accelerator.device.type == "cpu":
        raise InputError("train.mixed_precision=fp16 needs a GPU; on a CPU use bf16 or fp32")
    if precision == "bf16" and accelerator.device.type == "cpu" and not has_bfloat16("cpu"):
        _log.warning(
            "train.mixed_precision=bf16: this CPU has no AVX-512 instructions for bfloat16, and may"
            " take ten times as long as in fp32, which auto chooses here"
        )
    return accelerator


def shared_facts(config: Config, plan: str, step: int) -> dict[str, object]:
    """Returns what all processes must agree on: the plan of the data stands for `preprocess`."""
    keys = flat_config(config).items()
    shared = {key: value for key, value in keys if not _is_one_of(key, _OF_A_MACHINE)}
    return shared | {"the data of stage 1": plan, "the checkpoint of --resume": step}


def _resumed_history(config: Config, folder: Path, *, resume: bool) -> History:
    """Returns the history so far, that of the folder if a run is resumed."""
    is_generated = config.train.synthetic_utterances > 0
    data = History() if is_generated else history_of(config, training_data.dataset_folders(config))
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


def _initialised(
    task: Task[Any], config: Config, assets: Assets, history: History, init_from: str | None
) -> tuple[Assets, History]:
    """Takes the weights of another model, if one is named, and freezes what is not trained."""
    transfer = None if init_from is None else initialise(task, assets, init_from)
    if transfer is not None:
        history = replace(history, initialised_from=transfer.source)
        assets = assets.with_phones(transfer.phones)
    if config.train.trained == "speakers":
        if transfer is not None and (parts := transfer.other_parts):
            fault = f"the voice has other weights in {', '.join(parts)}"
            remedy = "use the model section of its config.json"
            raise InputError(f"train.trained=speakers: {fault}; {remedy}")
        in_data = {speaker.name for speaker in read_speakers(training_data.dataset_folders(config))}
        trained = torch.tensor([speaker.name in in_data for speaker in assets.speakers])
        train_only_speakers(task.networks[task.exported], trained)
    return assets, history


def _prepare_folder(folder: Path, config: Config, assets: Assets, *, restart: bool) -> None:
    """Writes config and assets, so that the folder is self-contained; applies --restart."""
    checkpoints = folder / CHECKPOINTS
    checkpoints.mkdir(parents=True, exist_ok=True)
    folders.remove_partial(checkpoints)
    if restart and (steps := steps_of(checkpoints)):
        _log.warning(
            "--restart: deleting the checkpoints (%d) and the log in %s", len(steps), folder
        )
        shutil.rmtree(checkpoints)
        shutil.rmtree(folder / tracking.LOG, ignore_errors=True)
        checkpoints.mkdir()
    (folder / folders.MANIFEST).unlink(missing_ok=True)  # of an earlier run
    write_json(folder / CONFIG, plain_config(config))
    assets.save(folder)
    folders.write_manifest(folder, [n for n in (CONFIG, *ASSET_FILES) if (folder / n).is_file()])


@contextmanager
def _observed(run: Run, folder: Path, card: Card, step: int) -> Iterator[Run]:
    """Adds tracker, model card and scores to a run; closes the tracker's logs after the block."""
    config, data = card.config, run.data
    utterances, frames = global_batch(config.train, data)
    facts = flat_config(config)
    facts |= {"utterances_per_update": utterances, "frames_per_update": frames}
    tracked = tracking.TrackedRun(folder, facts, card.assets.mel.sample_rate, step)
    with tracking.open_backends(config.train.trackers, tracked) as backends:
        yield run._replace(
            tracker=tracking.Tracker(folder, backends),
            write_card=partial(update_card, folder, card),
            scoring=build_scoring(config, data),
        )


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


def log_start(run: Run) -> None:
    """Logs the size of networks, data and updates, and the keys that nothing reads."""
    networks, data, train = run.task.networks.values(), run.data, run.config
    n_processes = run.accelerator.num_processes
    _log.info(
        "%.2f million parameters, %d %s in %d batches an epoch, %s, %s; an update: %d micro-batches"
        " x %d processes, together %.4g utterances and %.0f frames (means of an epoch)",
        sum(p.numel() for network in networks for p in network.parameters()) / 1e6,
        data.n_utterances,
        "utterances" if isinstance(data.validation, FeatureDataset) else "segments",
        len(data.sampler) * n_processes,
        run.accelerator.device,
        training_precision(train.mixed_precision, run.accelerator.device),
        train.gradient_accumulation_step,
        n_processes,
        *global_batch(train, data),
    )
    if unread := train.unread_keys:
        message = "not read by train.scheduler %s and train.optimizer %s: %s"
        _log.warning(message, train.scheduler, train.optimizer, ", ".join(unread))
    if (fixed := data.sampler.fixed) is not None:
        units = "items x phones x frames" if fixed.shapes[0].phones else "items x frames"
        _log.info("batches, in %s: %s", units, ", ".join(map(str, fixed.batch_shapes)))
