"""Imports phone durations: python -m bins.import_durations SOURCE --config FILE [flags]."""

from pathlib import Path

from bins._flags.parsers import chosen_dataset, program_arguments
from bins._flags.programs import ATTENTION
from utils.cli import UsageError, run


def main() -> None:
    """Imports durations: from files, or from a voice that reads the features of a dataset."""
    flags = program_arguments("import_durations")
    if flags.pitch_stats is not None and flags.pitch is None:
        raise UsageError("--pitch_stats goes with --pitch")
    from models.teacher_forcing.durations import attention_source, is_voice
    from processors.alignment.textgrid import Tiers
    from processors.dataset.store import processed_folder
    from processors.durations import importing, sources
    from processors.extraction.fingerprint import check_prepared

    config, dataset = chosen_dataset(flags)
    if flags.format == ATTENTION or (flags.format is None and is_voice(flags.source)):
        for flag in ("phone_tier", "word_tier", "phones_file", "pitch"):
            if vars(flags)[flag]:
                raise UsageError(f"--{flag} describes files, and {flags.source} is a voice")
        check_prepared(config.preprocess, dataset, "tts")
        folder = processed_folder(config.preprocess, dataset)
        source = attention_source(flags.source, folder, flags.path or "monotonic")
    elif flags.path is not None:
        raise UsageError(f"--path goes with a voice, and {flags.source} holds files")
    else:
        tiers = Tiers(flags.phone_tier, flags.word_tier)
        source = sources.durations_in(Path(flags.source), flags.format, tiers)
    pitch = sources.find_pitch(flags.pitch, flags.pitch_stats) if flags.pitch else None
    options = {"phones_file": flags.phones_file, "pitch": pitch, "output": flags.output}
    importing.import_durations(config, dataset, source, **options)


if __name__ == "__main__":
    run(main)
