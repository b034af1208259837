"""Exports an experiment for inference: python -m bins.export_model EXPERIMENT TARGET [flags]."""

from bins._flags.parsers import program_arguments
from utils.cli import run


def main() -> None:
    """Exports one experiment."""
    flags = program_arguments("export_model")
    from models.checkpoint.publish import export_experiment

    target, name = flags.target, flags.target.absolute().name
    export_experiment(flags.experiment, target, name, licence=flags.license, weights=flags.weights)


if __name__ == "__main__":
    run(main)
