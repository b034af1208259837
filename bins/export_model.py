"""Exports the files of an experiment that inference needs into a folder.

python -m bins.export_model EXPERIMENT TARGET [--weights TYPE] [--license ID]
"""

from pathlib import Path

from bins._flags.values import choice
from utils.cli import Parser, run
from utils.logging import setup_logging


def main() -> None:
    """Exports one experiment."""
    flags = Parser("Exports the files of an experiment that inference needs into a folder.")
    flags.add_argument("experiment", type=Path, metavar="EXPERIMENT").help = """its folder (the
        newest whole checkpoint is exported), or one checkpoint in it"""
    flags.add_argument("target", type=Path, metavar="TARGET", help="folder to make")
    weights = choice("fp16", "int8")
    flags.add_argument("--weights", type=weights.argument, metavar=weights.metavar).help = """how
        weights are stored: fp16 (half the size) or int8 (a quarter; default: as they are)"""
    flags.add_argument("--license", metavar="ID", help="licence of the weights, for the card")
    given = flags.parse_args()
    setup_logging()

    from models.checkpoint.publish import export

    name = given.target.absolute().name
    export(given.experiment, given.target, name, licence=given.license, weights=given.weights)


if __name__ == "__main__":
    run(main)
