"""Stage 3 of vocoders: synthesises speech from mels with a trained vocoder."""

from bins._flags.parsers import arguments
from utils.cli import run


def main(argv: list[str] | None = None) -> None:
    """Runs stage 3."""
    flags = arguments("vocode", argv)
    from models.synthesizer.runs import copy_synthesis
    from models.synthesizer.runs.results import best_checkpoint, experiment_of

    reference = flags.infer_expt_dir or experiment_of(flags.config, flags.name, flags.set)
    if flags.infer_best:
        reference = best_checkpoint(reference)
    synthesis = copy_synthesis.load_copy_synthesis(
        reference, next(iter(flags.infer_output_dir), None), flags.set
    )
    synthesis = synthesis._replace(overwrite=flags.overwrite, seed=flags.seed or 0)
    if flags.no_tags:
        synthesis = synthesis._replace(tag="")
    if flags.infer_mode == "batch":
        copy_synthesis.synthesise_split(synthesis, flags.infer_dataset, flags.infer_testing_set)
    elif flags.infer_audio_dir is not None:
        sources = copy_synthesis.sources_of_audio(flags.infer_audio_dir, synthesis.preprocess)
        copy_synthesis.synthesise_files(synthesis, sources)
    else:
        sources = copy_synthesis.sources_of_features(flags.infer_feature_dir, synthesis.mel)
        copy_synthesis.synthesise_files(synthesis, sources)


if __name__ == "__main__":
    run(main)
