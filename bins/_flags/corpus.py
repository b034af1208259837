"""The configuration of commands that read a corpus without one."""

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from utils.files import user_path

if TYPE_CHECKING:
    from config.schema import Config

DATASET = "folder"  # its name in _CONFIG
_CONFIG = Path(__file__).parents[2] / "egs" / "tts" / "FastSpeech2" / "exp_config_folder.json"


def corpus_config(
    flags: Namespace, aligner: str, processed: Path, max_bad_ratio: float | None = None
) -> "Config":
    """Builds the configuration of stage 1; refuses a language without a text front end."""
    from models.base.registry import load_config
    from processors.text.frontend import Frontends

    settings: dict[str, object] = {
        f"dataset_path.{DATASET}": user_path(flags.corpus).resolve(),
        "preprocess.processed_dir": processed.resolve(),
        "preprocess.aligner": aligner,
        f"preprocess.corpus.{DATASET}.format": flags.corpus_format,
        f"preprocess.corpus.{DATASET}.language": flags.language,
    }
    if max_bad_ratio is not None:
        settings |= {"preprocess.max_bad_ratio": max_bad_ratio}
    if not flags.language.startswith("en"):
        settings |= {"preprocess.text.normalizer": "none"}
        settings |= {"preprocess.text.phone_extractor": "espeak"}
    config = load_config(_CONFIG, [f"{key}={value}" for key, value in settings.items()])
    Frontends(config.preprocess.text)[flags.language]  # refuses an unknown language
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
