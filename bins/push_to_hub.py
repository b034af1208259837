"""Publishes an experiment on the Hugging Face Hub: python -m bins.push_to_hub EXPERIMENT org/name.

One commit contains weights in safetensors, config, mel definition, vocabulary, statistics,
speakers, lexicon, scores and a model card, but no training state.
"""

from pathlib import Path

from utils.cli import Parser, run
from utils.logging import setup_logging


def main() -> None:
    """Publishes one experiment."""
    parser = Parser("Publishes an experiment on the Hugging Face Hub.")
    add = parser.add_argument
    add("experiment", type=Path, metavar="EXPERIMENT").help = """its folder (the newest whole
        checkpoint is published), or one checkpoint in it"""
    add("repository", metavar="org/name", help="repository on the Hub; made if it is missing")
    add("--private", action="store_true", help="make a private repository; refuse a public one")
    add("--license", metavar="ID").help = """licence of the weights, as on the Hub: cc-by-4.0, mit,
        ... (default: unknown)"""
    add("--revision", default="main", metavar="BRANCH").help = """branch to write to; made if it is
        missing (default: %(default)s)"""
    add("--message", default="Publish an experiment").help = """message of the commit (default:
        %(default)s)"""
    add("--with_discriminators", action="store_true").help = """also publish the networks that only
        training needs, so that others can fine-tune"""
    add("--dry_run", action="store_true", help="list the files and send nothing")
    given = parser.parse_args()
    setup_logging()

    from models.checkpoint.publish import publish
    from utils.hub import Target

    publish(
        given.experiment,
        Target(given.repository, given.revision, given.private, given.message),
        licence=given.license,
        with_discriminators=given.with_discriminators,
        dry_run=given.dry_run,
    )


if __name__ == "__main__":
    run(main)
