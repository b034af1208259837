"""The table of flags. Parsers, help, refusals and the arguments of a stage follow from it."""

from dataclasses import dataclass, replace
from typing import Any, Literal

from bins._flags import values as v
from bins._flags.values import choice, whole
from processors.durations import EXPORT_FORMATS
from utils.cli import UsageError
from utils.parallel import n_cores

Kind = Literal["tts", "vocoder"]
KINDS: tuple[Kind, ...] = ("tts", "vocoder")
KIND_NAMES = {"tts": "text-to-speech", "vocoder": "vocoder"}
TTS: tuple[Kind, ...] = ("tts",)
VOCODER: tuple[Kind, ...] = ("vocoder",)
ALL = (0, 1, 2, 3, 4)


@dataclass(frozen=True)
class Command:
    """The command of a stage: a module of `bins`."""

    name: str
    stage: int
    title: str  # for the log of a recipe
    help: str
    kinds: tuple[Kind, ...] = KINDS


_FROM_MELS = "synthesise speech from recordings (by their mels) or from mels"
_SCORE = "score the speech of stage 3, or any wavs, against recordings of the same utterances"
_PREPARE = "prepare the data: text, alignment, features; finished work is kept"
COMMANDS = (
    Command("fetch", 0, "corpus", "fetch the corpus, where its licence allows that"),
    Command("preprocess", 1, "data", _PREPARE),
    Command("train", 2, "training", "train"),
    Command("inference", 3, "speech", "synthesise speech from text", TTS),
    Command("vocode", 3, "speech", _FROM_MELS, VOCODER),
    Command("evaluate", 4, "scores", _SCORE),
)


@dataclass(frozen=True)
class Flag:
    """One flag, as `--name VALUE`."""

    name: str
    value: v.Value | None  # None: a switch
    stages: tuple[int, ...] = ()  # of recipes; other commands have rows of their own
    help: str = ""  # {default} stands for that
    metavar: str = ""  # if another than that of the value
    kinds: tuple[Kind, ...] = KINDS  # of recipes
    short: str = ""
    default: Any = None
    # Given several times: "repeated" by the flag, or as "words", or "two" of them, after it
    several: Literal["", "repeated", "words", "two"] = ""
    # Recipes have it, the commands of its stages, or both
    scope: Literal["both", "recipe", "command"] = "both"
    positional: bool = False  # a word without --NAME
    required: bool = False
    dest: str = ""  # name of its value, if another than that of the flag
    excludes: str = ""  # of the flags with the same text, one may be given

    def with_help(self, text: str) -> "Flag":
        """Adds a help of several lines."""
        return replace(self, help=" ".join(text.split()))

    @property
    def key(self) -> str:
        """The name of its value."""
        return self.dest or self.name

    @property
    def place(self) -> str:
        """The stages that it goes with."""
        *others, last = map(str, self.stages)
        return f"stages {', '.join(others)} and {last}" if others else f"stage {last}"

    def read(self, text: str) -> Any:  # noqa: ANN401  (of any type)
        """Reads a value."""
        assert self.value is not None, self.name
        try:
            return self.value.read(text)
        except ValueError as error:
            reason = str(error) or f"expected {self.value.expected}"
            flag = self.metavar if self.positional else f"--{self.name}"
            raise UsageError(f"{flag} {text!r}: {reason}") from error


FLAGS = (
    Flag("stage", v.STAGES, ALL, "stages: N, a range A-B, or all", short="s", scope="recipe"),
    Flag("config", v.CONFIG, ALL, short="c").with_help("""
        experiment configuration (recipes: default exp_config.json next to run.sh)"""),
    Flag("set", v.SETTING, ALL, several="repeated").with_help("""
        override one key of the configuration, as in --set train.batch_size=8; may be repeated"""),
    Flag("show_config", None, ALL, scope="recipe").with_help("""
        print every key of the configuration with its value and where it comes from (a file, --set
        or default), and end"""),
    Flag("gpu", v.GPUS, ALL, scope="recipe").with_help("""
        GPUs by number, as in 0 or 0,1,2,3; "" is the CPU (default: 0, or CUDA_VISIBLE_DEVICES;
        without a GPU: the CPU)"""),
    Flag("task", choice(*KINDS), (1, 2), "task that the configuration must have", scope="command"),
    Flag("from_acoustic", v.MODEL, (1,), kinds=VOCODER).with_help("""
        store mels that this acoustic model predicts for its own data, instead of the mels of
        recordings; in one process with --num_workers threads; MODEL as for --infer_expt_dir"""),
    Flag("acoustic_data", v.FOLDER, (1,), kinds=VOCODER).with_help("""
        prepared data of the model of --from_acoustic, as in DIR/<dataset> (default: the
        processed_dir of its configuration)"""),
    Flag("num_workers", v.COUNT, (1, 4), "processes (default: one per core)", default=n_cores()),
    Flag("name", v.EXPERIMENT, (2, 3, 4), "name of the experiment; stage 2 requires it", short="n"),
    Flag("resume", None, (2,), "continue from the newest checkpoint of the experiment"),
    Flag("restart", None, (2,), "delete the checkpoints of the experiment and start again"),
    Flag("init_from", v.MODEL, (2,), "start from the weights of another experiment or Hub model"),
    Flag("synthetic", None, (2,)).with_help("""
        train on generated data with the lengths of LJSpeech, without a corpus and stages 0 and 1;
        to try and to measure training"""),
    Flag("profile", None, (2,)).with_help("""
        profile updates 10 to 15 of this run: a trace, a table of the most expensive operations, and
        on GPUs memory (train.profile)"""),
    Flag("num_machines", whole(1, 65535), (2,), scope="recipe").with_help("""
        train on N machines: start the same command on each (docs/scale.md)"""),
    Flag("machine_rank", whole(0, 65534), (2,), metavar="R", scope="recipe").with_help("""
        number of this machine, from 0"""),
    Flag("main_process_ip", v.WORD, (2,), "address of machine 0", metavar="HOST", scope="recipe"),
    Flag("main_process_port", whole(1, 65535), (2,), metavar="P", scope="recipe").with_help("""
        a free port of machine 0 (default: 29500)"""),
    Flag("accelerate_config", v.FILE, (2,), scope="recipe").with_help("""
        the machines as `accelerate config` writes them, instead of these flags; --machine_rank
        overrides that of the file"""),
    Flag("seed", v.SEED, (2, 3)).with_help("""
        seed of all randomness (default: train.random_seed in stage 2, 0 in stage 3)"""),
    Flag("infer_expt_dir", v.MODEL, (3, 4)).with_help("""
        experiment, a checkpoint in it, or org/name[@revision] on the Hub (default: the one
        --name)"""),
    Flag("infer_best", None, (3,)).with_help("""
        use the checkpoint with the smallest validation loss, in place of the newest"""),
    Flag("infer_mode", choice("single", "batch"), (3, 4)).with_help("""
        single: input of your own; batch: a split of a dataset; stage 3 requires it, stage 4 scores
        what batch wrote by default"""),
    Flag("infer_text", v.TEXT, (3,), "single: the text; never skipped", kinds=TTS),
    Flag("infer_text_file", v.FILE, (3,), kinds=TTS).with_help("""
        single: a UTF-8 file with one text a line, or a .tsv table with the columns text and
        optionally pitch (a file of Hz per phone), output (name of the wav) and speaker, or a .ssml
        document"""),
    Flag("strict", None, (3,), "refuse SSML that would be mended or left out", kinds=TTS),
    Flag("lexicon", v.FILE, (3,), "your dictionary, as in docs/text.md", kinds=TTS),
    Flag("infer_audio_dir", v.INPUT, (3,), "single: a recording, or a folder", kinds=VOCODER),
    Flag("infer_feature_dir", v.INPUT, (3,), kinds=VOCODER).with_help("""
        single: a log-mel (M, T) in a .npy file, or a folder of them"""),
    Flag("infer_dataset", v.WORD, (3, 4), "batch: the dataset"),
    Flag("infer_testing_set", choice("train", "test", "golden_test"), (3, 4), "batch: the split"),
    Flag("infer_output_dir", v.OUTPUTS, (3, 4), several="words").with_help("""
        folder of the wavs (default: <infer_expt_dir>/result); stage 4 compares several, as in
        --infer_output_dir A B C"""),
    Flag("overwrite", None, (3,)).with_help("""
        repeat finished wavs of the same model and settings (default: skip them)"""),
    Flag("no_tags", None, (3,)).with_help("""
        do not say in the wavs that they are synthetic speech, and by which model"""),
    Flag("vocoder_dir", v.MODEL, (3, 4), kinds=TTS).with_help("""
        vocoder, given as for --infer_expt_dir, or griffin_lim (default: the bundled one); stage 4
        also scores recordings resynthesised by it, to isolate its error (default: that of stage 3,
        if built in)"""),
    Flag("resample", None, (3, 4), kinds=TTS).with_help("""
        accept a vocoder of another mel or sample rate, at lower quality"""),
    Flag("speaker", v.WORD, (3,), kinds=TTS).with_help("""
        speaker (default: inference.speaker, or the only one; batch: that of the recording)"""),
    Flag("pitch_control", v.FACTOR, (3,), "1.2 is 20 % higher", kinds=TTS, default=1.0),
    Flag("energy_control", v.FACTOR, (3,), "1.2 is 20 % louder", kinds=TTS, default=1.0),
    Flag("duration_control", v.FACTOR, (3,), "1.2 is 20 % slower", kinds=TTS),
    Flag("pace", v.FACTOR, (3,), metavar="R", kinds=TTS).with_help("""
        1.25 is 25 % faster: --duration_control 1/R"""),
    Flag("pitch_transform_flatten", None, (3,), kinds=TTS).with_help("""
        the pitch is the speaker's mean; the four transforms are done in this order"""),
    Flag("pitch_transform_invert", None, (3,), "mirror the pitch at the mean", kinds=TTS),
    Flag("pitch_transform_amplify", v.NUMBER, (3,), kinds=TTS, default=1.0).with_help("""
        multiply the difference between pitch and mean by X"""),
    Flag("pitch_transform_shift", v.SHIFT, (3,), metavar="HZ", kinds=TTS, default=0.0).with_help("""
        add HZ, from -500 to 500"""),
    Flag("pitch_transform_custom", v.CONTOUR, (3,), kinds=TTS).with_help("""
        multiply the pitch by a contour over the text, instead: ramp:A:B, from factor A to B, or a
        file of one factor a line, interpolated linearly"""),
    Flag("steps", v.STEPS, (3,), kinds=TTS).with_help("""
        of models with a flow, such as FlowSpeech; more take longer"""),
    Flag("temperature", v.TEMPERATURE, (3,), kinds=TTS).with_help("""
        noise of such a flow; less is clearer, more is livelier"""),
    Flag("fade_out", whole(0), (3,), metavar="FRAMES", kinds=TTS, default=0).with_help("""
        fade the end of each wav linearly over so many mel frames (default: 0)"""),
    Flag("save_alignment", choice(*EXPORT_FORMATS), (3,), kinds=TTS).with_help("""
        write the times of words and phones next to the wavs"""),
    Flag("metrics", v.NAMES, (4,), "scores, as in mcd,wer (default: all that can be computed)"),
    Flag("checks", v.NAMES, (4,)).with_help("""
        checks for typical failures, all or none (default: all, and none with --metrics)"""),
    Flag("recordings", v.FOLDER, (4,), "recordings named by id (default: those of stages 1 and 3)"),
    Flag("natural", v.FOLDER, (4,)).with_help("""
        second readings by the same speaker, named by the id of what they repeat: how much two
        readings by the same speaker differ"""),
    Flag("texts", v.FILE, (4,), "the texts: id|text lines (default: as in stages 1 and 3)"),
    Flag("copies", v.YES_OR_NO, (4,), "no: no resynthesised recordings", default="yes"),
    Flag("transcripts", v.FOLDER, (4,)).with_help("""
        transcripts of your own recogniser: <id>.txt, recorded/<id>.txt"""),
    Flag("recogniser", v.FUNCTION, (4,)).with_help("""
        your own recogniser, as in my_asr:hear (default: pocketsphinx)"""),
    Flag("speaker_encoder", v.FUNCTION, (4,)).with_help("""
        your own speaker encoder, as in my_voices:encode (default: that of resemblyzer)"""),
    Flag("report_dir", v.REPORT, (4,)).with_help("""
        folder of the page and the comparison (default: next to the wavs; several folders:
        comparison/ in the first)"""),
    Flag("page", v.YES_OR_NO, (4,), "no: do not write report.html", default="yes"),
)


def flags_of_command(command: Command) -> list[Flag]:
    """Returns the flags of the command of a stage."""
    flags = [flag for flag in FLAGS if command.stage in flag.stages and flag.scope != "recipe"]
    return [flag for flag in flags if {*flag.kinds} & {*command.kinds}]


def command_of(stage: int, kind: Kind) -> Command:
    """Returns the command that is a stage of the recipes of a kind."""
    return next(c for c in COMMANDS if c.stage == stage and kind in c.kinds)
