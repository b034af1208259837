"""Has another program speak texts as a corpus: arion distil TEACHER TEXTS OUT [flags]."""

from argparse import Namespace
from math import inf

from bins._flags.values import COUNT, FILE, FUNCTION, INPUT, SEED, matching, number
from utils.cli import Parser, UsageError, run
from utils.errors import InputError, counted, listed, nearest
from utils.files import user_path
from utils.logging import get_logger, setup_logging
from utils.parallel import n_cores

_VOICES = matching("LIST", r"[^,\s]+(,[^,\s]+)*", "names and commas, as in anna,bert")
_MINUTES = number("30", 0.01, 1e5)
_SAME = ("voices", "same_texts", "seed", "language", "recogniser")  # in all runs into a folder


def _arguments() -> Namespace:
    parser = Parser(
        "Has another program, the teacher, speak texts, as a corpus for stage 1. Each clip is"
        " checked; rejected.jsonl lists those that cannot be used. After an interruption, the same"
        " command goes on. docs/distil.md has examples."
    )
    add = parser.add_argument
    add("teacher", metavar="TEACHER").help = """module:function of a text and a voice, which returns
        samples and their rate; http(s)://host/v1, as OpenAI's; or voice.onnx of Piper"""
    add("texts", type=INPUT.argument, metavar="TEXTS").help = """a file of one text per line, or of
        id|text, or a folder of a corpus"""
    add("out", type=user_path, metavar="OUT", help="folder of the corpus")
    add("--voices", type=_VOICES.argument, metavar="LIST").help = """voices of the teacher, among
        which the texts are divided"""
    amount = parser.add_mutually_exclusive_group()
    amount.add_argument("--minutes", type=_MINUTES.argument, metavar="X", help="for each voice")
    amount.add_argument("--texts", dest="n_texts", type=COUNT.argument, metavar="N").help = """for
        each voice (default: all)"""
    add("--every", type=INPUT.argument, metavar="FILE", help="further texts, of every voice")
    add("--exclude", type=FILE.argument, metavar="FILE", help="file of ids or texts to leave out")
    add("--same_texts", action="store_true", help="all voices speak the same texts")
    add("--language", default="en-us", metavar="CODE", help="espeak-ng code (default: en-us)")
    add("--model", metavar="NAME", help="model of an endpoint")
    add("--name", help="name of the teacher, shown in model cards (default: TEACHER)")
    add("--licence", metavar="ID", help="licence of the speech, shown in model cards")
    add("--recogniser", type=FUNCTION.argument, metavar="FUNCTION").help = """speech recogniser, as
        in stage 4, by which clips with wrong words are rejected"""
    add("--seed", type=SEED.argument, default=0, help="seed of the choice of texts (default: 0)")
    add("--num_workers", type=COUNT.argument, default=n_cores(), metavar="N").help = """processes,
        or requests at a time (default: one per core)"""
    return parser.parse_args()


def main() -> None:
    """Chooses texts and has them spoken."""
    flags = _arguments()

    from config.text import TextConfig
    from models.distil import corpus
    from models.distil.selection import SHORTEST_S, divide
    from models.distil.teachers import find_teacher
    from models.distil.texts import digest, read_pool
    from processors.metrics.recognition.user_models import UserModels, load_function
    from processors.metrics.records import missing_packages
    from processors.metrics.registry import METRICS
    from processors.text.frontend import TextFrontend

    setup_logging()
    if flags.recogniser and (missing := missing_packages(METRICS["wer"].packages)):
        raise InputError(f"--recogniser needs other packages: pip install {' '.join(missing)}")
    models = UserModels(load_function(flags.recogniser) if flags.recogniser else None)
    teacher = find_teacher(flags.teacher, flags.model)
    names = flags.voices.split(",") if flags.voices else teacher.voices
    if unknown := [name for name in names if name not in (teacher.voices or names)]:
        known = f"{nearest(unknown[0], teacher.voices)} (known: {listed(teacher.voices, 20)})"
        raise UsageError(f"--voices: {flags.teacher} has no voice {unknown[0]!r}{known}")
    if not names or (len(names) > 1 and not flags.voices):
        example = ",".join(teacher.voices[:20]) or "anna"
        raise UsageError(f"{flags.teacher}: give --voices, such as --voices {example}")
    config = TextConfig() if flags.language[:2] == "en" else TextConfig("none", "espeak")
    frontend = TextFrontend(config, flags.language)
    pool = read_pool(flags.texts, frontend, flags.exclude)
    every = read_pool(flags.every, frontend) if flags.every else []
    corpus.refuse_doubled_ids(names, [*every, *pool])
    sharing = names[:1] if flags.same_texts else names
    length = 60 * flags.minutes / SHORTEST_S if flags.minutes else inf
    taken = divide(pool, sharing, flags.seed, every, length=length, n_texts=flags.n_texts or inf)
    if (fewest := min(map(len, taken.values()))) < (flags.n_texts or 1):
        found = f"{flags.texts}: of {counted(len(pool), 'texts')}, a voice gets {fewest}"
        if not fewest:
            raise InputError(f"{found}; give more texts, or fewer voices")
        get_logger(__name__).warning("%s; give more texts, or a smaller --texts", found)
    voices = []
    for name in names:
        chosen = taken.get(name, taken[names[0]])
        clips = corpus.clips_of(name, every), corpus.clips_of(name, chosen)
        voices.append(corpus.VoiceTexts(name, *clips, flags.minutes))
    settings = {f"--{flag}": str(vars(flags)[flag]) for flag in _SAME}
    digests = {"TEXTS (or --exclude)": digest(pool), "--every": digest(every)}
    record = {
        "origin": {"spoken_by": flags.name or teacher.name, "licence": flags.licence or ""},
        "made_of": {"TEACHER": teacher.name, **settings, **digests},
    }
    recorder = corpus.ClipRecorder(teacher, flags.language, models, flags.out)
    corpus.write_corpus(voices, recorder, record, flags.num_workers)


if __name__ == "__main__":
    run(main)
