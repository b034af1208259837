"""Makes processed data of a dump of TensorFlowTTS: ... --config FILE --rootdir DUMP."""

import argparse
from pathlib import Path

from bins._flags.parsers import add_config_arguments
from utils.cli import Parser, check_at_least, run


def parser() -> Parser:
    """Builds the parser."""
    flags = Parser(
        "Makes the processed data of stage 1 from a dump of TensorFlowTTS, which is only read;"
        " stage 2 trains on them."
    )
    add_config_arguments(flags)
    add = flags.add_argument
    add("--rootdir", type=Path, required=True, help="folder of the dump")
    add(
        "--durations",
        type=Path,
        help="folder with <id>-durations.npy in any split; default: train/duration and"
        " valid/duration of the dump",
    )
    add("--n_cpus", type=int, default=4, help="processes (default: %(default)s)")
    add("--dataset", help="dataset; default: the only one of the configuration")
    return flags


def arguments() -> argparse.Namespace:
    """Parses and checks the flags."""
    given = parser().parse_args()
    check_at_least(given, 1, "n_cpus")
    return given


def main() -> None:
    """Imports a dump."""
    given = arguments()
    from models.base.registry import load_config
    from processors.extraction.plan import choose_dataset
    from processors.tensorflowtts.importing import ImportOptions, import_dump
    from utils.logging import setup_logging

    setup_logging()
    config = load_config(given.config, given.overrides)
    options = ImportOptions(given.rootdir, given.durations, given.n_cpus)
    import_dump(config, choose_dataset(config, given.dataset), options)


if __name__ == "__main__":
    run(main)
