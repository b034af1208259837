"""Exports alignments of phones and words, in formats that other programs read.

python -m bins.export_alignments --format textgrid, with --config FILE --output DIR for recordings
(and --infer_expt_dir VOICE, if that aligned them), or --infer_output_dir DIR for speech of stage 3
"""

from bins._flags.parsers import chosen_dataset, program_arguments
from utils.cli import UsageError, run


def main() -> None:
    """Exports alignments."""
    flags = program_arguments("export_alignments")
    if (flags.config is None) == (flags.infer_output_dir is None):
        raise UsageError("give --config or --infer_output_dir, and not both")
    if flags.config is None and (flags.dataset or flags.overrides or flags.infer_expt_dir):
        raise UsageError("--dataset, --infer_expt_dir and --set go with --config")
    if flags.config is not None and flags.output is None:
        raise UsageError("--config needs --output")
    from utils.logging import get_logger

    if flags.config is None:
        from models.synthesizer.runs.results import export_speech

        n = export_speech(flags.infer_output_dir, flags.format, flags.output)
        get_logger(__name__).info("alignments as %s: %d in %s", flags.format, n, flags.output)
        return

    from processors.dataset.store import processed_folder
    from processors.durations.writing import export_store
    from processors.extraction.fingerprint import check_prepared

    config, dataset = chosen_dataset(flags)
    check_prepared(config.preprocess, dataset, "tts")
    folder = processed_folder(config.preprocess, dataset)
    find = None
    if flags.infer_expt_dir is not None:
        from models.teacher_forcing.durations import duration_finder

        find = duration_finder(flags.infer_expt_dir, folder)
    export_store(config.preprocess, folder, flags.format, flags.output, find)


if __name__ == "__main__":
    run(main)
