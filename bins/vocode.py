"""Stage 3 of vocoders: synthesises speech from mels with a trained vocoder."""

from collections.abc import Sequence

from bins._flags.parsers import arguments
from utils.cli import run
from utils.logging import setup_logging


def main(argv: Sequence[str] | None = None) -> None:
    """Runs stage 3."""
    given = arguments("vocode", argv)
    setup_logging()

    from models.synthesizer.runs import copy_synthesis
    from models.synthesizer.runs.synthesis_run import experiment_of

    reference = given.infer_expt_dir or experiment_of(given.config, given.name, given.set)
    synthesis = copy_synthesis.load_copy_synthesis(
        reference, next(iter(given.infer_output_dir), None), given.set
    )
    synthesis = synthesis._replace(overwrite=given.overwrite, seed=given.seed or 0)
    if given.infer_mode == "batch":
        copy_synthesis.synthesise_split(synthesis, given.infer_dataset, given.infer_testing_set)
    elif given.infer_audio_dir is not None:
        sources = copy_synthesis.sources_of_audio(given.infer_audio_dir, synthesis.preprocess)
        copy_synthesis.synthesise_files(synthesis, sources)
    else:
        sources = copy_synthesis.sources_of_features(given.infer_feature_dir, synthesis.mel)
        copy_synthesis.synthesise_files(synthesis, sources)


if __name__ == "__main__":
    run(main)
