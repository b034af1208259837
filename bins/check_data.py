"""Checks recordings before stage 1: python -m bins.check_data --config FILE [--dataset NAME]."""

from bins._flags.parsers import program_arguments
from utils.cli import print_text, run


def main() -> None:
    """Checks the datasets of a config; the exit code is 1 if one has too many faults."""
    flags = program_arguments("check_data")
    from models.base.registry import load_config
    from processors.extraction.checking import check_corpus
    from processors.extraction.plan import choose_dataset

    config = load_config(flags.config, flags.overrides)
    chosen = [choose_dataset(config, flags.dataset)] if flags.dataset else config.dataset
    passed = True
    for dataset in chosen:
        check = check_corpus(config, dataset, flags.num_workers)
        print_text(f"{check.report()}{check.verdict}\n")
        passed = passed and check.passes
    if not passed:
        raise SystemExit(1)


if __name__ == "__main__":
    run(main)
