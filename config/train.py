"""Keys of the `train` section: optimizers, schedules and the training loop of stage 2."""

from dataclasses import dataclass, field, fields
from typing import Literal

from config.checks import require_at_least, require_share

SchedulerName = Literal[
    "NoamLR", "constant", "linear", "cosine", "polynomial", "exponential", "multistep"
]
TrackerName = Literal["tensorboard", "wandb", "jsonl"]
CompileMode = Literal["off", "dynamic", "buckets"]
LONGEST_SCORING_S = 60.0  # far below the ten minutes after which waiting processes give up
_FROM_1 = (
    "batch_size",
    "gradient_accumulation_step",
    "keep_last",
    "max_bad_steps",
    "score_utterances",
    "compile_buckets",
)


@dataclass(frozen=True)
class AdamConfig:
    """Adam (Kingma and Ba 2015), AdamW (Loshchilov and Hutter 2019), LAMB (You et al. 2020)."""

    # NoamLR: the factor, hidden^-0.5 for Adam; other schedules: the peak rate. With `lamb`, the
    # rate is the relative change of each tensor by one update.
    lr: float = 0.0625
    betas: tuple[float, float] = (0.9, 0.98)
    eps: float = 1e-9
    weight_decay: float = 0.0  # biases and parameters of normalisation layers are exempt
    # `lamb`: largest gradient norm, in addition to `train.grad_clip_thresh`: the smaller of the two
    # holds; 0: only that one
    max_grad_norm: float = 1.0

    def __post_init__(self) -> None:
        require_at_least(self, 0, "lr", "eps", "weight_decay", "max_grad_norm")
        if not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"betas are {list(self.betas)}, expected numbers from 0 to below 1")


@dataclass(frozen=True)
class ScheduleConfig:
    """Learning-rate schedules; all count optimizer updates."""

    # updates of linear warm-up (`NoamLR`, `linear`, `cosine`, `polynomial`; `exponential` with
    # decay_steps)
    num_warmup: int = 4000
    # `linear`, `cosine`, `polynomial`: updates after warm-up until end_lr; 0: until training ends.
    # `exponential`: updates after warm-up for each factor gamma; 0: an epoch, without warm-up
    decay_steps: int = 0
    end_lr: float = 0.0  # rate after the decay (`linear`, `cosine`, `polynomial`)
    power: float = 1.0  # `polynomial`: exponent of the remaining share; 1 is `linear`
    # factor per epoch or per decay_steps (`exponential`), per milestone (`multistep`, `NoamLR`)
    gamma: float = 0.999
    milestones: tuple[int, ...] = ()  # `multistep` and `NoamLR`: updates at which gamma applies

    def __post_init__(self) -> None:
        require_at_least(self, 0, "num_warmup", "decay_steps", "end_lr", "power", "gamma")


_READ_BY_SCHEDULE: dict[str, set[str]] = {
    "NoamLR": {"num_warmup", "milestones", "gamma"},
    "constant": set(),
    "linear": {"num_warmup", "decay_steps", "end_lr"},
    "cosine": {"num_warmup", "decay_steps", "end_lr"},
    "polynomial": {"num_warmup", "decay_steps", "end_lr", "power"},
    "exponential": {"num_warmup", "decay_steps", "gamma"},
    "multistep": {"milestones", "gamma"},
}


@dataclass(frozen=True)
class ProfileConfig:
    """A profile of a few updates, in `profile` of the experiment's folder."""

    # first and last update, counted from the start of the run, also of a resumed one, as in
    # [10, 15], which --profile sets; empty: no profile
    steps: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.steps and not (len(self.steps) == 2 and 1 <= self.steps[0] <= self.steps[1]):
            expected = "the first and the last update to profile, such as [10, 15]"
            raise ValueError(f"steps are {list(self.steps)}, expected {expected}")


@dataclass(frozen=True)
class DataLoaderConfig:
    """Loader processes and memory of batches."""

    # loader processes, no more than cores; 0 loads in the training process
    num_worker: int = 2
    pin_memory: bool = True  # used on GPUs only

    def __post_init__(self) -> None:
        require_at_least(self, 0, "num_worker")


@dataclass(frozen=True)
class TrainConfig:
    """Stage 2. Steps are optimizer updates."""

    batch_size: int = 16  # mean utterances per micro-batch; the frame budget follows from it
    batch_frames: int = 0  # frame budget per micro-batch (frames x items); 0: from batch_size
    cut_mel_frame: int = 32  # vocoders: frames of each training segment
    # Vocoders: by dataset, segments of an epoch for each second of a recording; a dataset that is
    # not listed gives one of each recording. For long recordings, and to balance datasets.
    segments_per_s: dict[str, float] = field(default_factory=dict)
    crop_phones: int = 0  # train on random runs of this many phones; 0: whole utterances
    # Train on so many generated utterances in place of each dataset, without a corpus and stage 1,
    # as --synthetic does; at most 13,092, as many as LJSpeech has, with its lengths; 0: none
    synthetic_utterances: int = 0
    max_epoch: int = 0  # stop after so many epochs; 0: no such limit
    max_steps: int = 0  # stop after so many updates; 0: no such limit
    random_seed: int = 10086
    gradient_accumulation_step: int = 1  # micro-batches per update
    # The voice that training starts from: a folder or a name on the Hub, as for --init_from, which
    # takes precedence. Empty: random weights. Relative paths start at the repository root.
    init_from: str = ""
    # "speakers": with init_from, only the rows of new speakers; the voice and its other speakers
    # stay as they are, bit for bit
    trained: Literal["all", "speakers"] = "all"
    grad_clip_thresh: float = 1.0  # largest gradient norm of each network; 0: no clipping
    # "auto": bf16 on GPUs and CPUs with instructions for it, elsewhere fp32; there bf16 takes many
    # times as long
    mixed_precision: Literal["auto", "fp32", "bf16", "fp16"] = "fp32"
    # torch.compile of the networks, in training only (docs/compilation.md). "dynamic": for batches
    # of any shape; "buckets": for batches of a few fixed shapes, with CUDA graphs on a GPU. In
    # Tacotron 2 only the postnet is compiled: its decoder is a loop over frames.
    compile: CompileMode = "off"
    compile_buckets: int = 6  # `buckets`: number of (phones, frames) to which utterances are padded
    optimizer: Literal["adam", "adamw", "lamb"] = "adam"
    adam: AdamConfig = field(default_factory=AdamConfig)  # read by all three
    scheduler: SchedulerName = "NoamLR"
    lr_scheduler: ScheduleConfig = field(default_factory=ScheduleConfig)
    # Share of the moving average of the weights that each update keeps, such as 0.999; 0: none.
    # Update n keeps (1 + n) / (10 + n) if that is less: initial weights are forgotten at once.
    # The average is validated, scored and used for synthesis (`inference.ema`); checkpoints hold
    # the weights of the last update, too.
    ema_decay: float = 0.0
    # Whether the average forgets the initial weights so. Without it they keep a share of
    # ema_decay ** updates: fine-tuned on minutes of speech, a voice with a share of the one that it
    # started from sounds better.
    ema_warmup: bool = True
    # where curves go, and, with valid_samples, audio and figures; "jsonl" is log/metrics.jsonl, of
    # curves only. A list names several.
    tracker: Literal[TrackerName, "none"] | tuple[TrackerName, ...] = "tensorboard"
    profile: ProfileConfig = field(default_factory=ProfileConfig)
    log_steps: int = 50  # updates between log lines
    valid_steps: int = 1000  # updates between validations, with samples; 0: only at the end
    # updates between checkpoints, in addition to one before each validation and scoring; 0: no
    # others. None is written while updates are skipped.
    save_steps: int = 1000
    # newest checkpoints kept, in addition to the best one and to milestones; 1 means 2, so that
    # training can continue if the newest is damaged or its weights have diverged
    keep_last: int = 3
    keep_milestones: tuple[int, ...] = ()  # updates whose checkpoints are saved and always kept
    valid_samples: int = 3  # validation utterances synthesised and plotted in the log
    # Scores of stage 4 during training: validation utterances, synthesised from their phones or
    # resynthesised by a vocoder, are compared with their recordings. Curves `score/...`.
    score_steps: int = 5000  # updates between scorings; one more at the end; 0: never
    score_metrics: tuple[str, ...] = ("mcd", "f0rmse_cents", "v_uv_f1")
    score_utterances: int = 20  # always the same ones
    score_seconds: float = 10.0  # time limit of each scoring; fewer utterances if it is too short
    max_bad_steps: int = 10  # stop after so many non-finite updates in a row
    dataloader: DataLoaderConfig = field(default_factory=DataLoaderConfig)

    def __post_init__(self) -> None:
        require_at_least(self, 1, *_FROM_1)
        require_share(self, "ema_decay")
        if wrong := [update for update in self.keep_milestones if update < 1]:
            raise ValueError(f"keep_milestones holds {wrong[0]}, expected updates, 1 or more")
        if not 0 < (seconds := self.score_seconds) <= LONGEST_SCORING_S:
            expected = f"more than 0 and at most {LONGEST_SCORING_S:g}, while other processes wait"
            raise ValueError(f"score_seconds is {seconds:g}, expected {expected}")
        numeric_keys = [key for key, value in vars(self).items() if isinstance(value, int | float)]
        require_at_least(self, 0, *numeric_keys)
        if self.max_epoch == 0 and self.max_steps == 0:
            raise ValueError("set max_steps or max_epoch: otherwise training does not end")
        names = list(self.trackers)
        if len(set(names)) < len(names) or self.tracker == ():
            expected = "'none', or one or more names, each once"
            raise ValueError(f"tracker is {names}, expected {expected}")
        self._check_combinations()

    @property
    def trackers(self) -> tuple[str, ...]:
        """The names in `tracker`; empty for "none"."""
        names = (self.tracker,) if isinstance(self.tracker, str) else self.tracker
        return tuple(name for name in names if name != "none")

    def _check_combinations(self) -> None:
        """Refuses values that exclude each other."""
        end_lr, lr, decay = self.lr_scheduler.end_lr, self.adam.lr, self.adam.weight_decay
        if self.trained == "speakers" and decay:
            fault = "which would change all speakers; set it to 0"
            raise ValueError(f"trained is speakers and adam.weight_decay is {decay:g}, {fault}")
        if end_lr > lr:
            fault = f"more than adam.lr {lr:g}, from which the rate falls"
            raise ValueError(f"lr_scheduler.end_lr is {end_lr:g}, {fault}")
        if self.compile == "buckets" and self.crop_phones:
            raise ValueError(
                f"compile is buckets and crop_phones {self.crop_phones}, which gives utterances"
                " other lengths in each epoch; set crop_phones to 0, or compile to dynamic"
            )

    @property
    def unread_keys(self) -> list[str]:
        """Keys with another value than their default that schedule and optimizer do not read."""
        read, values = _READ_BY_SCHEDULE[self.scheduler], vars(self.lr_scheduler)
        changed = [key.name for key in fields(self.lr_scheduler) if values[key.name] != key.default]
        unread = [f"train.lr_scheduler.{name}" for name in changed if name not in read]
        if self.optimizer != "lamb" and self.adam.max_grad_norm != AdamConfig.max_grad_norm:
            unread.append("train.adam.max_grad_norm")
        return unread
