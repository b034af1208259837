"""Stage 4: scores synthesised speech against recordings of the same utterances."""

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING

from bins._flags.parsers import arguments
from utils.cli import print_text, run
from utils.logging import get_logger

if TYPE_CHECKING:
    from models.evaluation.inputs.options import EvaluationInputs, EvaluationOptions


def main(argv: list[str] | None = None) -> None:
    """Runs stage 4: prints a table, and writes scores and a page to listen to."""
    flags = arguments("evaluate", argv)

    from models.evaluation.evaluate import evaluate
    from models.evaluation.report.tables import tables_of

    inputs = _inputs(flags)
    evaluation = evaluate(inputs, _options(flags), flags.num_workers)
    # before the page: if that fails, the scores are printed
    print_text(tables_of(evaluation))
    if flags.page == "no":
        return

    from models.base.results import PAGE
    from models.evaluation.report.page import write_page

    page = evaluation.folder / PAGE
    write_page(page, evaluation, n_jobs=flags.num_workers, backend=inputs.preprocess.backend)
    get_logger(__name__).info("listen: %s", page)


def _inputs(flags: argparse.Namespace) -> "EvaluationInputs":
    from models.base.registry import load_config
    from models.base.results import SINGLE
    from models.evaluation.inputs.options import inputs_of_config, inputs_of_model
    from models.evaluation.inputs.systems import read_texts
    from models.synthesizer.runs.results import experiment_of

    outputs, settings, recordings = flags.infer_output_dir, flags.set, flags.recordings
    if flags.infer_expt_dir is None and flags.name is None:
        inputs = inputs_of_config(load_config(flags.config, settings), outputs, recordings)
    else:
        experiment = flags.infer_expt_dir or experiment_of(flags.config, flags.name, settings)
        inputs = inputs_of_model(experiment, outputs, settings, recordings)
    if flags.texts is not None:
        inputs = replace(inputs, texts=read_texts(flags.texts))
    if flags.infer_mode == "single":
        inputs = replace(inputs, folders=tuple(folder / SINGLE for folder in inputs.folders))
    return inputs


def _options(flags: argparse.Namespace) -> "EvaluationOptions":
    from models.evaluation.inputs.options import EvaluationOptions
    from processors.metrics.recognition.user_models import UserModels, load_function

    recogniser = load_function(flags.recogniser) if flags.recogniser else None
    encoder = load_function(flags.speaker_encoder) if flags.speaker_encoder else None
    checks = None if flags.checks is None else tuple(flags.checks.split(","))
    return EvaluationOptions(
        metrics=tuple((flags.metrics or "all").split(",")),
        dataset=flags.infer_dataset,
        testing_set=flags.infer_testing_set,
        checks=() if flags.checks == "none" else checks,
        natural=flags.natural,
        copies=flags.copies == "yes",
        vocoder=flags.vocoder_dir,
        resample=flags.resample,
        user_models=UserModels(recogniser, flags.transcripts, encoder),
        folder=flags.report_dir,
    )


if __name__ == "__main__":
    run(main)
