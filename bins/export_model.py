"""Exports the files of an experiment that inference needs into a folder.

python -m bins.export_model EXPERIMENT TARGET [--half] [--license ID]
"""

from pathlib import Path

from utils.cli import Parser, run
from utils.logging import setup_logging


def main() -> None:
    """Exports one experiment."""
    flags = Parser("Exports the files of an experiment that inference needs into a folder.")
    flags.add_argument("experiment", type=Path, metavar="EXPERIMENT").help = """its folder (the
        newest whole checkpoint is exported), or one checkpoint in it"""
    flags.add_argument("target", type=Path, metavar="TARGET", help="folder to make")
    flags.add_argument("--half", action="store_true", help="weights in 16 bits: half the size")
    flags.add_argument("--license", metavar="ID", help="licence of the weights, for the card")
    given = flags.parse_args()
    setup_logging()

    from models.checkpoint.publish import export

    name = given.target.absolute().name
    export(given.experiment, given.target, name, licence=given.license, half=given.half)


if __name__ == "__main__":
    run(main)
