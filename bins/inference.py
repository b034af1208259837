"""Stage 3: synthesises texts with a trained model."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from processors.durations import EXPORT_FORMATS
from utils.cli import Parser, UsageError, run
from utils.inference_flags import add_inference_arguments, check_inference_arguments
from utils.logging import setup_logging

_SINGLE = ("infer_text", "infer_text_file")


def parser() -> Parser:
    """Builds the parser of stage 3."""
    flags = Parser("Synthesises texts with a trained model.")
    add_inference_arguments(flags, "a text", "the sentences of a data set")
    add = flags.add_argument
    add("--infer_text", help="single: the text")
    add("--infer_text_file", type=Path, help="single: a UTF-8 file with one text a line")
    add(
        "--vocoder_dir",
        help="vocoder, given as for --infer_expt_dir, or griffin_lim; default: the bundled one",
    )
    add(
        "--resample",
        action="store_true",
        help="convert mels for a vocoder of another mel or sample rate, at some cost of quality",
    )
    add("--speaker", help="name of the speaker; batch: default as recorded")
    add("--pitch_control", type=float, default=1.0, help="1.2 is 20 %% higher")
    add("--energy_control", type=float, default=1.0, help="1.2 is 20 %% louder")
    add("--duration_control", type=float, default=1.0, help="1.2 is 20 %% slower")
    add("--seed", type=int, default=0, help="for models that draw random numbers")
    add(
        "--save_alignment",
        choices=EXPORT_FORMATS,
        help="also write the times of phones and words, next to the wavs",
    )
    return flags


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Parses and checks the flags.

    Raises:
        UsageError: If they contradict each other; the message names them.
    """
    given = parser().parse_args(words)
    check_inference_arguments(given, _SINGLE)
    if given.resample and given.vocoder_dir is None:
        raise UsageError("--resample goes with --vocoder_dir")
    return given


def main() -> None:
    """Runs stage 3."""
    given = arguments()
    setup_logging()

    from models.synthesizer import text_synthesis
    from models.synthesizer.synthesis_run import experiment_of

    reference = given.infer_expt_dir or experiment_of(given.config, given.name, given.overrides)
    settings = text_synthesis.Settings(
        speaker=given.speaker,
        pitch_control=given.pitch_control,
        energy_control=given.energy_control,
        duration_control=given.duration_control,
        seed=given.seed,
    )
    synthesis = text_synthesis.load_text_synthesis(
        reference,
        given.vocoder_dir,
        given.infer_output_dir,
        given.overrides,
        resample=given.resample,
    )
    # --infer_text is never skipped
    overwrite = given.overwrite or given.infer_text is not None
    synthesis = synthesis._replace(alignment=given.save_alignment, overwrite=overwrite)
    if given.infer_mode == "batch":
        text_synthesis.synthesise_dataset(
            synthesis, given.infer_dataset, given.infer_testing_set, settings
        )
    elif given.infer_text_file is not None:
        texts = text_synthesis.read_texts(given.infer_text_file)
        text_synthesis.synthesise_texts(synthesis, [*texts.values()], settings, [*texts])
    else:
        text_synthesis.synthesise_texts(synthesis, [given.infer_text], settings)


if __name__ == "__main__":
    run(main)
