"""The flags of commands that read a corpus without a configuration."""

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from bins._flags.values import COUNT, FOLDER
from utils.cli import Parser
from utils.files import user_path
from utils.parallel import n_cores

if TYPE_CHECKING:
    from config.schema import Config

DATASET = "folder"  # its name in _CONFIG
_CONFIG = Path(__file__).parents[2] / "egs" / "tts" / "FastSpeech2" / "exp_config_folder.json"


def add_corpus_flags(parser: Parser) -> None:
    """Adds the corpus and how it is read."""
    add = parser.add_argument
    add("corpus", type=FOLDER.argument, metavar="CORPUS").help = """a folder of recordings with a
        table metadata.csv of id|text lines (README.md), or of --corpus_format"""
    add("--corpus_format", default="folder", metavar="NAME").help = """folder, ljspeech, vctk or
        libritts (default: %(default)s)"""
    add("--language", default="en-us", metavar="CODE").help = """of espeak-ng, such as de or fr-fr
        (default: %(default)s); numbers in other languages than English must be written out"""
    add("--num_workers", type=COUNT.argument, default=n_cores(), metavar="N").help = """processes
        (default: one per core)"""


def corpus_config(
    given: Namespace, aligner: str, processed: Path, max_bad_ratio: float | None = None
) -> "Config":
    """The configuration of stage 1 for a corpus; refuses a language without a text front end."""
    from models.base.registry import load_config
    from processors.text.frontend import Frontends

    settings: dict[str, object] = {
        f"dataset_path.{DATASET}": user_path(given.corpus).resolve(),
        "preprocess.processed_dir": processed.resolve(),
        "preprocess.aligner": aligner,
        f"preprocess.corpus.{DATASET}.format": given.corpus_format,
        f"preprocess.corpus.{DATASET}.language": given.language,
    }
    if max_bad_ratio is not None:
        settings |= {"preprocess.max_bad_ratio": max_bad_ratio}
    if not given.language.startswith("en"):
        settings |= {"preprocess.text.normalizer": "none"}
        settings |= {"preprocess.text.phone_extractor": "espeak"}
    config = load_config(_CONFIG, [f"{key}={value}" for key, value in settings.items()])
    Frontends(config.preprocess.text)[given.language]  # refuses an unknown language
    return config


def run_stage_1(config: "Config", n_jobs: int) -> list[dict[str, Any]]:
    """Prepares the corpus.

    Returns:
        How well each recording fits its text, worst first; none of the aligner pocketsphinx.
    """
    from processors.alignment import fit
    from processors.extraction.run import prepare_datasets
    from utils.files import read_jsonl

    prepare_datasets(config, n_jobs)
    path = Path(config.preprocess.processed_dir) / DATASET / fit.SCORES_FILE
    return cast("list[dict[str, Any]]", read_jsonl(path)) if path.is_file() else []
