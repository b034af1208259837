"""Imports phone durations: python -m bins.import_durations SOURCE --config FILE [flags]."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from bins._flags.parsers import chosen_dataset, program_arguments
from bins._flags.programs import ATTENTION
from utils.cli import UsageError, run

if TYPE_CHECKING:
    from config.preprocess import PreprocessConfig
    from processors.durations.sources import DurationSource


def main() -> None:
    """Imports durations."""
    flags = program_arguments("import_durations")
    if flags.pitch_stats is not None and flags.pitch is None:
        raise UsageError("--pitch_stats goes with --pitch")
    from processors.durations.importing import import_durations
    from processors.durations.sources import find_pitch

    config, dataset = chosen_dataset(flags)
    source = _source(flags, config.preprocess, dataset)
    pitch = find_pitch(flags.pitch, flags.pitch_stats) if flags.pitch else None
    options = {"phones_file": flags.phones_file, "pitch": pitch, "output": flags.output}
    import_durations(config, dataset, source, **options)


def _source(
    flags: argparse.Namespace, preprocess: "PreprocessConfig", dataset: str
) -> "DurationSource":
    """Returns files of durations, or a voice that reads the features of a dataset."""
    from models.teacher_forcing.durations import attention_source, is_voice
    from processors.alignment.textgrid import Tiers
    from processors.dataset.store import processed_folder
    from processors.durations.sources import durations_in
    from processors.extraction.fingerprint import check_prepared

    if flags.format == ATTENTION or (flags.format is None and is_voice(flags.source)):
        for flag in ("phone_tier", "word_tier", "phones_file", "pitch"):
            if vars(flags)[flag]:
                raise UsageError(f"--{flag} describes files, and {flags.source} is a voice")
        check_prepared(preprocess, dataset, "tts")
        folder = processed_folder(preprocess, dataset)
        return attention_source(flags.source, folder, flags.path or "monotonic")
    if flags.path is not None:
        raise UsageError(f"--path goes with a voice, and {flags.source} holds files")
    return durations_in(Path(flags.source), flags.format, Tiers(flags.phone_tier, flags.word_tier))


if __name__ == "__main__":
    run(main)
