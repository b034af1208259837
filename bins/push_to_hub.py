"""Publishes an experiment on the Hugging Face Hub: python -m bins.push_to_hub EXPERIMENT org/name.

One commit holds weights, config, assets, scores and a model card, but no training state.
"""

from bins._flags.parsers import program_arguments
from utils.cli import run


def main() -> None:
    """Publishes one experiment."""
    flags = program_arguments("push_to_hub")
    from models.checkpoint.publish import publish
    from utils.hub import Repository

    publish(
        flags.experiment,
        Repository(flags.repository, flags.revision, flags.private, flags.message),
        licence=flags.license,
        with_discriminators=flags.with_discriminators,
        dry_run=flags.dry_run,
    )


if __name__ == "__main__":
    run(main)
