"""Stage 4: scores synthesised speech against recordings of the same utterances."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from utils.cli import Parser, UsageError, check_at_least, print_text, run
from utils.inference_flags import add_model_arguments, check_model_arguments
from utils.logging import get_logger, setup_logging
from utils.parallel import n_cores

if TYPE_CHECKING:
    from models.evaluation.inputs.options import EvaluationInputs, EvaluationOptions


def parser() -> Parser:
    """Builds the parser of stage 4."""
    flags = Parser(
        "Scores what stage 3 wrote, or any wavs, against recordings of the same utterances: prints "
        "a table, and writes scores.json, scores.jsonl with a line for each utterance, and "
        "report.html, a page to listen to. Several folders are compared."
    )
    add_model_arguments(flags)
    _add_systems(flags)
    _add_references(flags)
    add = flags.add_argument
    add("--metrics", default="all", help="names, as in mcd,wer; default: all that apply")
    add("--checks", help="names, all or none; default: all, and none with --metrics")
    add("--transcripts", type=Path, help="folder of <id>.txt from your own recogniser")
    add("--recogniser", metavar="MODULE:FUNCTION", help="speech recogniser; default: pocketsphinx")
    add("--speaker_encoder", metavar="MODULE:FUNCTION", help="embeds speakers, for similarity")
    add(
        "--report_dir",
        type=Path,
        help="folder of the page; default: that of the wavs; several: comparison/ in the first",
    )
    add("--page", choices=("yes", "no"), default="yes", help="no: no report.html")
    add("--num_workers", type=int, default=n_cores(), help="processes (default: %(default)s)")
    return flags


def _add_systems(flags: Parser) -> None:
    add = flags.add_argument
    add(
        "--infer_output_dir",
        type=Path,
        nargs="+",
        action="extend",
        default=[],
        metavar="DIR",
        help="folders of wavs; default: result/ of the model; several are compared",
    )
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
        help="only this split of the data set, of which no file may be missing",
    )


def _add_references(flags: Parser) -> None:
    add = flags.add_argument
    add(
        "--recordings",
        type=Path,
        help="folder of recordings named by id; default: those of stage 1",
    )
    add("--texts", type=Path, help="table of id|text, for files without a text from stage 3")
    add("--natural", type=Path, help="folder of second readings, named by sentence id")
    add(
        "--vocoder_dir",
        help="also score recordings resynthesised by this vocoder, to isolate its error; default: "
        "that of stage 3, if it was the bundled one or Griffin-Lim",
    )
    add("--resample", action="store_true", help="accept a vocoder of another mel")
    add("--copies", choices=("yes", "no"), default="yes", help="no: no resynthesised recordings")


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Parses and checks the flags.

    Raises:
        UsageError: If they contradict each other; the message names them.
    """
    given = parser().parse_args(words)
    check_model_arguments(given)
    if given.infer_expt_dir is None and given.config is None:
        raise UsageError("give --infer_expt_dir, or --config for recordings and mel")
    if given.infer_expt_dir is None and given.name is None and not given.infer_output_dir:
        raise UsageError("give --infer_expt_dir, --name or --infer_output_dir: the files to score")
    if given.infer_testing_set is not None and given.infer_dataset is None:
        raise UsageError("--infer_testing_set needs --infer_dataset")
    for flag, names in (("--metrics", given.metrics), ("--checks", given.checks)):
        if names is not None and "" in names.split(","):
            _refuse_empty(flag, names)
    check_at_least(given, 1, "num_workers")
    if given.resample and given.vocoder_dir is None:
        raise UsageError("--resample needs --vocoder_dir")
    return given


def _refuse_empty(flag: str, given: str) -> NoReturn:
    from processors.scoring.checks import check_names
    from processors.scoring.metrics import metric_names

    known = metric_names() if flag == "--metrics" else ["none", *check_names()]
    raise UsageError(
        f"{flag} '{given}': expected names and commas; there are: all, {', '.join(known)}"
    )


def _checks(names: str | None) -> tuple[str, ...] | None:
    if names is None:
        return None
    return () if names == "none" else tuple(names.split(","))


def main() -> None:
    """Runs stage 4."""
    given = arguments()
    setup_logging()

    from models.evaluation.evaluate import evaluate
    from models.evaluation.output import tables_of

    inputs = _inputs(given)
    evaluation = evaluate(inputs, _options(given), given.num_workers)
    # before the page: if that fails, the scores are printed
    print_text(tables_of(evaluation))
    if given.page == "no":
        return

    from models.base.result_files import PAGE
    from models.evaluation.report import write_page

    page, backend = evaluation.folder / PAGE, inputs.references.preprocess.backend
    write_page(page, evaluation, n_jobs=given.num_workers, backend=backend)
    get_logger(__name__).info("listen: %s", page)


def _inputs(given: argparse.Namespace) -> "EvaluationInputs":
    from models.evaluation.inputs.options import inputs_of_config, inputs_of_model
    from models.synthesizer.runs.synthesis_run import experiment_of

    sources = given.infer_output_dir, given.overrides, given.recordings
    if given.infer_expt_dir is None and given.name is None:
        inputs = inputs_of_config(given.config, *sources)
    else:
        experiment = given.infer_expt_dir or experiment_of(
            given.config, given.name, given.overrides
        )
        inputs = inputs_of_model(experiment, *sources)
    if given.texts is not None:
        inputs = inputs.with_texts(given.texts)
    return inputs.of_single() if given.infer_mode == "single" else inputs


def _options(given: argparse.Namespace) -> "EvaluationOptions":
    from models.evaluation.inputs.options import EvaluationOptions
    from processors.scoring.user_models import UserModels, load_function

    user_models = UserModels(
        load_function(given.recogniser) if given.recogniser is not None else None,
        given.transcripts,
        load_function(given.speaker_encoder) if given.speaker_encoder is not None else None,
    )
    return EvaluationOptions(
        metrics=tuple(given.metrics.split(",")),
        dataset=given.infer_dataset,
        testing_set=given.infer_testing_set,
        checks=_checks(given.checks),
        natural=given.natural,
        copies=given.copies == "yes",
        vocoder=given.vocoder_dir,
        resample=given.resample,
        user_models=user_models,
        folder=given.report_dir,
    )


if __name__ == "__main__":
    run(main)
