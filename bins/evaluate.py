"""Stage 4: scores what stage 3 wrote, beside the recordings of the same utterances."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from utils.cli import Parser, UsageError, run
from utils.inference_flags import add_model_arguments, check_model_arguments
from utils.logging import setup_logging
from utils.parallel import n_cores


def parser() -> Parser:
    """The flags of stage 4."""
    flags = Parser(
        "Scores what stage 3 wrote, beside the recordings of the same utterances: prints a table "
        "and writes scores.json, and scores.jsonl with a line for each utterance."
    )
    add_model_arguments(flags)
    add = flags.add_argument
    add("--infer_output_dir", type=Path, help="where the wavs are; default: result/ in the model's")
    add(
        "--infer_mode",
        choices=("single", "batch"),
        default="batch",
        help="single: the files in its folder single/; batch (default): the others",
    )
    add("--infer_dataset", help="only files of this data set")
    add(
        "--infer_testing_set",
        choices=("train", "test", "golden_test"),
        help="only files of this split, and every one of it",
    )
    add(
        "--recordings",
        type=Path,
        help="folder of recordings named by id; default: those of stage 1",
    )
    add("--metrics", default="all", help="names, as in mel_l1,pesq; default: all that can be")
    add("--num_workers", type=int, default=n_cores(), help="processes (default: %(default)s)")
    return flags


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """The flags of the command line, or these, once they go together.

    Raises:
        UsageError: If they do not; the message names them.
    """
    given = parser().parse_args(words)
    check_model_arguments(given)
    if given.infer_expt_dir is None and given.config is None:
        raise UsageError("give --infer_expt_dir, or --config: recordings and mel are as it says")
    if given.infer_expt_dir is None and given.name is None and given.infer_output_dir is None:
        raise UsageError("give --infer_expt_dir, --name or --infer_output_dir: what is scored?")
    if given.infer_testing_set is not None and given.infer_dataset is None:
        raise UsageError("--infer_testing_set needs --infer_dataset")
    if given.num_workers < 1:
        raise UsageError(f"--num_workers {given.num_workers}: expected 1 or more")
    return given


def main() -> None:
    """Runs stage 4."""
    given = arguments()
    setup_logging()

    from models import evaluation
    from models.scores import table_of
    from models.speaking import experiment_of

    output, overrides, recordings = given.infer_output_dir, given.overrides, given.recordings
    if given.infer_expt_dir is None and given.name is None:
        place = evaluation.place_of_config(given.config, output, overrides, recordings)
    else:
        reference = given.infer_expt_dir or experiment_of(given.config, given.name, overrides)
        place = evaluation.place_of_model(reference, output, overrides, recordings)
    if given.infer_mode == "single":
        place = place._replace(folder=place.folder / "single")
    selection = evaluation.Selection(
        tuple(given.metrics.split(",")), given.infer_dataset, given.infer_testing_set
    )
    report = evaluation.evaluate(place, selection, given.num_workers)
    sys.stdout.write(table_of(report.scores))


if __name__ == "__main__":
    run(main)
