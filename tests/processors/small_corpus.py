"""A corpus of real recordings with alignments, small enough to be prepared within a test."""

import shutil
from dataclasses import replace
from pathlib import Path

from config.preprocess import PreprocessConfig, SplitConfig
from config.schema import Config
from processors.extraction.plan import Summary
from processors.extraction.run import prepare_datasets

DEMO = Path(__file__).parents[2] / "egs/_demo/LJSpeech-mini"
# the nine shortest ones, 1.3 to 5 s
IDS = ["LJ001-0002", "LJ001-0008", "LJ001-0011", "LJ001-0013", "LJ001-0020"]
IDS += ["LJ002-0020", "LJ002-0035", "LJ011-0202", "LJ042-0094"]
SPLIT = SplitConfig(valid_ids=("LJ002-0020",), test_ids=("LJ002-0035",))


def texts() -> dict[str, str]:
    """Text of every utterance of the demo, by id."""
    lines = (DEMO / "metadata.csv").read_text(encoding="utf-8").splitlines()
    return {line.split("|")[0]: line.split("|")[2] for line in lines}


def copy_corpus(root: Path, ids: list[str] = IDS) -> Path:
    """A corpus in LJ Speech layout with these utterances of the demo."""
    for folder, suffix in (("wavs", ".flac"), ("TextGrid", ".TextGrid")):
        (root / folder).mkdir(parents=True)
        for id in ids:
            shutil.copy2(DEMO / folder / f"{id}{suffix}", root / folder)
    write_texts(root, {id: texts()[id] for id in ids})
    return root


def write_texts(root: Path, by_id: dict[str, str]) -> None:
    """Writes the table of a corpus."""
    lines = [f"{id}|{text}|{text}\n" for id, text in by_id.items()]
    (root / "metadata.csv").write_text("".join(lines), encoding="utf-8")


def config_of(root: Path, processed: Path, **keys: object) -> Config:
    """An experiment on the corpus in `root`; `keys` are those of `preprocess`."""
    preprocess = {"aligner": "textgrid", "shard_size": 3, "split": SPLIT, "backend": "sequential"}
    return Config(
        task="tts",
        model_type="FastSpeech2",
        dataset=("LJSpeech",),
        dataset_path={"LJSpeech": str(root)},
        log_dir=str(processed),
        model=None,
        preprocess=PreprocessConfig(**{**preprocess, "processed_dir": str(processed), **keys}),
    )


def prepare_dataset(config: Config, dataset: str, n_jobs: int) -> Summary | None:
    """Runs stage 1 for one dataset of an experiment."""
    return prepare_datasets(replace(config, dataset=(dataset,)), n_jobs)[0]
