"""Keys of the `preprocess` section: audio, text, alignment and features of stage 1."""

import math
from dataclasses import dataclass, field, replace
from typing import Literal

from config.checks import require_at_least, require_share
from config.text import TextConfig
from modules.mel import MelConfig, MelScale, mel_filter_bank


@dataclass(frozen=True)
class CorpusConfig:
    """Options for reading a corpus on disk."""

    format: str = ""  # preprocessor; empty: the one with the name of the dataset
    language: str = "en-us"  # espeak language code of the text
    # `folder`: file name of the table, relative to the dataset path; if there is no metadata.csv,
    # metadata.jsonl, those in the folders below, or *.parquet
    table: str = "metadata.csv"
    delimiter: str = "|"  # `folder`: column separator
    # `folder`: id, text, normalized, phones, speaker or - each; empty: by the first line or number
    columns: tuple[str, ...] = ()
    encoding: str = "utf-8"  # text encoding; a byte-order mark is accepted
    speaker: str = ""  # speaker name where the corpus gives none; empty: the dataset's name
    licence: str = ""  # of the recordings, for the model card; empty: that of a published corpus


@dataclass(frozen=True)
class SplitConfig:
    """Deterministic split by utterance id; the same ids in any order give the same split."""

    valid: float = 0.02  # share of the utterances for validation, at least one utterance
    test: float = 0.03  # share held out for testing, at least one utterance
    seed: int = 0
    # These exact ids are the test split, instead of a share. With several datasets, each holds out
    # those that it has, and its share if it has none; so with the other two lists.
    test_ids: tuple[str, ...] = ()
    valid_ids: tuple[str, ...] = ()  # these exact ids are the validation split
    golden_ids: tuple[str, ...] = ()  # golden_test; empty: `golden_size` test items by length
    golden_size: int = 10  # spread evenly over the test split sorted by duration

    def __post_init__(self) -> None:
        require_at_least(self, 1, "golden_size")
        require_share(self, "valid", "test")


@dataclass(frozen=True)
class PreprocessConfig:
    """Stage 1: audio, text, alignment and features."""

    # Stage 1 writes <processed_dir>/<dataset>. Empty: a folder in data/ whose name follows from the
    # keys that its output depends on (docs/architecture.md).
    processed_dir: str = ""
    sample_rate: int = 22050  # Hz
    n_fft: int = 1024  # samples
    win_length: int = 1024  # samples
    hop_length: int = 256  # samples
    n_mels: int = 80
    f_min: float = 0.0  # Hz
    f_max: float = 8000.0  # Hz
    mel_padding: Literal["centre", "hifigan"] = "centre"
    # filters: Slaney's scale and equal areas, or HTK's scale and equal heights (Vocos at 24 kHz)
    mel_scale: MelScale = "slaney"
    log_floor: float = 1e-5  # smallest band value of the mel before the logarithm
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
    # bins.import_durations from a voice leaves out utterances on which the focus, coverage or
    # diagonality of its attention is smaller (docs/durations.md)
    min_attention: float = 0.5
    edge_silence_s: float = 0.1  # leading and trailing silence kept, seconds
    # Aligner `hmm` rejects utterances whose text does not match: those in which replacing up to
    # three words by arbitrary sound gains more than so many nats (alignment_scores.jsonl). 50 is a
    # good bound; 0: only warn.
    max_misfit: float = 0.0
    # `imported`: that of each phone, which bins.import_durations --pitch stored with the durations
    pitch_extractor: Literal["parselmouth", "pyworld", "imported"] = "parselmouth"
    f0_min: float = 65.0  # Hz
    f0_max: float = 600.0  # Hz
    pitch_remove_outlier: bool = True  # leave outliers (1.5 IQR) out of the statistics
    energy_remove_outlier: bool = True
    # Stage 1 fails if a larger share of utterances is rejected; if above 0, three are tolerated.
    max_bad_ratio: float = 0.01
    # Where the work of stages 1 and 4 runs: processes of this machine, the cluster of
    # DASK_SCHEDULER_ADDRESS or RAY_ADDRESS (without: a local one), or this process.
    backend: Literal["loky", "dask", "ray", "sequential"] = "loky"
    shard_size: int = 200  # utterances per feature shard and per unit of work
    corpus: dict[str, CorpusConfig] = field(default_factory=dict)  # by dataset name
    split: SplitConfig = field(default_factory=SplitConfig)
    text: TextConfig = field(default_factory=TextConfig)

    def __post_init__(self) -> None:
        require_at_least(self, 1, "n_mels", "shard_size")
        require_at_least(self, 0, "min_seconds", "edge_silence_s", "max_misfit")
        require_share(self, "min_attention")
        if self.pitch_extractor == "imported" and self.aligner != "imported":
            raise ValueError(
                f"pitch_extractor is imported, but aligner {self.aligner} has no files with pitch;"
                " set aligner to imported, or another pitch_extractor"
            )
        if self.max_misfit > 0 and self.aligner != "hmm":
            raise ValueError(
                f"max_misfit is {self.max_misfit:g}, but aligner {self.aligner} does not measure"
                " how well recordings match their texts; remove it, or use aligner hmm"
            )
        self._check_text()
        if not (least := self.min_seconds) < (most := self.max_seconds):
            found = f"min_seconds {least:g}, max_seconds {most:g}"
            raise ValueError(f"{found}: expected min_seconds < max_seconds")
        if not 0 <= self.max_bad_ratio <= 1:
            raise ValueError(f"max_bad_ratio is {self.max_bad_ratio:g}, expected a share, 0 to 1")
        if not 0 < self.f0_min < self.f0_max < self.sample_rate / 2:
            found = f"f0_min {self.f0_min:g}, f0_max {self.f0_max:g}"
            half = f"{self.sample_rate / 2:g} Hz, half of the sample rate"
            raise ValueError(f"{found}: expected 0 < f0_min < f0_max < {half}")
        mel_filter_bank(self.mel)  # raises a ValueError for a mel that cannot be

    def _check_text(self) -> None:
        """Checks the rules for aligner and phone extractor."""
        extractor = f"text.phone_extractor is {self.text.phone_extractor}"
        if self.text.certain_p_arpabet > 0 and self.has_aligner:
            raise ValueError(
                f"{extractor} and aligner {self.aligner}: words change between letters and phones"
                " in training, so no aligner can come before it; set aligner to learned (to none"
                " if the model needs no durations), or text.p_arpabet to 0"
            )
        in_phones = not (self.text.in_letters or self.text.is_characters)
        if not in_phones and self.aligner in ("pocketsphinx", "textgrid"):
            others = "hmm or learned, or to imported with durations of letters"
            remedy = f"set aligner to {'learned' if self.text.is_characters else others}"
            fault = f"{extractor}, but aligner {self.aligner} gives the times of phones"
            raise ValueError(f"{fault}; {remedy}")
        if self.text.keeps_punctuation and self.aligner == "hmm":
            remedy = "set aligner to learned, or to imported with durations of letters"
            fault = f"{extractor}, whose marks are not the pauses that aligner hmm places"
            raise ValueError(f"{fault}; {remedy}")

    def corpus_of(self, dataset: str) -> CorpusConfig:
        """Returns the options of a dataset."""
        return self.corpus.get(dataset, CorpusConfig())

    def of_any_length(self) -> "PreprocessConfig":
        """Returns the same keys for recordings of any length."""
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
            win_length=self.win_length,
            hop_length=self.hop_length,
            n_mels=self.n_mels,
            f_min=self.f_min,
            f_max=self.f_max,
            padding=self.mel_padding,
            log_floor=self.log_floor,
            scale=self.mel_scale,
        )
