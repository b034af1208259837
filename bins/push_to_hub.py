"""Publishes an experiment on the Hugging Face Hub: python -m bins.push_to_hub EXPERIMENT org/name.

One commit contains weights in safetensors, config, mel definition, vocabulary, statistics,
speakers, lexicon, scores and a model card, but no training state.
"""

import argparse
from pathlib import Path

from utils.cli import Parser, run
from utils.logging import setup_logging


def main() -> None:
    """Publishes one experiment."""
    given = _arguments()
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


def _arguments() -> argparse.Namespace:
    parser = Parser("Publishes an experiment on the Hugging Face Hub.")
    parser.add_argument(
        "experiment",
        type=Path,
        metavar="EXPERIMENT",
        help="its folder (the newest whole checkpoint is published), or one checkpoint in it",
    )
    parser.add_argument(
        "repository", metavar="org/name", help="repository on the Hub; made if it is missing"
    )
    parser.add_argument(
        "--private", action="store_true", help="make a private repository; refuse a public one"
    )
    parser.add_argument(
        "--license",
        metavar="ID",
        help="licence of the weights, as on the Hub: cc-by-4.0, mit, ... (default: unknown)",
    )
    parser.add_argument(
        "--revision",
        default="main",
        metavar="BRANCH",
        help="branch to write to; made if it is missing (default: %(default)s)",
    )
    parser.add_argument(
        "--message",
        default="Publish an experiment",
        help="message of the commit (default: %(default)s)",
    )
    parser.add_argument(
        "--with_discriminators",
        action="store_true",
        help="also publish the networks that only training needs, so that others can fine-tune",
    )
    parser.add_argument("--dry_run", action="store_true", help="list the files and send nothing")
    return parser.parse_args()


if __name__ == "__main__":
    run(main)
