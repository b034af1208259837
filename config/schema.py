"""The whole configuration of an experiment: its top-level keys and the `inference` section.

Every key has its type, default, meaning and unit in this folder: `preprocess` in preprocess.py,
`train` in train.py. Key names follow Amphion's `exp_config.json` where the meaning is the same;
those of the mel are librosa's. The `model` section is the config dataclass of the model that
`model_type` names and lives in that model's file.
"""

from dataclasses import dataclass, field
from typing import Literal

from config.checks import require_at_least, require_probability
from config.preprocess import PreprocessConfig
from config.text import UnknownCharacters
from config.train import CompileMode, TrainConfig

# precisions of synthesis; each model lists those that it supports
AcousticPrecision = Literal["fp32", "bf16", "fp16", "int8"]
VocoderPrecision = Literal["fp32", "mixed", "bf16"]
# what may be asked for: "auto" leaves it to the machine
AcousticChoice = Literal["auto", "fp32", "bf16", "fp16", "int8"]
VocoderChoice = Literal["auto", "fp32", "mixed", "bf16"]


@dataclass(frozen=True)
class InferenceConfig:
    """Stage 3."""

    # Use the moving average of the weights, if the model was trained with `train.ema_decay`; false:
    # the weights of the last update, which published models do not have
    ema: bool = True
    # speaker of a voice with several, where none is asked for; empty: one must be named
    speaker: str = ""
    batch_size: int = 8  # sentences per forward pass
    sentence_pause_s: float = 0.25  # silence between the sentences of a long text
    max_phones: int = 300  # longer sentences are split at clauses
    # Probability of ARPAbet in voices with letters and ARPAbet (preprocess.text.p_arpabet), for the
    # same words at every call; null: 1 if the voice was trained with ARPAbet, otherwise 0.
    p_arpabet: float | None = None
    # Phones that the voice was not trained on: `replace` them by the nearest, with a warning, or
    # `refuse` the text. Pauses are always replaced.
    unknown_phones: Literal["replace", "refuse"] = "replace"
    # Letters of other scripts than that of the language: `speak` names Greek symbols and
    # transliterates words, `skip` leaves them out with a warning, `refuse` refuses the text, as
    # stage 1 does. espeak-ng reads other scripts itself.
    unknown_characters: UnknownCharacters = "speak"
    # Semitones by which the pitch rises from the last stressed vowel to the end of an English
    # question without a question word. null: 6 if the voice was not trained on question marks,
    # otherwise 0. Models without control of pitch (Tacotron 2) do not rise.
    question_rise: float | None = None
    # Models that align by attention: attempts at a sentence, each with another seed, until nothing
    # is skipped or repeated and the speech ends
    attention_attempts: int = 3
    # Precision of the acoustic model. FastSpeech 2, FastPitch, FlowSpeech and Matcha have "bf16":
    # decoder or flow, not durations, pitch and energy; faster on CPUs with bfloat16. Tacotron 2 has
    # "fp16", twice as fast on x86 CPUs, and "int8" (CPUs only), four times: its LSTMs' weights.
    # "auto" is "bf16" for the first three on CPUs with bfloat16, otherwise "fp32".
    acoustic_precision: AcousticChoice = "auto"
    # The same three as graphs, encoders and decoder or flow, with one number read between them:
    # "dynamic", for any length, or "buckets", for lengths padded to a few, on a GPU with CUDA
    # graphs. The first calls take long; docs/compilation.md.
    compile: CompileMode = "off"
    griffin_lim_iterations: int = 30
    # Precision of the vocoder: "bf16" is faster on CPUs with bfloat16; "mixed" keeps the last stage
    # of HiFi-GAN in fp32, and is "bf16" for the others. "auto" is "mixed" for HiFi-GAN on such
    # CPUs, otherwise "fp32".
    vocoder_precision: VocoderChoice = "auto"
    # Settings of the vocoder by name; WaveGlow has `sigma` and `denoiser_strength`. The defaults
    # are those of the vocoder's configuration.
    vocoder_options: dict[str, float] = field(default_factory=dict)
    save_plots: bool = False  # plot mel, phones and pitch of each wav

    def __post_init__(self) -> None:
        require_at_least(self, 1, "batch_size", "max_phones", "griffin_lim_iterations")
        require_at_least(self, 1, "attention_attempts")
        require_at_least(self, 0, "sentence_pause_s")
        if (rise := self.question_rise) is not None and not 0 <= rise <= 12:
            raise ValueError(f"question_rise is {rise:g}, expected semitones, 0 to 12")
        require_probability(self, "p_arpabet")


@dataclass(frozen=True)
class Config:
    """A whole experiment: what `exp_config.json` and its `base_config` chain resolve to."""

    task: Literal["tts", "vocoder"]
    model_type: str  # a file name in models/<task>, in any case
    dataset: tuple[str, ...]
    dataset_path: dict[str, str]  # by dataset name; relative paths start at the repository root
    log_dir: str  # experiments go to <log_dir>/<name>
    model: object  # the config dataclass of the model
    preprocess: PreprocessConfig = field(default_factory=PreprocessConfig)
    train: TrainConfig = field(default_factory=lambda: TrainConfig(max_epoch=1))
    inference: InferenceConfig = field(default_factory=InferenceConfig)

    def __post_init__(self) -> None:
        if not self.dataset or len(set(self.dataset)) < len(self.dataset):
            raise ValueError(f"dataset is {list(self.dataset)}, expected one or more, each once")
        by_dataset = (
            ("preprocess.corpus", self.preprocess.corpus, {*self.dataset, *self.dataset_path}),
            ("train.segments_per_s", self.train.segments_per_s, set(self.dataset)),
        )
        for key, section, datasets in by_dataset:
            if unknown := sorted(section.keys() - datasets):
                expected = f"expected one of {', '.join(sorted(datasets))}"
                raise ValueError(f"{key}.{unknown[0]} belongs to no dataset; {expected}")
        if self.task == "vocoder" and self.train.trained == "speakers":
            raise ValueError("train.trained is speakers, but vocoders have none; set it to all")
        if not self.inference.ema and not self.train.ema_decay:
            fault = "the model has no moving average of its weights; remove inference.ema"
            raise ValueError(f"inference.ema is false, but train.ema_decay is 0: {fault}")
        chosen, text = self.inference.p_arpabet, self.preprocess.text
        if chosen is not None and (not text.is_mixed or chosen > text.certain_p_arpabet):
            keys = f"phone_extractor {text.phone_extractor} and p_arpabet {text.p_arpabet:g}"
            fault = f"with preprocess.text {keys} no word is mixed; remove it"
            raise ValueError(f"inference.p_arpabet is {chosen:g}, but {fault}")

    @property
    def spoken_p_arpabet(self) -> float:
        """Probability of ARPAbet in synthesis, for each word with ARPAbet."""
        chosen = self.inference.p_arpabet
        return self.preprocess.text.certain_p_arpabet if chosen is None else chosen
