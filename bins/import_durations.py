"""Imports phone durations of other programs for stage 1.

python -m bins.import_durations SOURCE --config FILE [--format FORMAT]
"""

import argparse
from pathlib import Path

from processors.durations import IMPORT_FORMATS, LAYOUTS
from utils.cli import Parser, UsageError, add_config_arguments, run


def parser() -> Parser:
    """Builds the parser."""
    flags = Parser("Imports phone durations of other programs for stage 1.")
    add_config_arguments(flags)
    add = flags.add_argument
    add("source", metavar="SOURCE", type=Path, help="folder or file; it is only read")
    add("--format", choices=IMPORT_FORMATS, help="default: found by the suffixes of the files")
    add("--dataset", help="data set of the durations; default: the only one of the configuration")
    add(
        "--output",
        type=Path,
        help="folder to make; default: preprocess.imported_dir, or <data set>/alignments",
    )
    add("--name_pattern", default="", help="form of the file names, as in '{id}_phones'")
    add("--phone_tier", default="", help="TextGrids: name of the tier of phones (default: phones)")
    add("--word_tier", default="", help="TextGrids: name of the tier of words (default: words)")
    add(
        "--names",
        choices=("source", "text"),
        default="source",
        help="names of the phones: those of the source or, in order, of the text (default: source)",
    )
    add("--hop_size", type=int, help="frame counts: hop in samples; default: from the recordings")
    add("--sample_rate", type=int, help="frame counts: sample rate in Hz; needs --hop_size")
    add(
        "--tokens",
        choices=LAYOUTS,
        default="all",
        help="frame counts: the phones of stage 1 that have one: all; no_start: without the first"
        " silence; no_edges: also without the last pause; no_pauses: no pauses (default: all)",
    )
    add(
        "--end_token",
        action="store_true",
        help="frame counts: the source has one more token at the end",
    )
    add("--phones_file", type=Path, help="file with the names of the tokens, lines of id|P1 P2 ...")
    add(
        "--tolerance",
        type=int,
        default=3,
        help="surplus or missing frames that are corrected (default: 3)",
    )
    add(
        "--max_bad_ratio",
        type=float,
        help="largest share of utterances without durations (default: preprocess.max_bad_ratio)",
    )
    return flags


def arguments() -> argparse.Namespace:
    """Parses and checks the flags.

    Raises:
        UsageError: If they contradict each other; the message names them.
    """
    given = parser().parse_args()
    if (given.hop_size is None) != (given.sample_rate is None):
        raise UsageError("--hop_size and --sample_rate go together")
    for name, least in (("hop_size", 1), ("sample_rate", 1), ("tolerance", 0)):
        value = getattr(given, name)
        if value is not None and value < least:
            raise UsageError(f"--{name} {value}: expected {least} or more")
    if given.max_bad_ratio is not None and not 0 <= given.max_bad_ratio <= 1:
        raise UsageError(f"--max_bad_ratio {given.max_bad_ratio:g}: expected a share, 0 to 1")
    return given


def main() -> None:
    """Imports durations."""
    given = arguments()
    from models.base.registry import load_config
    from processors.alignment.textgrid import Tiers
    from processors.durations.fitting import Interpretation
    from processors.durations.formats import Source
    from processors.durations.frames import FrameRate
    from processors.durations.importing import import_durations
    from processors.extraction.plan import choose_dataset
    from utils.logging import setup_logging

    setup_logging()
    config = load_config(given.config, given.overrides)
    source = Source(
        given.source, given.format, Tiers(given.phone_tier, given.word_tier), given.name_pattern
    )
    interpretation = Interpretation(
        given.tokens,
        given.end_token,
        given.phones_file,
        FrameRate(given.hop_size, given.sample_rate) if given.hop_size else None,
        given.tolerance,
        given.names,
    )
    dataset = choose_dataset(config, given.dataset)
    import_durations(config, dataset, source, interpretation, given.output, given.max_bad_ratio)


if __name__ == "__main__":
    run(main)
