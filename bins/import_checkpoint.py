"""Imports a checkpoint of another project as an experiment.

python -m bins.import_checkpoint SOURCE TARGET
"""

from pathlib import Path

from utils.cli import Parser, run
from utils.logging import setup_logging


def main() -> None:
    """Converts SOURCE, a checkpoint of any known kind, to the experiment TARGET."""
    flags = Parser("Imports a checkpoint of another project as an experiment.")
    flags.add_argument("source", metavar="SOURCE", help="folder, file, or org/name[@revision]")
    flags.add_argument("target", metavar="TARGET", type=Path, help="folder to make")
    given = flags.parse_args()
    setup_logging()

    from models.checkpoint.publish import convert_to_experiment

    convert_to_experiment(given.source, given.target)


if __name__ == "__main__":
    run(main)
