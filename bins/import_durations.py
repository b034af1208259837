"""Imports phone durations for stage 1: of other programs, or from the attention of a voice.

python -m bins.import_durations SOURCE --config FILE [--format FORMAT]
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from bins._flags.parsers import add_config_arguments, chosen_dataset
from processors.durations import ATTENTION_PATHS, IMPORT_FORMATS, LAYOUTS
from utils.cli import Parser, UsageError, check_at_least, run

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
    add("--max_bad_ratio", type=float).help = """largest share of utterances without durations
        (default: preprocess.max_bad_ratio)"""
    _add_file_flags(flags)
    given = flags.parse_args()
    if (given.hop_size is None) != (given.sample_rate is None):
        raise UsageError("--hop_size and --sample_rate go together")
    check_at_least(given, 1, "hop_size", "sample_rate")
    check_at_least(given, 0, "tolerance")
    if given.pitch_stats is not None and given.pitch is None:
        raise UsageError("--pitch_stats goes with --pitch")
    if given.max_bad_ratio is not None and not 0 <= given.max_bad_ratio <= 1:
        raise UsageError(f"--max_bad_ratio {given.max_bad_ratio:g}: expected a share, 0 to 1")
    return given


def _add_file_flags(flags: Parser) -> None:
    """Adds the flags that describe files, which a voice does not have."""
    add = flags.add_argument
    add("--name_pattern", default="", help="form of the file names, as in '{id}_phones'")
    add("--phone_tier", default="", help="TextGrids: name of the tier of phones (default: phones)")
    add("--word_tier", default="", help="TextGrids: name of the tier of words (default: words)")
    add("--names", choices=("source", "text"), default="source").help = """names of the phones:
        those of the source or, in order, of the text (default: source)"""
    add("--hop_size", type=int, help="frame counts: hop in samples (default: that of stage 1)")
    add("--sample_rate", type=int, help="frame counts: sample rate in Hz; needs --hop_size")
    add("--tokens", choices=LAYOUTS, default="all").help = """frame counts: the phones of stage 1
        that have one: all; no_start: without the first silence; no_edges: also without the last
        pause; no_pauses: no pauses (default: all)"""
    add("--end_token", action="store_true", help="frame counts: there is one more at the end")
    add("--phones_file", type=Path, help="file with the names of the tokens, lines of id|P1 P2 ...")
    add("--pitch", type=Path, metavar="DIR").help = """frame counts: pitch of the same tokens,
        <id>.pt or <id>.npy, in Hz or normalised, 0 where unvoiced; for preprocess.pitch_extractor
        imported"""
    add("--pitch_stats", type=Path, metavar="FILE").help = """the pitch is normalised by the mean
        and std (Hz) of this JSON file"""
    add("--tolerance", type=int, default=3).help = """surplus or missing frames that are corrected
        (default: 3)"""


def main() -> None:
    """Imports durations."""
    given = arguments()
    from processors.durations.importing import Interpretation, import_durations
    from processors.durations.tokens import FrameRate, find_pitch
    from utils.logging import setup_logging

    setup_logging()
    config, dataset = chosen_dataset(given)
    source = _source(given, config.preprocess, dataset)
    interpretation = Interpretation(
        given.tokens,
        given.end_token,
        given.phones_file,
        FrameRate(given.hop_size, given.sample_rate) if given.hop_size else None,
        given.tolerance,
        find_pitch(given.pitch, given.pitch_stats) if given.pitch else None,
        given.names,
    )
    import_durations(config, dataset, source, interpretation, given.output, given.max_bad_ratio)


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
        of_files = Parser("")
        _add_file_flags(of_files)
        for flag, default in vars(of_files.parse_args([])).items():
            if vars(given)[flag] != default:
                raise UsageError(f"--{flag} describes files, and {given.source} is a voice")
        check_prepared(preprocess, dataset, "tts")
        folder = processed_folder(preprocess, dataset)
        return attention_source(given.source, folder, given.path or "monotonic")
    if given.path is not None:
        raise UsageError(f"--path goes with a voice, and {given.source} holds files")
    tiers = Tiers(given.phone_tier, given.word_tier)
    return durations_in(Path(given.source), given.format, tiers, given.name_pattern)


if __name__ == "__main__":
    run(main)
