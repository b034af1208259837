"""Stage 3: synthesises texts with a trained model."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from processors.durations import EXPORT_FORMATS
from utils.cli import Parser, UsageError, run
from utils.control_flags import add_control_arguments, check_control_arguments
from utils.errors import InputError
from utils.inference_flags import add_inference_arguments, check_inference_arguments
from utils.logging import setup_logging

if TYPE_CHECKING:
    from models.synthesizer.prosody.contours import PitchContour
    from models.synthesizer.text.text_files import InputText
    from modules.pitch_transform import PitchTransform

_SINGLE = ("infer_text", "infer_text_file")


def parser() -> Parser:
    """Builds the parser of stage 3."""
    flags = Parser("Synthesises texts with a trained model.")
    add_inference_arguments(flags, "a text", "the sentences of a data set")
    add = flags.add_argument
    add("--infer_text", help="single: the text")
    add(
        "--infer_text_file",
        type=Path,
        help="single: a UTF-8 file with one text a line, or a .tsv table with the columns text and"
        " optionally pitch (file of Hz per phone), output (name of the wav), speaker",
    )
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
    add_control_arguments(flags)
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
    check_control_arguments(given)
    return given


def main() -> None:
    """Runs stage 3."""
    given = arguments()
    setup_logging()

    from models.synthesizer.runs import text_synthesis
    from models.synthesizer.runs.synthesis_run import experiment_of

    transform = _pitch_transform(given)
    texts = _texts(given)
    reference = given.infer_expt_dir or experiment_of(given.config, given.name, given.overrides)
    settings = text_synthesis.Settings(
        speaker=given.speaker,
        pitch_control=given.pitch_control,
        energy_control=given.energy_control,
        duration_control=given.duration_control,
        seed=given.seed,
        pitch_transform=transform,
        fade_out=given.fade_out,
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
    else:
        text_synthesis.synthesise_texts(synthesis, texts, settings)


def _texts(given: argparse.Namespace) -> list["InputText"]:
    """The texts of mode `single`; none in mode `batch`."""
    from models.synthesizer.text.text_files import InputText, read_input_texts

    if given.infer_text_file is not None:
        return read_input_texts(given.infer_text_file)
    return [] if given.infer_text is None else [InputText(given.infer_text)]


def _pitch_transform(given: argparse.Namespace) -> "PitchTransform | PitchContour":
    """The transform that the flags describe."""
    from models.synthesizer.prosody.contours import contour_of
    from modules.pitch_transform import PitchTransform

    if given.pitch_transform_custom is None:
        return PitchTransform(
            flatten=given.pitch_transform_flatten,
            invert=given.pitch_transform_invert,
            amplify=given.pitch_transform_amplify,
            shift_hz=given.pitch_transform_shift,
        )
    try:
        return contour_of(given.pitch_transform_custom)
    except InputError as error:
        raise UsageError(f"--pitch_transform_custom: {error}") from error


if __name__ == "__main__":
    run(main)
