"""Exports an experiment for inference: python -m bins.export_model EXPERIMENT TARGET [flags]."""

from bins._flags.parsers import program_arguments
from utils.cli import run


def main() -> None:
    """Exports one experiment."""
    flags = program_arguments(
        "export_model", "Exports the files of an experiment that inference needs into a folder."
    )

    from models.checkpoint.publish import export_experiment

    name = flags.target.absolute().name
    export_experiment(
        flags.experiment, flags.target, name, licence=flags.license, weights=flags.weights
    )


if __name__ == "__main__":
    run(main)
