"""Stage 3: synthesises texts with a trained model."""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from bins._flags.parsers import arguments
from utils.cli import UsageError, run
from utils.errors import InputError
from utils.logging import setup_logging

if TYPE_CHECKING:
    from models.synthesizer.runs.text_files import InputText
    from models.synthesizer.settings import PitchContour
    from modules.variance.pitch_transform import PitchTransform


def main(argv: Sequence[str] | None = None) -> None:
    """Runs stage 3."""
    given = arguments("inference", argv)
    setup_logging()

    from models.synthesizer.runs import text_synthesis
    from models.synthesizer.runs.synthesis_run import default_output, experiment_of

    transform = _pitch_transform(given)
    texts = _texts(given)
    reference = given.infer_expt_dir or experiment_of(given.config, given.name, given.set)
    settings = text_synthesis.Settings(
        speaker=given.speaker,
        pitch_control=given.pitch_control,
        energy_control=given.energy_control,
        duration_control=given.duration_control,
        seed=given.seed or 0,
        pitch_transform=transform,
        fade_out=given.fade_out,
        steps=given.steps,
        temperature=given.temperature,
    )
    synthesizer = text_synthesis.Synthesizer(
        reference, given.vocoder_dir, resample=given.resample, overrides=given.set
    )
    output = next(iter(given.infer_output_dir), None)
    synthesis = text_synthesis.TextSynthesis(
        synthesizer,
        output or default_output(reference, synthesizer.model.home),
        given.save_alignment,
        # --infer_text is never skipped
        overwrite=given.overwrite or given.infer_text is not None,
    )
    if given.infer_mode == "batch":
        text_synthesis.synthesise_dataset(
            synthesis, given.infer_dataset, given.infer_testing_set, settings
        )
    else:
        text_synthesis.synthesise_texts(synthesis, texts, settings)


def _texts(given: argparse.Namespace) -> list["InputText"]:
    """The texts of mode `single`; none in mode `batch`."""
    from models.synthesizer.runs.text_files import InputText, read_input_texts

    if given.infer_text_file is not None:
        return read_input_texts(given.infer_text_file, skip_unknown_tags=given.skip_unknown_tags)
    return [] if given.infer_text is None else [InputText(given.infer_text)]


def _pitch_transform(given: argparse.Namespace) -> "PitchTransform | PitchContour":
    from models.synthesizer.settings import contour_of
    from modules.variance.pitch_transform import PitchTransform

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
