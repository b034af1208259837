"""Imports a checkpoint of another project: python -m bins.import_checkpoint SOURCE TARGET."""

from bins._flags.parsers import program_arguments
from utils.cli import run


def main() -> None:
    """Converts SOURCE, a checkpoint of any known kind, to the experiment TARGET."""
    flags = program_arguments("import_checkpoint")
    from models.checkpoint.publish import convert_to_experiment

    convert_to_experiment(flags.source, flags.target)


if __name__ == "__main__":
    run(main)
