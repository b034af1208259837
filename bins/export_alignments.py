"""Exports alignments of phones and words, in formats that other programs read.

Recordings that stage 1 aligned:
    python -m bins.export_alignments --config FILE --format textgrid --output DIR
Recordings that a voice with aligner `learned` aligned in training:
    python -m bins.export_alignments --config FILE --infer_expt_dir VOICE --format textgrid ...
Speech of stage 3:
    python -m bins.export_alignments --infer_output_dir DIR --format textgrid
"""

import argparse

from bins._flags.parsers import chosen_dataset, program_arguments
from utils.cli import UsageError, run


def arguments() -> argparse.Namespace:
    """Parses and checks the flags."""
    given = program_arguments(
        "export_alignments",
        "Exports alignments: of recordings after stage 1, or of speech after stage 3.",
    )
    if (given.config is None) == (given.infer_output_dir is None):
        raise UsageError("give --config or --infer_output_dir, and not both")
    if given.config is None and (given.dataset or given.overrides or given.infer_expt_dir):
        raise UsageError("--dataset, --infer_expt_dir and --set go with --config")
    if given.config is not None and given.output is None:
        raise UsageError("--config needs --output")
    return given


def main() -> None:
    """Exports alignments."""
    given = arguments()
    from utils.logging import get_logger, setup_logging

    setup_logging()
    if given.config is None:
        from models.synthesizer.runs.metadata import export_speech

        n = export_speech(given.infer_output_dir, given.format, given.output)
        get_logger(__name__).info("alignments as %s: %d in %s", given.format, n, given.output)
        return

    from processors.dataset.store import processed_folder
    from processors.durations.writing import export_store
    from processors.extraction.fingerprint import check_prepared

    config, dataset = chosen_dataset(given)
    check_prepared(config.preprocess, dataset, "tts")
    folder = processed_folder(config.preprocess, dataset)
    find = None
    if given.infer_expt_dir is not None:
        from models.teacher_forcing.durations import duration_finder

        find = duration_finder(given.infer_expt_dir, folder)
    export_store(config.preprocess, folder, given.format, given.output, find)


if __name__ == "__main__":
    run(main)
