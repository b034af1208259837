"""Checks a corpus, and whether its recordings fit their texts: arion check CORPUS [flags]."""

import json
import logging
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, cast

from bins._flags.parsers import program_arguments
from utils.cli import print_text, run
from utils.errors import InputError
from utils.files import user_path

if TYPE_CHECKING:
    from config.schema import Config
    from processors.extraction.checking import CorpusCheck

DATASET = "folder"  # its name in _CONFIG
_CONFIG = Path(__file__).parents[1] / "egs" / "tts" / "FastSpeech2" / "exp_config_folder.json"


def main() -> None:
    """Prints everything that was found; the exit code is 1 if something must be corrected."""
    flags = program_arguments("check_corpus")
    from processors.extraction.checking import check_corpus

    with TemporaryDirectory() as name:
        config = corpus_config(flags, "hmm", Path(name))
        check = check_corpus(config, DATASET, flags.num_workers)
        if not flags.no_misfits and check.passes:
            check = _with_misfits(check, config, flags.num_workers)
    print_text(json.dumps(check.summary(), indent=2) + "\n" if flags.json else check.report())
    if any(finding.is_fault for finding in check.findings):
        raise SystemExit(1)


def _with_misfits(check: "CorpusCheck", config: "Config", n_jobs: int) -> "CorpusCheck":
    """Adds what aligning the recordings shows to a check."""
    from preprocessors.manifest import Rejection
    from processors.alignment.fit import RELIABLE_S, SUSPECT
    from processors.extraction.checking import Finding
    from processors.extraction.run import REJECTED, prepare_datasets
    from utils.files import read_jsonl
    from utils.logging import get_logger

    for room in ("alignment.fit", "extraction"):  # they name files that are removed
        get_logger(f"processors.{room}").setLevel(logging.ERROR)
    folder, fault = Path(config.preprocess.processed_dir) / DATASET, ""
    try:
        prepare_datasets(config, n_jobs)
    except InputError as error:  # after it has compared them, too
        fault = f"recordings and texts were not compared: {error}"
    if (folder / REJECTED).is_file():
        rows = cast("list[dict[str, Any]]", read_jsonl(folder / REJECTED))
        check, fault = replace(check, rejected=[Rejection(**row) for row in rows]), ""
    rejected = {rejection.id for rejection in check.rejected}
    seconds = sum(trace.audio_seconds for trace in check.traces.values())
    kind = "misfit" if seconds >= RELIABLE_S else "notice"
    misfits: list[Finding] = []
    for row in read_scores(config):
        if row["misfit"] > SUSPECT and row["id"] not in rejected:
            place = f"at '{row['words']}', {row['start_s']:.2f}-{row['end_s']:.2f} s"
            text = f"{place}: probably not spoken as written: {row['text']}"
            misfits.append(Finding(kind, [row["id"]], text, row["misfit"]))
    if misfits and seconds < RELIABLE_S:
        rule = f"with less than {RELIABLE_S / 60:g} minutes of recordings, misfits are no faults"
        notices = [*check.listing.notices, f"{rule}: listen to them"]
        check = replace(check, listing=check.listing._replace(notices=notices))
    return replace(check, fault=fault, misfits=tuple(misfits))


def corpus_config(flags: Namespace, aligner: str, processed: Path) -> "Config":
    """Builds the configuration of stage 1; refuses a language without a text front end."""
    from config.text import text_config
    from models.base.registry import load_config
    from processors.text.frontend import Frontends

    text = text_config(flags.language)
    settings = [
        f"dataset_path.{DATASET}={user_path(flags.corpus).resolve()}",
        f"preprocess.processed_dir={processed.resolve()}",
        f"preprocess.aligner={aligner}",
        f"preprocess.text.normalizer={text.normalizer}",
        f"preprocess.text.phone_extractor={text.phone_extractor}",
        f"preprocess.corpus.{DATASET}.format={flags.corpus_format}",
        f"preprocess.corpus.{DATASET}.language={flags.language}",
        "preprocess.max_bad_ratio=1",
    ]
    config = load_config(_CONFIG, settings)
    Frontends(config.preprocess.text)[flags.language]  # refuses an unknown language
    return config


def read_scores(config: "Config") -> list[dict[str, Any]]:
    """Reads how well each recording of a prepared corpus fits its text, if the aligner is hmm."""
    from processors.alignment.fit import SCORES_FILE
    from utils.files import read_jsonl

    path = Path(config.preprocess.processed_dir) / DATASET / SCORES_FILE
    return cast("list[dict[str, Any]]", read_jsonl(path)) if path.is_file() else []


if __name__ == "__main__":
    run(main)
