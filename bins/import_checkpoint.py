"""Brings a checkpoint of another project into the form of an experiment of ours.

python -m bins.import_checkpoint SOURCE TARGET
"""

from pathlib import Path

from utils.cli import Parser, run
from utils.logging import setup_logging


def main() -> None:
    """Reads SOURCE, whatever known kind it is of, and writes TARGET."""
    flags = Parser("Brings a checkpoint of another project into the form of an experiment.")
    flags.add_argument("source", metavar="SOURCE", help="folder, file, or org/name[@revision]")
    flags.add_argument("target", metavar="TARGET", type=Path, help="folder to make")
    given = flags.parse_args()
    setup_logging()

    from models.checkpoint.conversion import convert_to_experiment

    convert_to_experiment(given.source, given.target)


if __name__ == "__main__":
    run(main)
