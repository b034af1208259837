"""The flags of stages 3 and 4 that acoustic models and vocoders share."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from utils.cli import UsageError, add_config_arguments

_BATCH = ("infer_dataset", "infer_testing_set")


def add_inference_arguments(parser: argparse.ArgumentParser, single: str, batch: str) -> None:
    """Adds the flags of both modes.

    Args:
        parser: Takes them.
        single: What mode `single` does, for the help.
        batch: What mode `batch` does.
    """
    add_model_arguments(parser)
    add = parser.add_argument
    add(
        "--infer_mode",
        choices=("single", "batch"),
        required=True,
        help=f"single: {single}; batch: {batch}",
    )
    add("--infer_dataset", help="batch: a data set that stage 1 has prepared")
    add("--infer_testing_set", choices=("train", "test", "golden_test"), help="batch: its split")
    add(
        "--infer_output_dir",
        type=Path,
        help="folder of the wavs; default: result/ in that of the model",
    )
    add(
        "--overwrite",
        action="store_true",
        help="repeat finished wavs of the same model and settings; default: skip them",
    )


def add_model_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the flags that name an experiment: --infer_expt_dir, or --config, --name and --set."""
    add_config_arguments(parser, required=False)
    parser.add_argument("--name", help="with --config: the experiment <log_dir>/<name>")
    parser.add_argument(
        "--infer_expt_dir", help="experiment, a checkpoint in it, or org/name[@revision]"
    )


def check_inference_arguments(given: argparse.Namespace, single: Sequence[str]) -> None:
    """Makes sure that the flags go together.

    Args:
        given: What was parsed.
        single: Flags of mode `single`, without dashes; exactly one of them is needed there.

    Raises:
        UsageError: If they do not; the message names the flags.
    """
    used = {name for name, value in vars(given).items() if value is not None}
    required, foreign = (_BATCH, single) if given.infer_mode == "batch" else ((), _BATCH)
    for name in foreign:
        if name in used:
            raise UsageError(f"--{name} and --infer_mode {given.infer_mode} exclude each other")
    for name in required:
        if name not in used:
            raise UsageError(f"--infer_mode {given.infer_mode} needs --{name}")
    if given.infer_mode == "single" and len(used.intersection(single)) != 1:
        choice = " and ".join(f"--{name}" for name in single)
        raise UsageError(f"--infer_mode single needs one of {choice}")
    check_model_arguments(given)
    if given.infer_expt_dir is None and None in (given.config, given.name):
        raise UsageError("give --infer_expt_dir, or --config and --name")


def check_model_arguments(given: argparse.Namespace) -> None:
    """Makes sure that an experiment is named in one way only.

    Raises:
        UsageError: If it is named in two; the message gives the flags.
    """
    for name in ("config", "name"):
        if given.infer_expt_dir is not None and getattr(given, name) is not None:
            raise UsageError(f"--infer_expt_dir and --{name} exclude each other")
