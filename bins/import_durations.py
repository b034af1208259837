"""Imports phone durations for stage 1: of other programs, or from the attention of a voice.

python -m bins.import_durations SOURCE --config FILE [--format FORMAT]
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from bins._flags.parsers import chosen_dataset, program_arguments
from bins._flags.programs import ATTENTION
from utils.cli import UsageError, run

if TYPE_CHECKING:
    from config.preprocess import PreprocessConfig
    from processors.durations.sources import DurationSource


def arguments() -> argparse.Namespace:
    """Parses and checks the flags."""
    given = program_arguments(
        "import_durations",
        "Imports phone durations for stage 1: of other programs, or of a Tacotron 2.",
    )
    if given.pitch_stats is not None and given.pitch is None:
        raise UsageError("--pitch_stats goes with --pitch")
    return given


def main() -> None:
    """Imports durations."""
    given = arguments()
    from processors.durations.importing import import_durations
    from processors.durations.tokens import find_pitch
    from utils.logging import setup_logging

    setup_logging()
    config, dataset = chosen_dataset(given)
    source = _source(given, config.preprocess, dataset)
    pitch = find_pitch(given.pitch, given.pitch_stats) if given.pitch else None
    options = {"phones_file": given.phones_file, "pitch": pitch, "output": given.output}
    import_durations(config, dataset, source, **options)


def _source(
    given: argparse.Namespace, preprocess: "PreprocessConfig", dataset: str
) -> "DurationSource":
    """Files of durations, or a voice that reads the features of a dataset."""
    from models.teacher_forcing.durations import attention_source, is_voice
    from processors.alignment.textgrid import Tiers
    from processors.dataset.store import processed_folder
    from processors.durations.sources import durations_in
    from processors.extraction.fingerprint import check_prepared

    if given.format == ATTENTION or (given.format is None and is_voice(given.source)):
        for flag in ("phone_tier", "word_tier", "phones_file", "pitch"):
            if vars(given)[flag]:
                raise UsageError(f"--{flag} describes files, and {given.source} is a voice")
        check_prepared(preprocess, dataset, "tts")
        folder = processed_folder(preprocess, dataset)
        return attention_source(given.source, folder, given.path or "monotonic")
    if given.path is not None:
        raise UsageError(f"--path goes with a voice, and {given.source} holds files")
    return durations_in(Path(given.source), given.format, Tiers(given.phone_tier, given.word_tier))


if __name__ == "__main__":
    run(main)
