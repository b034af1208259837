"""Checks recordings before stage 1: python -m bins.check_data --config FILE [--dataset NAME]."""

from bins._flags.parsers import add_config_arguments
from bins._flags.values import COUNT
from utils.cli import Parser, print_text, run
from utils.parallel import n_cores


def main() -> None:
    """Checks the datasets of a config; the exit code is 1 if one has too many faults."""
    parser = Parser(
        "Reads the recordings, texts and alignment files of a configuration as stage 1 does, and "
        "lists what it would reject, what is odd, and the words it knows no pronunciation of. "
        "Writes nothing; computes no alignments. The exit code is 1 if there are more faults than "
        "stage 1 accepts."
    )
    add_config_arguments(parser, dataset="all of the configuration")
    processes = "processes (default: %(default)s)"
    parser.add_argument("--num_workers", type=COUNT.argument, default=n_cores(), help=processes)
    given = parser.parse_args()
    from models.base.registry import load_config
    from processors.extraction.checking import check_corpus
    from processors.extraction.plan import choose_dataset
    from utils.logging import setup_logging

    setup_logging()
    config = load_config(given.config, given.overrides)
    chosen = [choose_dataset(config, given.dataset)] if given.dataset else config.dataset
    passed = True
    for dataset in chosen:
        check = check_corpus(config, dataset, given.num_workers)
        print_text(f"{check.report()}{check.verdict}\n")
        passed = passed and check.passes
    if not passed:
        raise SystemExit(1)


if __name__ == "__main__":
    run(main)
