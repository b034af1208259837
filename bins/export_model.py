"""Exports the files of an experiment that inference needs into a folder.

python -m bins.export_model EXPERIMENT TARGET [--weights TYPE] [--license ID]
"""

from bins._flags.parsers import program_arguments
from utils.cli import run
from utils.logging import setup_logging


def main() -> None:
    """Exports one experiment."""
    given = program_arguments(
        "export_model", "Exports the files of an experiment that inference needs into a folder."
    )
    setup_logging()

    from models.checkpoint.publish import export_experiment

    name = given.target.absolute().name
    export_experiment(
        given.experiment, given.target, name, licence=given.license, weights=given.weights
    )


if __name__ == "__main__":
    run(main)
