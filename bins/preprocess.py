"""Stage 1: python -m bins.preprocess --config FILE [--set KEY=VALUE] [--from_acoustic MODEL]."""

import argparse

from utils.cli import Parser, add_config_arguments, add_task_argument, check_at_least, run
from utils.parallel import n_cores


def main() -> None:
    """Prepares every dataset of a config."""
    arguments = _arguments()
    # after the flags are read: help and mistakes in them need not wait for PyTorch
    from models.base.registry import load_config
    from processors.extraction.run import prepare_datasets
    from utils.logging import setup_logging

    setup_logging()
    config = load_config(arguments.config, arguments.overrides, arguments.task)
    if arguments.from_acoustic is None:
        prepare_datasets(config, arguments.num_workers)
    else:
        from models.teacher_forcing.predicted_mels import prepare_from_acoustic

        prepare_from_acoustic(config, arguments.from_acoustic, arguments.num_workers)


def _arguments() -> argparse.Namespace:
    parser = Parser(
        "Stage 1: extracts features and statistics from the datasets of a configuration. Finished "
        "work is kept: run it again after an interruption or a change."
    )
    add_config_arguments(parser)
    add_task_argument(parser)
    parser.add_argument(
        "--num_workers",
        type=int,
        default=n_cores(),
        help="processes; with --from_acoustic, threads (default: %(default)s)",
    )
    parser.add_argument(
        "--from_acoustic",
        help="of a vocoder: train on the mels that this acoustic model (an experiment, a checkpoint"
        " or a name on the Hub) predicts for its own data, and not on those of the recordings",
    )
    arguments = parser.parse_args()
    check_at_least(arguments, 1, "num_workers")
    return arguments


if __name__ == "__main__":
    run(main)
