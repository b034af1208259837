"""Every key of an experiment's configuration: type, default, meaning and unit.

Key names follow Amphion's `exp_config.json` where the meaning is the same. The `model` section is
the config dataclass of the model that `model_type` names and lives in that model's file.
"""

import math
from dataclasses import dataclass, field, replace
from typing import Literal

from modules.mel import MelConfig, mel_filter_bank

MOST_LOADERS = 256  # more processes than any machine feeds a GPU with
LONGEST_SCORING_S = 60.0  # far below the ten minutes after which waiting processes give up


def require_at_least(section: object, least: float, *keys: str) -> None:
    """Raises ValueError for the first of the keys whose value is smaller.

    Args:
        section: A config dataclass.
        least: Smallest valid value.
        *keys: Names of its fields.
    """
    for key in keys:
        if (value := getattr(section, key)) < least:
            raise ValueError(f"{key} is {value:g}, expected {least:g} or more")


def require_share(section: object, *keys: str) -> None:
    """Raises ValueError for the first of the keys whose value is not in [0, 1)."""
    for key in keys:
        if not 0 <= (value := getattr(section, key)) < 1:
            raise ValueError(f"{key} is {value:g}, expected a share: 0 or more, less than 1")


def require_odd(section: object, *keys: str) -> None:
    """Raises ValueError for the first of the keys whose value is not an odd number above 0."""
    for key in keys:
        if (value := getattr(section, key)) < 1 or value % 2 == 0:
            raise ValueError(f"{key} is {value}, expected an odd number")


def require_probability(key: str, value: float) -> None:
    """Raises ValueError if a value is not in [0, 1].

    Args:
        key: Name of the value, for the message.
        value: To be checked.
    """
    if not 0 <= value <= 1:
        raise ValueError(f"{key} is {value:g}, expected a probability, 0 to 1")


@dataclass(frozen=True)
class CorpusConfig:
    """Options for reading a corpus on disk."""

    format: str = ""  # preprocessor; empty: the one with the name of the dataset
    language: str = "en-us"  # espeak language code of the text
    table: str = "metadata.csv"  # `folder`: file name of the table, relative to the dataset path
    delimiter: str = "|"  # `folder`: column separator
    columns: tuple[str, ...] = ()  # `folder`: of id, text, normalized, speaker, -; empty: by count
    encoding: str = "utf-8"  # text encoding; a byte-order mark is accepted
    speaker: str = ""  # speaker name where the corpus gives none; empty: the dataset's name
    licence: str = ""  # of the recordings, for the model card; empty: that of the known corpus


@dataclass(frozen=True)
class SplitConfig:
    """Deterministic split by utterance id; the same ids in any order give the same split."""

    valid: float = 0.02  # share of the utterances for validation, at least one utterance
    test: float = 0.03  # share held out for testing, at least one utterance
    seed: int = 0
    test_ids: tuple[str, ...] = ()  # these exact ids are the test split, instead of a share
    valid_ids: tuple[str, ...] = ()  # these exact ids are the validation split
    golden_ids: tuple[str, ...] = ()  # golden_test; empty: `golden_size` test items by length
    golden_size: int = 10  # spread evenly over the test split sorted by duration

    def __post_init__(self) -> None:
        require_at_least(self, 1, "golden_size")
        require_share(self, "valid", "test")


@dataclass(frozen=True)
class TextConfig:
    """From written text to phones."""

    normalizer: Literal["english", "none"] = "english"
    # `lexicon`: ARPAbet, English. `espeak`: IPA by espeak-ng. `letters`: the letters of the words,
    # any language. `mixed`: each word in letters or in ARPAbet, English. `nvidia_english` and
    # `nvidia_english_lowercase`: as `mixed`, with the symbols and ids of NVIDIA's Tacotron 2 and
    # FastPitch (english_basic, english_basic_lowercase); they keep all punctuation. The last three
    # need a model that finds the durations in training (`aligner: "learned"`) or needs none
    # (`"none"`), unless p_arpabet is 0.
    phone_extractor: Literal[
        "lexicon", "espeak", "letters", "mixed", "nvidia_english", "nvidia_english_lowercase"
    ] = "lexicon"
    # `mixed` and `nvidia_*`: probability of ARPAbet in training, drawn for each word and epoch, of
    # the words that CMUdict (or the lexicon) has with one pronunciation; 0: letters alone.
    # Synthesis says all of them in ARPAbet unless this is 0 (inference.p_arpabet).
    p_arpabet: float = 1.0
    lexicon_path: str = ""  # lexicon with `WORD  PH1 PH2` lines; takes precedence
    # Imported voices: `sp` maps punctuation inside a text to <sp>, and adds nothing at its edges.
    # Stage 1 writes `classes`: <sil> first, then each mark as its class (<,> <.> <?> <!>).
    pauses: Literal["classes", "sp"] = "classes"

    def __post_init__(self) -> None:
        require_probability("p_arpabet", self.p_arpabet)
        if self.p_arpabet != 1 and not self.is_mixed:
            raise ValueError(
                f"p_arpabet is {self.p_arpabet:g}, but phone_extractor {self.phone_extractor} does"
                " not mix letters and ARPAbet; remove it, or use phone_extractor mixed"
            )
        if self.lexicon_path and self.phone_extractor == "letters":
            raise ValueError(
                "lexicon_path holds phones, and phone_extractor letters uses none; remove it, or"
                " use phone_extractor mixed (English)"
            )
        if self.has_nvidia_symbols and self.pauses != "classes":
            raise ValueError(
                f"pauses is {self.pauses}, but phone_extractor {self.phone_extractor} keeps all"
                " punctuation; remove it"
            )

    @property
    def has_nvidia_symbols(self) -> bool:
        """Whether the symbols are those of a set of NVIDIA."""
        return self.phone_extractor in ("nvidia_english", "nvidia_english_lowercase")

    @property
    def in_letters(self) -> bool:
        """Whether words are in letters, except those in phones of a mixture."""
        return self.phone_extractor == "letters" or self.is_mixed

    @property
    def is_mixed(self) -> bool:
        """Whether a word can be in letters or in phones."""
        return self.phone_extractor == "mixed" or self.has_nvidia_symbols

    @property
    def certain_p_arpabet(self) -> float:
        """`p_arpabet` where nothing may be drawn: 0 if it is that, otherwise 1."""
        return 1.0 if self.is_mixed and self.p_arpabet > 0 else 0.0


@dataclass(frozen=True)
class PreprocessConfig:
    """Stage 1: audio, text, alignment and features."""

    processed_dir: str = "data"
    sample_rate: int = 22050  # Hz
    n_fft: int = 1024  # samples
    win_size: int = 1024  # samples
    hop_size: int = 256  # samples
    n_mel: int = 80
    fmin: float = 0.0  # Hz
    fmax: float = 8000.0  # Hz
    mel_padding: Literal["centre", "hifigan"] = "centre"
    min_seconds: float = 0.3  # shorter utterances are rejected
    max_seconds: float = 30.0  # longer utterances are rejected
    strict_sample_rate: bool = False  # reject audio of another rate instead of resampling it
    rescale: bool = False  # scale float audio beyond [-1, 1] down instead of rejecting it
    # `learned`: no aligner in stage 1; the model learns the durations during training. `none`: for
    # models that need no durations, such as Tacotron 2, which accept every aligner
    aligner: Literal["pocketsphinx", "hmm", "textgrid", "imported", "learned", "none"] = (
        "pocketsphinx"
    )
    textgrid_dir: str = ""  # for aligner `textgrid`; empty: `TextGrid` in the dataset's folder
    imported_dir: str = ""  # for aligner `imported`; empty: `alignments` in the dataset's folder
    edge_silence_s: float = 0.1  # leading and trailing silence kept, seconds
    # Aligner `hmm` rejects utterances whose text does not match: those in which replacing up to
    # three words by arbitrary sound gains more than so many nats (alignment_scores.jsonl). 50 is a
    # good bound; 0: only warn.
    max_misfit: float = 0.0
    pitch_extractor: Literal["parselmouth", "pyworld"] = "parselmouth"
    f0_min: float = 65.0  # Hz
    f0_max: float = 600.0  # Hz
    pitch_remove_outlier: bool = True  # leave outliers (1.5 IQR) out of the statistics
    energy_remove_outlier: bool = True
    # Stage 1 fails if a larger share of utterances is rejected; if above 0, three are tolerated.
    max_bad_ratio: float = 0.01
    backend: Literal["loky", "dask", "ray", "sequential"] = "loky"  # joblib backend
    shard_size: int = 200  # utterances per feature shard and per unit of work
    corpus: dict[str, CorpusConfig] = field(default_factory=dict)  # by dataset name
    split: SplitConfig = field(default_factory=SplitConfig)
    text: TextConfig = field(default_factory=TextConfig)

    def __post_init__(self) -> None:
        require_at_least(self, 1, "n_mel", "shard_size")
        require_at_least(self, 0, "min_seconds", "edge_silence_s", "max_misfit")
        if self.max_misfit > 0 and self.aligner != "hmm":
            raise ValueError(
                f"max_misfit is {self.max_misfit:g}, but aligner {self.aligner} does not measure"
                " how well recordings match their texts; remove it, or use aligner hmm"
            )
        self._check_text()
        if not self.min_seconds < self.max_seconds:
            raise ValueError(
                f"min_seconds {self.min_seconds:g}, max_seconds {self.max_seconds:g}: expected"
                " min_seconds < max_seconds"
            )
        if not 0 <= self.max_bad_ratio <= 1:
            raise ValueError(f"max_bad_ratio is {self.max_bad_ratio:g}, expected a share, 0 to 1")
        if not 0 < self.f0_min < self.f0_max < self.sample_rate / 2:
            raise ValueError(
                f"f0_min {self.f0_min:g}, f0_max {self.f0_max:g}: expected 0 < f0_min < f0_max <"
                f" {self.sample_rate / 2:g} Hz, half of the sample rate"
            )
        try:
            mel_filter_bank(self.mel)
        except ValueError as error:
            raise ValueError(
                f"{error}; the keys are sample_rate, n_fft, win_size, hop_size, n_mel, fmin and"
                " fmax"
            ) from error

    def _check_text(self) -> None:
        """Rules for aligner and phone extractor."""
        extractor = self.text.phone_extractor
        if self.text.certain_p_arpabet > 0 and self.has_aligner:
            raise ValueError(
                f"text.phone_extractor is {extractor} and aligner {self.aligner}: words change"
                " between letters and phones in training, so no aligner can come before it; set"
                " aligner to learned (to none if the model needs no durations), or text.p_arpabet"
                " to 0"
            )
        if self.text.in_letters and self.aligner in ("pocketsphinx", "textgrid"):
            raise ValueError(
                f"text.phone_extractor is {extractor}, but aligner {self.aligner} gives the times"
                " of phones; set aligner to hmm or learned, or to imported with durations of"
                " letters"
            )
        if self.text.has_nvidia_symbols and self.aligner == "hmm":
            raise ValueError(
                f"text.phone_extractor is {extractor}, whose marks are not the pauses that aligner"
                " hmm places; set aligner to learned, or to imported with durations of letters"
            )

    def of_any_length(self) -> "PreprocessConfig":
        """The same keys for recordings of any length."""
        return replace(self, min_seconds=0.0, max_seconds=math.inf)

    @property
    def has_aligner(self) -> bool:
        """Whether stage 1 stores durations."""
        return self.aligner not in ("learned", "none")

    @property
    def mel(self) -> MelConfig:
        """The mel definition these keys describe."""
        return MelConfig(
            sample_rate=self.sample_rate,
            n_fft=self.n_fft,
            win_length=self.win_size,
            hop_length=self.hop_size,
            n_mels=self.n_mel,
            f_min=self.fmin,
            f_max=self.fmax,
            padding=self.mel_padding,
        )


@dataclass(frozen=True)
class AdamConfig:
    """Adam (Kingma and Ba 2015), AdamW (Loshchilov and Hutter 2019), LAMB (You et al. 2020)."""

    # NoamLR: the factor, hidden^-0.5 for Adam; other schedules: the peak rate. Of `lamb`, the rate
    # is the relative change of each tensor by one update.
    lr: float = 0.0625
    betas: tuple[float, float] = (0.9, 0.98)
    eps: float = 1e-9
    weight_decay: float = 0.0
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

    num_warmup: int = 4000  # updates of linear warm-up (`NoamLR`, `cosine`, `linear`)
    gamma: float = 0.999  # `exponential`: factor per epoch; `multistep`: factor per milestone
    milestones: tuple[int, ...] = ()  # `multistep` and `NoamLR`: updates at which gamma applies

    def __post_init__(self) -> None:
        require_at_least(self, 0, "num_warmup", "gamma")


@dataclass(frozen=True)
class DataLoaderConfig:
    """Loader processes and memory of batches."""

    num_worker: int = 2  # loader processes, at most 256; 0 loads in the training process
    pin_memory: bool = True  # used on GPUs only

    def __post_init__(self) -> None:
        require_at_least(self, 0, "num_worker")
        if self.num_worker > MOST_LOADERS:
            raise ValueError(f"num_worker is {self.num_worker}, expected {MOST_LOADERS} or fewer")


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
    mixed_precision: Literal["fp32", "bf16", "fp16"] = "fp32"
    optimizer: Literal["adam", "adamw", "lamb"] = "adam"
    adam: AdamConfig = field(default_factory=AdamConfig)  # of all three
    scheduler: Literal["NoamLR", "constant", "linear", "cosine", "exponential", "multistep"] = (
        "NoamLR"
    )
    lr_scheduler: ScheduleConfig = field(default_factory=ScheduleConfig)
    # Share of the moving average of the weights that each update keeps, such as 0.999; 0: none.
    # The average is validated, scored and used for synthesis (`inference.ema`); checkpoints hold
    # the weights of the last update, too.
    ema_decay: float = 0.0
    tracker: Literal["tensorboard", "wandb", "none"] = "tensorboard"
    log_steps: int = 50  # updates between log lines
    valid_steps: int = 1000  # updates between validations, with samples; 0: only at the end
    save_steps: int = 1000  # updates between checkpoints; 0: only at the end
    keep_last: int = 3  # newest checkpoints kept, in addition to the best one and to milestones
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
        require_at_least(
            self, 1, "batch_size", "gradient_accumulation_step", "keep_last", "max_bad_steps"
        )
        require_at_least(
            self, 0, "batch_frames", "crop_phones", "max_epoch", "max_steps", "random_seed"
        )
        require_at_least(
            self, 0, "grad_clip_thresh", "log_steps", "valid_steps", "save_steps", "valid_samples"
        )
        require_at_least(self, 0, "score_steps")
        require_at_least(self, 1, "score_utterances")
        require_share(self, "ema_decay")
        if wrong := [update for update in self.keep_milestones if update < 1]:
            raise ValueError(f"keep_milestones holds {wrong[0]}, expected updates, 1 or more")
        if not 0 < self.score_seconds <= LONGEST_SCORING_S:
            raise ValueError(
                f"score_seconds is {self.score_seconds:g}, expected more than 0 and at most "
                f"{LONGEST_SCORING_S:g}, while other processes wait"
            )
        if self.trained == "speakers" and self.adam.weight_decay:
            raise ValueError(
                "trained is speakers and adam.weight_decay is"
                f" {self.adam.weight_decay:g}, which would change all speakers; set it to 0"
            )
        if self.max_epoch == 0 and self.max_steps == 0:
            raise ValueError("set max_steps or max_epoch: otherwise training does not end")


@dataclass(frozen=True)
class InferenceConfig:
    """Stage 3."""

    # Use the moving average of the weights, if the model was trained with `train.ema_decay`; false:
    # the weights of the last update, which published models do not have
    ema: bool = True
    batch_size: int = 8  # sentences per forward pass
    sentence_pause_s: float = 0.25  # silence between the sentences of a long text
    max_phones: int = 300  # longer sentences are split at clauses
    # Of voices with letters and ARPAbet (preprocess.text.p_arpabet): the probability of ARPAbet,
    # the same words at every call; null: 1 if the voice was trained with ARPAbet, otherwise 0.
    p_arpabet: float | None = None
    # Phones that the voice was not trained on: `replace` them by the nearest, with a warning, or
    # `refuse` the text. Pauses are always replaced.
    unknown_phones: Literal["replace", "refuse"] = "replace"
    # Of models that align by attention: how often a sentence is read, with another seed, until
    # nothing is skipped or repeated and the speech ends
    attention_attempts: int = 3
    # Of models that align by attention: weights of the decoder's LSTMs. "fp16" is twice as fast on
    # x86 CPUs, "int8" (CPUs only) four times
    decoder_precision: Literal["fp32", "fp16", "int8"] = "fp32"
    griffin_lim_iterations: int = 30
    # Of the vocoder's network: "bf16" is faster on CPUs with bfloat16; "mixed" keeps the last stage
    # of HiFi-GAN in fp32, and is "bf16" for the others.
    vocoder_precision: Literal["fp32", "mixed", "bf16"] = "fp32"
    # Settings of the vocoder itself, by name: of WaveGlow `sigma` and `denoiser_strength`. The
    # defaults are those of its own configuration.
    vocoder_options: dict[str, float] = field(default_factory=dict)
    save_plots: bool = False  # plot mel, phones and pitch of each wav

    def __post_init__(self) -> None:
        require_at_least(self, 1, "batch_size", "max_phones", "griffin_lim_iterations")
        require_at_least(self, 1, "attention_attempts")
        require_at_least(self, 0, "sentence_pause_s")
        if self.p_arpabet is not None:
            require_probability("p_arpabet", self.p_arpabet)


@dataclass(frozen=True)
class Config:
    """A whole experiment: what `exp_config.json` and its `base_config` chain resolve to."""

    task: Literal["tts", "vocoder"]
    model_type: str  # a file name in models/<task>, in any case
    dataset: tuple[str, ...]
    dataset_path: dict[str, str]  # by dataset name; relative paths start at the repository root
    log_dir: str  # experiments go to <log_dir>/<name>
    model: object  # the model's own config dataclass
    preprocess: PreprocessConfig = field(default_factory=PreprocessConfig)
    train: TrainConfig = field(default_factory=lambda: TrainConfig(max_epoch=1))
    inference: InferenceConfig = field(default_factory=InferenceConfig)

    def __post_init__(self) -> None:
        if not self.dataset or len(set(self.dataset)) < len(self.dataset):
            raise ValueError(f"dataset is {list(self.dataset)}, expected one or more, each once")
        known = {*self.dataset, *self.dataset_path}
        if unknown := sorted(self.preprocess.corpus.keys() - known):
            raise ValueError(
                f"preprocess.corpus.{unknown[0]} belongs to no dataset; expected one of"
                f" {', '.join(sorted(known))}"
            )
        if strangers := sorted(self.train.segments_per_s.keys() - set(self.dataset)):
            raise ValueError(
                f"train.segments_per_s.{strangers[0]} belongs to no dataset; expected one of"
                f" {', '.join(self.dataset)}"
            )
        self._check_aligner()
        if self.task == "vocoder" and self.train.trained == "speakers":
            raise ValueError("train.trained is speakers, but vocoders have none; set it to all")
        self._check_p_arpabet()
        check = getattr(self.model, "check_preprocess", None)  # only some models have such rules
        if check is not None:
            check(self.preprocess)

    def _check_p_arpabet(self) -> None:
        """Refuses a probability of ARPAbet for a voice that has no choice of it."""
        chosen, text = self.inference.p_arpabet, self.preprocess.text
        if chosen is None:
            return
        if not text.is_mixed or (chosen > 0 and text.certain_p_arpabet == 0):
            raise ValueError(
                f"inference.p_arpabet is {chosen:g}, but with preprocess.text phone_extractor"
                f" {text.phone_extractor} and p_arpabet {text.p_arpabet:g} no word is mixed;"
                " remove it"
            )

    @property
    def spoken_p_arpabet(self) -> float:
        """Probability of ARPAbet in synthesis, of each word that has it."""
        chosen = self.inference.p_arpabet
        return self.preprocess.text.certain_p_arpabet if chosen is None else chosen

    @property
    def needs_durations(self) -> bool:
        """Whether the model is given durations; `NEEDS_DURATIONS` of its config says if not."""
        return bool(getattr(self.model, "NEEDS_DURATIONS", True))

    def _check_aligner(self) -> None:
        """Rules for data without durations."""
        if self.task != "tts" or self.preprocess.has_aligner:
            return
        aligner = self.preprocess.aligner
        if self.model is not None and self.needs_durations:
            if aligner == "none":
                raise ValueError(
                    f"{self.model_type} needs durations, and preprocess.aligner none gives none:"
                    " choose another, such as learned"
                )
            if not hasattr(self.model, "aligner"):
                raise ValueError(
                    f"{self.model_type} cannot learn durations: choose another preprocess.aligner"
                )
        if self.train.crop_phones:
            raise ValueError(
                f"train.crop_phones is {self.train.crop_phones}, but with preprocess.aligner"
                f" {aligner} the times of phones are unknown; set it to 0"
            )
