"""Stage 3 of vocoders: synthesises speech from mels with a trained vocoder."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from utils.cli import Parser, run
from utils.inference_flags import add_inference_arguments, check_inference_arguments
from utils.logging import setup_logging

_SINGLE = ("infer_audio_dir", "infer_feature_dir")


def parser() -> Parser:
    """Builds the parser of stage 3."""
    flags = Parser("Synthesises speech from mels with a trained vocoder.")
    add_inference_arguments(flags, "your own files", "the recordings of a data set")
    add = flags.add_argument
    add("--infer_audio_dir", type=Path, help="single: a recording, or a folder of them")
    add(
        "--infer_feature_dir",
        type=Path,
        help="single: a natural log-mel (M, T) in a .npy file, or a folder of them",
    )
    add("--seed", type=int, default=0, help="for vocoders that draw random numbers")
    return flags


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Parses and checks the flags.

    Raises:
        UsageError: If they contradict each other; the message names them.
    """
    given = parser().parse_args(words)
    check_inference_arguments(given, _SINGLE)
    return given


def main() -> None:
    """Runs stage 3."""
    given = arguments()
    setup_logging()

    from models.synthesizer.runs import copy_synthesis
    from models.synthesizer.runs.synthesis_run import experiment_of

    reference = given.infer_expt_dir or experiment_of(given.config, given.name, given.overrides)
    synthesis = copy_synthesis.load_copy_synthesis(
        reference, given.infer_output_dir, given.overrides
    )
    synthesis = synthesis._replace(overwrite=given.overwrite, seed=given.seed)
    if given.infer_mode == "batch":
        copy_synthesis.synthesise_split(synthesis, given.infer_dataset, given.infer_testing_set)
    elif given.infer_audio_dir is not None:
        copy_synthesis.synthesise_audio(synthesis, given.infer_audio_dir)
    else:
        copy_synthesis.synthesise_features(synthesis, given.infer_feature_dir)


if __name__ == "__main__":
    run(main)
