"""Stage 3: synthesises texts with a trained model."""

import argparse
from typing import TYPE_CHECKING

from bins._flags.parsers import arguments
from utils.cli import UsageError, run
from utils.errors import InputError

if TYPE_CHECKING:
    from models.synthesizer.settings import PitchContour
    from modules.variance.pitch_transform import PitchTransform


def main(argv: list[str] | None = None) -> None:
    """Runs stage 3."""
    flags = arguments("inference", argv)
    from models.synthesizer.runs import text_synthesis
    from models.synthesizer.runs.results import best_checkpoint, default_output, experiment_of
    from models.synthesizer.runs.text_synthesis import InputText, read_input_texts

    transform = _pitch_transform(flags)
    texts = [] if flags.infer_text is None else [InputText(flags.infer_text)]
    if (file := flags.infer_text_file) is not None:
        texts = read_input_texts(file, strict=flags.strict)
    reference = flags.infer_expt_dir or experiment_of(flags.config, flags.name, flags.set)
    if flags.infer_best:
        reference = best_checkpoint(reference)
    settings = text_synthesis.Settings(
        speaker=flags.speaker,
        pitch_control=flags.pitch_control,
        energy_control=flags.energy_control,
        duration_control=flags.duration_control,
        seed=flags.seed or 0,
        pitch_transform=transform,
        fade_out=flags.fade_out,
        steps=flags.steps,
        temperature=flags.temperature,
    )
    synthesizer = text_synthesis.Synthesizer(
        reference,
        flags.vocoder_dir,
        resample=flags.resample,
        overrides=flags.set,
        lexicon=flags.lexicon,
        tagged=not flags.no_tags,
    )
    outputs = flags.infer_output_dir or [default_output(reference, synthesizer.model.home)]
    overwrite = flags.overwrite or flags.infer_text is not None  # --infer_text is never skipped
    synthesis = text_synthesis.TextSynthesis(
        synthesizer, outputs[0], flags.save_alignment, overwrite=overwrite
    )
    if flags.infer_mode == "batch":
        split = flags.infer_dataset, flags.infer_testing_set
        text_synthesis.synthesise_dataset(synthesis, *split, settings)
    else:
        text_synthesis.synthesise_texts(synthesis, texts, settings)


def _pitch_transform(flags: argparse.Namespace) -> "PitchTransform | PitchContour":
    from models.synthesizer.settings import contour_of
    from modules.variance.pitch_transform import PitchTransform

    if flags.pitch_transform_custom is None:
        return PitchTransform(
            flatten=flags.pitch_transform_flatten,
            invert=flags.pitch_transform_invert,
            amplify=flags.pitch_transform_amplify,
            shift_hz=flags.pitch_transform_shift,
        )
    try:
        return contour_of(flags.pitch_transform_custom)
    except InputError as error:
        raise UsageError(f"--pitch_transform_custom: {error}") from error


if __name__ == "__main__":
    run(main)
