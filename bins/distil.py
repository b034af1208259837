"""Has another program speak texts as a corpus: arion distil TEACHER TEXTS OUT [flags]."""

from math import inf

from bins._flags.parsers import program_arguments
from utils.cli import UsageError, run
from utils.errors import InputError, counted, listed, nearest
from utils.logging import get_logger

_SAME = ("voices", "same_texts", "seed", "language", "recogniser")  # in all runs into a folder


def main() -> None:
    """Chooses texts and has them spoken."""
    flags = program_arguments("distil")
    from config.text import text_config
    from models.programs.distil import corpus
    from models.programs.distil.teachers import find_teacher
    from models.programs.distil.texts import SHORTEST_S, digest, divide, read_pool
    from processors.metrics.recognition.user_models import UserModels, load_function
    from processors.metrics.records import missing_packages
    from processors.metrics.registry import METRICS
    from processors.text.frontend import TextFrontend

    if flags.recogniser and (missing := missing_packages(METRICS["wer"].packages)):
        raise InputError(f"--recogniser needs other packages: pip install {' '.join(missing)}")
    models = UserModels(load_function(flags.recogniser) if flags.recogniser else None)
    teacher = find_teacher(flags.teacher, flags.model)
    names = flags.voices.split(",") if flags.voices else teacher.voices
    for name in names if teacher.voices else ():
        if name not in teacher.voices:
            choices = f"{nearest(name, teacher.voices)} (known: {listed(teacher.voices, 20)})"
            raise UsageError(f"--voices: {flags.teacher} has no voice {name!r}{choices}")
    if not names or (len(names) > 1 and not flags.voices):
        example = ",".join(teacher.voices[:20]) or "anna"
        raise UsageError(f"{flags.teacher}: give --voices, such as --voices {example}")
    frontend = TextFrontend(text_config(flags.language), flags.language)
    pool = read_pool(flags.texts, frontend, flags.exclude)
    every = read_pool(flags.every, frontend) if flags.every else []
    corpus.refuse_doubled_ids(names, [*every, *pool])
    sharing = names[:1] if flags.same_texts else names
    length = 60 * flags.minutes / SHORTEST_S if flags.minutes else inf
    taken = divide(pool, sharing, flags.seed, every, length=length, n_texts=flags.n_texts or inf)
    if (fewest := min(map(len, taken.values()))) < (flags.n_texts or 1):
        counts = f"{flags.texts}: of {counted(len(pool), 'texts')}, a voice gets {fewest}"
        if not fewest:
            raise InputError(f"{counts}; give more texts, or fewer voices")
        get_logger(__name__).warning("%s; give more texts, or a smaller --texts", counts)
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
