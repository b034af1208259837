"""Cuts long recordings into clips with their texts: arion corpus RECORDINGS OUT [flags]."""

from datetime import datetime
from pathlib import Path

from bins._flags.parsers import program_arguments
from utils.cli import run
from utils.errors import InputError


def main() -> None:
    """Reads the texts, and writes the corpus."""
    flags = program_arguments("corpus")
    from config.text import is_english, text_config
    from models.programs.corpus.texts import TEXT_SUFFIXES, read_source
    from models.programs.corpus.writing import CorpusWriter, list_recordings
    from processors.metrics.recognition.user_models import load_function
    from processors.text.frontend import TextFrontend
    from utils.files import sha256_of, size_and_time

    recogniser = load_function(flags.recogniser) if flags.recogniser else None
    recordings = list_recordings(flags.recordings, flags.out)
    texts: dict[str, Path] = {}
    for recording in recordings:
        same_name = map(recording.audio.with_suffix, TEXT_SUFFIXES)
        if path := flags.text or next(filter(Path.is_file, same_name), None):
            texts[recording.id] = path
    if recogniser is None and (lacking := [r.audio.name for r in recordings if r.id not in texts]):
        fault = f"{lacking[0]} has no text; give --text, a text next to it, or --recogniser"
        raise InputError(f"{flags.recordings}: {fault}")
    if recogniser is None and not is_english(flags.language):
        remedy = "give --recogniser module:function (docs/corpus.md has an example)"
        fault = "the built-in recogniser knows English only"
        raise InputError(f"--language {flags.language}: {fault}; {remedy}")
    frontend = TextFrontend(text_config(flags.language), flags.language, "skip")
    source_of = {path: read_source(path, frontend) for path in {*texts.values()}}
    made_of = {f"text {path.name}": f"SHA-256 {sha256_of(path)[:16]}" for path in source_of}
    for recording in recordings:
        size, time_ns = size_and_time(recording.audio)
        contents = f"{size} bytes of {datetime.fromtimestamp(time_ns / 1e9)}"
        made_of[f"recording {recording.id}"] = contents
    made_of |= {"--language": flags.language, "--recogniser": str(flags.recogniser)}
    sources = {id: source_of[path] for id, path in texts.items()}
    writer = CorpusWriter(flags.out, flags.language, sources, recogniser, flags.num_workers)
    writer.write(recordings, made_of)


if __name__ == "__main__":
    run(main)
