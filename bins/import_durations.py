"""Imports phone durations for stage 1: of other programs, or from the attention of a voice.

python -m bins.import_durations SOURCE --config FILE [--format FORMAT]
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from bins._flags.parsers import add_config_arguments, chosen_dataset
from processors.durations import ATTENTION_PATHS, IMPORT_FORMATS
from utils.cli import Parser, UsageError, run

if TYPE_CHECKING:
    from config.preprocess import PreprocessConfig
    from processors.durations.sources import DurationSource


ATTENTION = "attention"


def arguments() -> argparse.Namespace:
    """Parses and checks the flags."""
    flags = Parser("Imports phone durations for stage 1: of other programs, or of a Tacotron 2.")
    add_config_arguments(flags)
    add = flags.add_argument
    add("source", metavar="SOURCE").help = """folder or file with durations; or a voice that aligns
        by attention: an experiment, a checkpoint, or a name on the Hub. It is only read"""
    add("--format", choices=(*IMPORT_FORMATS, ATTENTION)).help = """default: found by the suffixes
        of the files; attention for an experiment or a name on the Hub"""
    add("--path", choices=ATTENTION_PATHS).help = """attention: the most likely monotonic alignment,
        or the phone of the largest weight in each frame, as NVIDIA's FastPitch 1.0 (default:
        monotonic)"""
    add("--output", type=Path).help = """folder to make; default: preprocess.imported_dir, or
        <dataset>/alignments"""
    add("--phone_tier", default="", help="TextGrids: name of the tier of phones (default: phones)")
    add("--word_tier", default="", help="TextGrids: name of the tier of words (default: words)")
    add("--phones_file", type=Path).help = """frame counts: names of the tokens, lines of id|P1 P2
        ...; default: the phones of stage 1"""
    add("--pitch", type=Path, metavar="DIR").help = """frame counts: pitch of the phones of stage 1,
        <id>.pt or <id>.npy, in Hz or normalised, 0 where unvoiced; for preprocess.pitch_extractor
        imported"""
    add("--pitch_stats", type=Path, metavar="FILE").help = """the pitch is normalised by the mean
        and std (Hz) of this JSON file"""
    given = flags.parse_args()
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
