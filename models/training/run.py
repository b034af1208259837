"""The record of a run of stage 2, and how the run of an experiment is opened."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from accelerate import Accelerator
from accelerate.utils import DistributedType

from config.schema import Config
from config.train import TrainConfig
from models.base.assets import Assets, read_speakers
from models.base.devices import has_bfloat16, training_precision
from models.base.registry import model_of
from models.base.task import Task
from models.checkpoint.folders import latest_checkpoint, set_aside, step_of
from models.checkpoint.history import Card, History, Position, update_card
from models.checkpoint.loading import CHECKPOINTS, load_assets, open_model
from models.training import data as training_data
from models.training import folder as run_folder
from models.training.data import ProcessRank, TrainingData, global_batch
from models.training.initialisation import extend_assets, initialise, train_only_speakers
from models.training.observing.backends import TrackedRun, check_backends, open_backends
from models.training.observing.scoring import PeriodicScoring, build_scoring, check_score_metrics
from models.training.observing.tracker import Tracker
from models.training.processes import check_agreement
from processors.dataset.datasets import FeatureDataset
from utils.errors import InputError
from utils.files import user_path
from utils.locks import locked
from utils.logging import get_logger
from utils.seed import derived_seed, seed_everything

_log = get_logger(__name__)

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
    tracker: Tracker  # takes curves and samples
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
    run_folder.check_run(folder, config, resume=resume, restart=restart)
    if not resume:
        init_from = init_from or train.init_from or None
    check_backends(train.trackers, train.valid_samples)
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
        check_agreement(run_folder.shared_facts(config, data.plan, step))
        history = run_folder.resumed_history(config, folder, resume=resume)
        assets, history = _initialised(task, config, assets, history, init_from)
        checkpoints = folder / CHECKPOINTS
        if accelerator.is_main_process:
            run_folder.prepare_folder(folder, config, assets, restart=restart)
            if checkpoint is not None:
                set_aside(checkpoints, step)
        accelerator.wait_for_everyone()
        tracker = Tracker(folder)
        run = Run(task, data, train, accelerator, checkpoints, tracker, resumes=checkpoint)
        if accelerator.is_main_process:
            name = folder.name if folder.is_absolute() else folder.as_posix()
            card = Card(name, config, assets, history)
            run = stack.enter_context(_observed(run, folder, card, step))
        # each process has its own dropout; a checkpoint restores the generators of each process
        seed_everything(derived_seed("process", train.random_seed, process.rank))
        yield run


@contextmanager
def _observed(run: Run, folder: Path, card: Card, step: int) -> Iterator[Run]:
    """Adds tracker, model card and scores to a run; closes the tracker's logs after the block."""
    config, data = card.config, run.data
    utterances, frames = global_batch(config.train, data)
    facts = run_folder.flat_config(config)
    facts |= {"utterances_per_update": utterances, "frames_per_update": frames}
    tracked = TrackedRun(folder, facts, card.assets.mel.sample_rate, step)
    with open_backends(config.train.trackers, tracked) as backends:
        yield run._replace(
            tracker=Tracker(folder, backends),
            write_card=partial(update_card, folder, card),
            scoring=build_scoring(config, data),
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
        keys = ", ".join(unread)
        message = "not read by train.scheduler %s and train.optimizer %s: %s"
        _log.warning(message, train.scheduler, train.optimizer, keys)
    if (fixed := data.sampler.fixed) is not None:
        units = "items x phones x frames" if fixed.shapes[0].phones else "items x frames"
        _log.info("batches, in %s: %s", units, ", ".join(map(str, fixed.batch_shapes)))
