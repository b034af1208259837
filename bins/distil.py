"""Has another program speak texts as a corpus: arion distil TEACHER TEXTS OUT [flags]."""

from argparse import Namespace
from dataclasses import asdict
from math import inf

from bins._flags.values import COUNT, FILE, FUNCTION, INPUT, SEED, matching, number
from utils.cli import Parser, UsageError, run
from utils.errors import InputError, listed
from utils.files import user_path
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
    add("--voices", type=_VOICES.argument, metavar="LIST").help = """of the teacher: the speakers,
        among whom the texts are divided"""
    amount = parser.add_mutually_exclusive_group()
    amount.add_argument("--minutes", type=_MINUTES.argument, metavar="X", help="for each voice")
    amount.add_argument("--texts", dest="n_texts", type=COUNT.argument, metavar="N").help = """for
        each voice (default: all)"""
    add("--every", type=INPUT.argument, metavar="FILE", help="further texts, of every voice")
    add("--exclude", type=FILE.argument, metavar="FILE", help="ids or texts to leave out")
    add("--same_texts", action="store_true", help="for all voices")
    add("--language", default="en-us", metavar="CODE", help="of espeak-ng (default: en-us)")
    add("--model", metavar="NAME", help="of an endpoint")
    add("--name", help="of the teacher, for model cards (default: as it was given)")
    add("--licence", metavar="ID", help="of its speech, for model cards, such as apache-2.0")
    add("--recogniser", type=FUNCTION.argument, metavar="FUNCTION").help = """speech recogniser, as
        in stage 4, by which clips with wrong words are rejected"""
    add("--seed", type=SEED.argument, default=0, metavar="N", help="of the choice (default: 0)")
    add("--num_workers", type=COUNT.argument, default=n_cores(), metavar="N").help = """processes,
        or requests at a time (default: one per core)"""
    return parser.parse_args()


def main() -> None:
    """Chooses texts and has them spoken."""
    given = _arguments()

    from config.text import TextConfig
    from models.distil.corpus import Studio, VoiceTexts, write_corpus
    from models.distil.selection import SHORTEST_S, divide
    from models.distil.teachers import find_teacher
    from models.distil.texts import digest, read_pool
    from preprocessors.manifest import Origin
    from processors.metrics.recognition.user_models import load_function
    from processors.metrics.registry import METRICS
    from processors.text.frontend import TextFrontend
    from utils.logging import get_logger, setup_logging

    setup_logging()
    if given.recogniser and (missing := METRICS["wer"].missing()):
        raise InputError(f"--recogniser needs other packages: pip install {' '.join(missing)}")
    teacher = find_teacher(given.teacher, given.model)
    names = given.voices.split(",") if given.voices else teacher.voices
    known = teacher.voices or names
    if not names or not {*names} <= {*known} or (len(names) > 1 and not given.voices):
        of = f" of {listed(teacher.voices, 20)}" if teacher.voices else ""
        raise UsageError(f"{given.teacher} needs --voices{of}; found {given.voices}")
    config = TextConfig() if given.language[:2] == "en" else TextConfig("none", "espeak")
    frontend = TextFrontend(config, given.language)
    pool = read_pool(given.texts, frontend, given.exclude)
    every = read_pool(given.every, frontend) if given.every else []
    sharing = names[:1] if given.same_texts else names
    length = 60 * given.minutes / SHORTEST_S if given.minutes else inf
    taken = divide(pool, sharing, given.seed, every, length=length, n_texts=given.n_texts or inf)
    texts = [taken[sharing[n % len(sharing)]] for n in range(len(names))]
    voices = [VoiceTexts(*pair, every, given.minutes) for pair in zip(names, texts, strict=True)]
    recogniser = load_function(given.recogniser) if given.recogniser else None
    studio = Studio(teacher, given.language, recogniser, given.out)
    settings = {f"--{name}": str(vars(given)[name]) for name in _SAME}
    settings |= {"TEXTS (or --exclude)": digest(pool), "--every": digest(every)}
    origin = Origin(given.name or teacher.name, given.licence or teacher.licence)
    if not origin.licence:
        get_logger(__name__).warning("no --licence: model cards will say that it is unknown")
    record = {"origin": asdict(origin), "made_of": {"TEACHER": teacher.name, **settings}}
    write_corpus(voices, studio, record, given.num_workers)


if __name__ == "__main__":
    run(main)
