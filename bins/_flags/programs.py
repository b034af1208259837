"""The flags of commands that are no stage: `arion NAME`, `python -m bins.NAME`."""

from dataclasses import replace
from pathlib import Path
from typing import get_args

from bins._flags import values as v
from bins._flags.table import FLAGS, Flag
from bins._flags.values import choice, matching, number, whole
from models.voices import BUNDLED
from processors.durations import ATTENTION_PATHS, EXPORT_FORMATS, IMPORT_FORMATS
from processors.text.markup import Format
from utils.files import user_path
from utils.parallel import n_cores

ATTENTION = "attention"  # a format of durations
_FILE = v.Value(Path, "FILE")  # or a folder
_FOLDER = v.Value(user_path, "DIR")  # that may be missing
_ID, _DATASET = v.Value(str, "ID"), v.Value(str, "DATASET")


def _one_of(*names: str) -> v.Value:
    """Builds one of several names, which the help shows in braces."""
    return replace(choice(*names), metavar=f"{{{','.join(names)}}}")


def _names(text: str) -> list[str] | None:
    return None if text == "all" else [name for name in text.split(",") if name]


def _program(description: str, *flags: Flag) -> tuple[str, tuple[Flag, ...]]:
    return description, flags


def _control(name: str) -> Flag:
    """Builds a row of synthesis: `pitch_control` of stage 3 is --pitch in other commands."""
    return replace(_OF_STAGES[name], name=name.removesuffix("_control"))


_NAMES, _EXPORTS = v.Value(_names, "NAMES"), _one_of(*EXPORT_FORMATS)
_BOOK_FORMAT = _one_of("flac", "mp3", "opus", "ogg", "wav")
_SPEAKERS = choice("arion", "piper", "sherpa-onnx", "web")
_ADDRESS = r"(\[[0-9a-fA-F:.]+\]:|[^:\s]+:)?[0-9]{1,5}"
_LIST = r"[^,\s]+(,[^,\s]+)*"
_OF_STAGES = {flag.name: flag for flag in FLAGS}
_SET = replace(_OF_STAGES["set"], dest="overrides")
_OPTIONAL_CONFIG = (replace(_OF_STAGES["config"], value=_FILE, short=""), _SET)
_CONFIG = (replace(_OPTIONAL_CONFIG[0], required=True), _SET)
_ONLY_DATASET = Flag("dataset", _DATASET).with_help("""
    dataset (default: the only one of the configuration)""")
_N_CPUS = Flag("n_cpus", v.COUNT, metavar="N_CPUS", default=4).with_help("""
    processes (default: {default})""")
_CORPUS = (
    Flag("corpus", v.FOLDER, metavar="CORPUS", positional=True).with_help("""
        a folder of recordings with a table metadata.csv of id|text lines (README.md), or of
        --corpus_format"""),
    Flag("corpus_format", v.WORD, default="folder").with_help("""
        folder, ljspeech, vctk or libritts (default: {default})"""),
    Flag("language", v.WORD, metavar="CODE", default="en-us").with_help("""
        of espeak-ng, such as de or fr-fr (default: {default}); numbers in other languages than
        English must be written out"""),
    Flag("num_workers", v.COUNT, default=n_cores(), help="processes (default: one per core)"),
)
_SOUND = matching("FILE", r"(?is).+\.(wav|flac|mp3|opus|ogg)", ".wav, .flac, .mp3, .opus or .ogg")
_VOICE = Flag("voice", v.WORD, metavar="VOICE", default=BUNDLED).with_help("""
    a name that `arion voices` lists, an experiment, or org/name on the Hub (default: {default})""")
_SPEAKER = _control("speaker").with_help("""
    one that `arion voices` lists (default: marked there)""")

# description and flags, by the module of `bins`
PROGRAMS = {
    "say": _program(
        "Speaks a text. Without --output it plays, or writes speech.wav if it cannot.",
        Flag("text", v.WORD, metavar="TEXT", positional=True, several="words").with_help("""
            the text; a book: .txt, .md or .epub; -: standard input, plain and spoken while it
            is written"""),
        Flag("file", v.FILE, help="a UTF-8 file with the text, also .md, .html, .ssml"),
        Flag("format", _one_of(*get_args(Format)), metavar="FORMAT", default="auto").with_help("""
            text, markdown, html, ssml or auto (default)"""),
        Flag("ssml", None, help="the same as --format ssml; times of marks are listed"),
        _VOICE,
        Flag("output", v.WORD, metavar="FILE", short="o").with_help("""
            write .wav, .flac, .mp3, .opus or .ogg; - writes a WAV to standard output; of a book, a
            folder"""),
        Flag("book_format", _BOOK_FORMAT, metavar="FORMAT").with_help("""
            of a book's files: flac (default), mp3, opus, ogg or wav"""),
        Flag("subtitles", v.WORD, metavar="FILE").with_help("""
            write .srt, or .vtt with the time of each word"""),
        _SPEAKER,
        _control("pace").with_help("1.25 is 25 % faster"),
        _control("pitch_control"),
        _control("energy_control"),
        _control("steps"),
        _control("temperature"),
        _control("strict"),
        _control("lexicon"),
        _control("seed").with_help("of models that draw random numbers (default: 0)"),
        _control("no_tags").with_help("do not say in the file that its speech is synthetic"),
        _control("vocoder_dir").with_help("""
            vocoder, a folder or a name on the Hub, or griffin_lim (default: the bundled one)"""),
    ),
    "pronounce": _program(
        """Shows the phones of words, and where they come from: your dictionary (--lexicon), a
        lexicon, letter-to-sound. The lines can be corrected and used as a dictionary.""",
        Flag("words", v.WORD, metavar="WORD", positional=True, several="words"),
        _VOICE,
        _SPEAKER,
        _control("lexicon"),
        Flag("output", _SOUND, short="o", help="speak them into this file"),
    ),
    "export_voice": _program(
        """Writes a voice for other programs: by default a folder that needs onnxruntime and NumPy
        only, python OUT/speak.py TEXT""",
        Flag("voice", v.WORD, metavar="EXPERIMENT", positional=True).with_help("""
            a voice, given as for arion say --voice"""),
        Flag("target", _FOLDER, metavar="OUT", positional=True, help="folder to make"),
        Flag("vocoder_dir", v.MODEL, help="vocoder, or griffin_lim (default: the bundled one)"),
        Flag("weights", choice("fp32", "fp16", "int8"), default="fp32").with_help("""
            how weights are stored: fp32, fp16 or int8 (default: {default})"""),
        Flag("format", _SPEAKERS, default="arion").with_help("""
            who speaks: arion (speak.py), piper, sherpa-onnx or web (a page for browsers;
            default: {default})"""),
    ),
    "serve": _program(
        """Serves voices as OpenAI's speech endpoint, /v1/audio/speech, and on a page, /. Voices are
        opened when first asked for.""",
        Flag("voices", v.WORD, metavar="VOICE", positional=True, several="words").with_help("""
            a name that `arion voices` lists, an experiment, a folder of them, or org/name on the
            Hub; NAME=VOICE names it (default: all that `arion voices` lists)"""),
        Flag("host", v.WORD, metavar="HOST", default="127.0.0.1").with_help("""
            address to listen on (default: {default})"""),
        Flag("port", whole(0, 65535), default=8000, help="(default: {default})"),
        Flag("token", v.WORD, metavar="TOKEN").with_help("""
            that clients send as their API key (default: $ARION_TOKEN); needed for another --host
            than 127.0.0.1"""),
        Flag("no_token", None, help="serve everyone who reaches --host"),
        Flag("wyoming", matching("[HOST:]PORT", _ADDRESS, "a port, or HOST:PORT")).with_help("""
            also speak Home Assistant's Wyoming protocol there (default HOST: 127.0.0.1); it has no
            token: everyone who reaches HOST is served"""),
        Flag("memory", v.COUNT, metavar="MB", default=2000).with_help("""
            memory of open voices; the least recently used ones are closed (default: {default})"""),
        _control("lexicon"),
        Flag("queue", v.COUNT, default=128).with_help("""
            requests at a time; others get 503 (default: {default})"""),
        Flag("deadline", v.COUNT, metavar="S", default=600).with_help("""
            seconds for a request, also after SIGTERM (default: {default})"""),
        Flag("no_tags", None, help="do not say in responses that their speech is synthetic"),
    ),
    "align": _program(
        """Aligns the recordings of a corpus with their texts, in any language and without another
        program: a hidden Markov model is trained on them. It needs a few minutes of speech; for
        less in English, at least three recordings, there is pocketsphinx. Next to the alignments,
        hmm writes misfits.tsv: words that were probably not spoken as written (misfit above 50),
        with times. Times are multiples of 11.6 ms. rejected.jsonl lists recordings that could not
        be aligned. An interrupted call leaves the folder stage_1, with which the next one goes
        on.""",
        *_CORPUS,
        Flag("output", _FOLDER, metavar="OUT", positional=True, help="folder of the alignments"),
        Flag("format", _EXPORTS, default="textgrid", help="(default: {default})"),
        Flag("aligner", _one_of("hmm", "pocketsphinx"), default="hmm", help="(default: {default})"),
    ),
    "corpus": _program(
        """Cuts long recordings at pauses into clips of 1 to 15 s, as a corpus for stage 1, and
        finds the text of each in a book, a script or subtitles. What does not fit is left out:
        left_out.csv lists it, report.html plays the worst clips. After an interruption, the same
        command goes on. docs/corpus.md has examples.""",
        Flag("recordings", v.INPUT, metavar="RECORDINGS", positional=True).with_help("""
            a recording, or a folder of them: wav, flac, mp3, ogg, opus and others"""),
        Flag("out", _FOLDER, metavar="OUT", positional=True, help="folder of the corpus"),
        Flag("text", v.FILE).with_help("""
            what is read in all of them: .txt, .md, .epub, .srt or .vtt (default: of a.mp3 a.txt,
            a.srt and so on next to it)"""),
        Flag("language", v.WORD, metavar="CODE", default="en-us").with_help("""
            espeak-ng code (default: {default}); others than English need --recogniser"""),
        Flag("recogniser", v.FUNCTION).with_help("""
            speech recogniser, as in stage 4; it writes the texts of recordings without one"""),
        Flag("num_workers", v.COUNT, default=n_cores(), help="processes (default: one per core)"),
    ),
    "check_corpus": _program(
        """Reads the recordings and texts of a corpus as stage 1 does, and lists what it would
        reject, what is odd, and the words it knows no pronunciation of. It aligns them by a hidden
        Markov model, and lists words that were probably not spoken as written. The worst comes
        first. The exit code is 1 if something must be corrected.""",
        *_CORPUS,
        Flag("no_misfits", None, help="do not align; that takes longest"),
        Flag("json", None, help="print JSON instead of a table"),
    ),
    "distil": _program(
        """Has another program, the teacher, speak texts, as a corpus for stage 1. Each clip is
        checked; rejected.jsonl lists those that cannot be used. After an interruption, the same
        command goes on. docs/distil.md has examples.""",
        Flag("teacher", v.WORD, metavar="TEACHER", positional=True).with_help("""
            module:function of a text and a voice, which returns samples and their rate;
            http(s)://host/v1, as OpenAI's; or voice.onnx of Piper"""),
        Flag("texts", v.INPUT, metavar="TEXTS", positional=True).with_help("""
            a file of one text per line, or of id|text, or a folder of a corpus"""),
        Flag("out", _FOLDER, metavar="OUT", positional=True, help="folder of the corpus"),
        Flag("voices", matching("LIST", _LIST, "names and commas, as in anna,bert")).with_help("""
            voices of the teacher, among which the texts are divided"""),
        Flag("minutes", number("30", 0.01, 1e5), help="for each voice", excludes="amount"),
        Flag("texts", v.COUNT, dest="n_texts", excludes="amount").with_help("""
            for each voice (default: all)"""),
        Flag("every", v.INPUT, metavar="FILE", help="further texts, of every voice"),
        Flag("exclude", v.FILE, help="file of ids or texts to leave out"),
        Flag("same_texts", None, help="all voices speak the same texts"),
        Flag("language", v.WORD, metavar="CODE", default="en-us").with_help("""
            espeak-ng code (default: {default})"""),
        Flag("model", v.WORD, help="model of an endpoint"),
        Flag("name", v.WORD, help="name of the teacher, shown in model cards (default: TEACHER)"),
        Flag("licence", _ID, help="licence of the speech, shown in model cards"),
        Flag("recogniser", v.FUNCTION).with_help("""
            speech recogniser, as in stage 4, by which clips with wrong words are rejected"""),
        Flag("seed", v.SEED, metavar="SEED", default=0).with_help("""
            seed of the choice of texts (default: {default})"""),
        Flag("num_workers", v.COUNT, default=n_cores()).with_help("""
            processes, or requests at a time (default: one per core)"""),
    ),
    "compare": _program(
        """Makes a page on which listeners compare folders of speech without knowing which is which,
        and analyses the results that they download from it. docs/listening_tests.md says how.""",
        Flag("folders", v.FOLDER, metavar="FOLDER", positional=True, several="words").with_help("""
            speech of a system each, such as outputs of stage 3; files of one name are compared"""),
        Flag("blind", _FOLDER, metavar="OUT", help="folder to make: a page, and its key"),
        Flag("opinion", None).with_help("""
            ask for an opinion of each clip from 1 to 5, not for a preference between two"""),
        Flag("clips", v.COUNT, help="clips to draw at random (default: all)"),
        Flag("seed", v.SEED, metavar="SEED", default=0).with_help("""
            of the order and of --clips (default: {default})"""),
        Flag("results", v.FILE, metavar="CSV", several="words").with_help("""
            analyse what listeners downloaded from the page"""),
        Flag("key", v.FILE).with_help("""
            with --results: key.json of the test (default: the one next to the first CSV)"""),
    ),
    "voices": _program(
        """Lists the voices of this machine, the bundled one and those that recipes trained: name,
        languages, speakers, size, licence, folder; below, the names of its speakers.""",
    ),
    "doctor": _program(
        """Shows versions, devices, optional packages, and whether each voice speaks. The exit code
        is 1 if the bundled voice does not.""",
    ),
    "benchmark": _program(
        "Measures the speed of training and synthesis; run by `make bench`.",
        Flag("model", _NAMES, help="such as fastspeech2,hifigan (default: all)"),
        Flag("mode", _NAMES, metavar="MODE").with_help("""
            training, inference, speech, start-up, several, or all"""),
        Flag("device", _one_of("cpu", "cuda")),
        Flag("threads", v.COUNT, metavar="THREADS", help="CPU threads (default: 1)"),
        Flag("batch_size", whole(0), metavar="BATCH_SIZE").with_help("""
            utterances of an update (default: the recipe's)"""),
        Flag("infer_batch_size", v.COUNT, metavar="INFER_BATCH_SIZE").with_help("""
            utterances of a call (default: 1)"""),
        Flag("longest", whole(0), metavar="LONGEST").with_help("""
            inference: frames of an utterance (default: all)"""),
        Flag("precision", _NAMES, metavar="PRECISION").with_help("""
            fp32 (default), bf16, fp16, int8, mixed, or several, as fp32,bf16; of several, those a
            model lacks are left out"""),
        Flag("warm_up", whole(0), metavar="WARM_UP", help="calls that are not timed (default: 1)"),
        Flag("steps", v.COUNT, metavar="STEPS").with_help("""
            updates or batches that are timed (default: 4)"""),
        Flag("small", None, help="tiny networks and few utterances, to try it"),
        Flag("voice", v.WORD, metavar="VOICE").with_help("""
            speech: experiment or Hub name (default: the bundled voice)"""),
        Flag("vocoder_dir", v.MODEL, help="speech: vocoder (default: the bundled one)"),
        Flag("compare", v.WORD, metavar="KEY=VALUE", several="two").with_help("""
            time two values of a key in turn, as in precision=fp32 precision=bf16; a key is
            precision, threads, lengths (new or repeated), or one of --set"""),
        Flag("output", _FILE, help="write all figures as JSON"),
        *_OPTIONAL_CONFIG,
    ),
    "check_data": _program(
        """Reads the recordings, texts and alignment files of a configuration as stage 1 does, and
        lists what it would reject, what is odd, and the words it knows no pronunciation of. Writes
        nothing; computes no alignments. The exit code is 1 if there are more faults than stage 1
        accepts.""",
        *_CONFIG,
        Flag("dataset", _DATASET, help="dataset (default: all of the configuration)"),
        Flag("num_workers", v.COUNT, metavar="NUM_WORKERS", default=n_cores()).with_help("""
            processes (default: {default})"""),
    ),
    "export_alignments": _program(
        "Exports alignments: of recordings after stage 1, or of speech after stage 3.",
        *_OPTIONAL_CONFIG,
        _ONLY_DATASET,
        Flag("infer_expt_dir", v.MODEL, metavar="INFER_EXPT_DIR").with_help("""
            with --config: the voice that was trained with aligner `learned`"""),
        Flag("infer_output_dir", _FILE, metavar="INFER_OUTPUT_DIR").with_help("""
            export speech of stage 3 from this folder"""),
        Flag("format", _EXPORTS, required=True),
        Flag("output", _FILE, metavar="OUTPUT").with_help("""
            folder; default with --infer_output_dir: next to the wavs"""),
    ),
    "export_model": _program(
        "Exports the files of an experiment that inference needs into a folder.",
        Flag("experiment", _FILE, metavar="EXPERIMENT", positional=True).with_help("""
            its folder (the newest whole checkpoint is exported), or one checkpoint in it"""),
        Flag("target", _FILE, metavar="TARGET", positional=True, help="folder to make"),
        Flag("weights", choice("fp16", "int8")).with_help("""
            how weights are stored: fp16 (half the size) or int8 (a quarter; default: as they
            are)"""),
        Flag("license", _ID, help="licence of the weights, for the card"),
    ),
    "export_tensorflowtts": _program(
        "Writes the features of a corpus in the layout of TensorFlowTTS.",
        *_CONFIG,
        _ONLY_DATASET,
        Flag("rootdir", _FILE, metavar="ROOTDIR", required=True, help="folder of the corpus"),
        Flag("outdir", _FILE, metavar="OUTDIR", required=True).with_help("""
            folder to make; empty or missing"""),
        _N_CPUS,
        Flag("test_size", v.Value(float, "TEST_SIZE"), default=0.05).with_help("""
            share of the utterances in valid (default: {default})"""),
        Flag("seed", whole(0, 2**32 - 1), metavar="SEED", default=1234).with_help("""
            of the split (default: {default})"""),
    ),
    "import_checkpoint": _program(
        "Imports a checkpoint of another project as an experiment.",
        Flag("source", v.WORD, metavar="SOURCE", positional=True).with_help("""
            folder, file, or org/name[@revision]"""),
        Flag("target", _FILE, metavar="TARGET", positional=True, help="folder to make"),
    ),
    "import_durations": _program(
        "Imports phone durations for stage 1: of other programs, or of a Tacotron 2.",
        *_CONFIG,
        _ONLY_DATASET,
        Flag("source", v.WORD, metavar="SOURCE", positional=True).with_help("""
            folder or file with durations; or a voice that aligns by attention: an experiment, a
            checkpoint, or a name on the Hub. It is only read"""),
        Flag("format", _one_of(*IMPORT_FORMATS, ATTENTION)).with_help("""
            default: found by the suffixes of the files; attention for an experiment or a name on
            the Hub"""),
        Flag("path", _one_of(*ATTENTION_PATHS)).with_help("""
            attention: the most likely monotonic alignment, or the phone of the largest weight in
            each frame, as NVIDIA's FastPitch 1.0 (default: monotonic)"""),
        Flag("output", _FILE, metavar="OUTPUT").with_help("""
            folder to make; default: preprocess.imported_dir, or <dataset>/alignments"""),
        Flag("phone_tier", v.WORD, metavar="PHONE_TIER", default="").with_help("""
            TextGrids: name of the tier of phones (default: phones)"""),
        Flag("word_tier", v.WORD, metavar="WORD_TIER", default="").with_help("""
            TextGrids: name of the tier of words (default: words)"""),
        Flag("phones_file", _FILE, metavar="PHONES_FILE").with_help("""
            frame counts: names of the tokens, lines of id|P1 P2 ...; default: the phones of stage
            1"""),
        Flag("pitch", _FILE, metavar="DIR").with_help("""
            frame counts: pitch of the phones of stage 1, <id>.pt or <id>.npy, in Hz or normalised,
            0 where unvoiced; for preprocess.pitch_extractor imported"""),
        Flag("pitch_stats", _FILE).with_help("""
            the pitch is normalised by the mean and std (Hz) of this JSON file"""),
    ),
    "import_tensorflowtts": _program(
        """Makes the processed data of stage 1 from a dump of TensorFlowTTS, which is only read;
        stage 2 trains on them.""",
        *_CONFIG,
        _ONLY_DATASET,
        Flag("rootdir", _FILE, metavar="ROOTDIR", required=True, help="folder of the dump"),
        Flag("durations", _FILE, metavar="DURATIONS").with_help("""
            folder with <id>-durations.npy in any split; default: train/duration and valid/duration
            of the dump"""),
        _N_CPUS,
    ),
    "push_to_hub": _program(
        "Publishes an experiment on the Hugging Face Hub.",
        Flag("experiment", _FILE, metavar="EXPERIMENT", positional=True).with_help("""
            its folder (the newest whole checkpoint is published), or one checkpoint in it"""),
        Flag("repository", v.WORD, metavar="org/name", positional=True).with_help("""
            repository on the Hub; made if it is missing"""),
        Flag("private", None, help="make a private repository; refuse a public one"),
        Flag("license", _ID).with_help("""
            licence of the weights, as on the Hub: cc-by-4.0, mit, ... (default: unknown)"""),
        Flag("revision", v.WORD, metavar="BRANCH", default="main").with_help("""
            branch to write to; made if it is missing (default: {default})"""),
        Flag("message", v.WORD, metavar="MESSAGE", default="Publish an experiment").with_help("""
            message of the commit (default: {default})"""),
        Flag("with_discriminators", None).with_help("""
            also publish the networks that only training needs, so that others can fine-tune"""),
        Flag("dry_run", None, help="list the files and send nothing"),
    ),
}
