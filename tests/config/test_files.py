"""The shipped configuration files repeat neither defaults nor each other."""

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from config.preprocess import CorpusConfig
from models.base.registry import config_of
from utils.config import plain_tree, to_plain
from utils.config_tree import read_tree, read_values

REPOSITORY = Path(__file__).parents[2]
RECIPES = sorted(REPOSITORY.glob("egs/*/*/exp_config*.json"))
FILES = [*sorted(REPOSITORY.glob("config/**/*.json")), *RECIPES]
# keys that a recipe repeats from its base or from the defaults, because its users edit them
EDITED = ("preprocess.corpus.folder.", "train.batch_size", "train.gradient_accumulation_step")
EDITED += ("train.mixed_precision",)
ANY_MODEL = {"tts": "FastSpeech2", "vocoder": "HiFiGAN"}


def dotted(values: dict[str, object], prefix: str = "") -> dict[str, object]:
    """The values in nested sections by key path, such as `train.adam.lr`."""
    flat: dict[str, object] = {}
    for key, value in values.items():
        is_section = isinstance(value, dict) and value
        flat |= dotted(value, f"{prefix}{key}.") if is_section else {prefix + key: value}
    return flat


def written(path: Path) -> dict[str, object]:
    """What the file itself writes."""
    return dotted({key: value for key, value in read_values(path).items() if key != "base_config"})


def bases(path: Path) -> list[Path]:
    """The files that its `base_config` names."""
    base = read_values(path).get("base_config", [])
    return [path.parent / file for file in (base if isinstance(base, list) else [base])]


@cache
def defaults(task: str, model_type: str) -> dict[str, object]:
    """The default of every key that has one."""
    required = {"task": task, "model_type": model_type, "log_dir": "ckpts"}
    required |= {"dataset": ["any"], "dataset_path": {"any": "somewhere"}}
    config = to_plain(config_of(plain_tree(required, REPOSITORY)))
    return dotted({key: value for key, value in config.items() if key not in required})


def inherited(path: Path) -> dict[str, object]:
    """What the experiment would have without the file: values of its bases, or defaults."""
    values: Any = read_tree(path).values
    task = str(values.get("task", "tts"))
    keys = dict(defaults(task, str(values.get("model_type", ANY_MODEL[task]))))
    for corpus in values.get("preprocess", {}).get("corpus", {}):
        keys |= dotted(to_plain(CorpusConfig()), f"preprocess.corpus.{corpus}.")
    for base in bases(path):
        keys |= dotted(read_tree(base).values)
    return keys


def longest_chain(path: Path) -> int:
    return 1 + max(map(longest_chain, bases(path)), default=0)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_no_file_writes_what_it_would_have_anyway_and_at_most_four_are_based_on_each_other(path):
    otherwise, editable = inherited(path), EDITED if path in RECIPES else ()
    same = [key for key, value in written(path).items() if otherwise.get(key, ...) == value]
    assert [key for key in same if not key.startswith(editable)] == []
    assert longest_chain(path) <= 4


def test_the_splits_of_the_demo_and_the_kathleen_corpus_are_written_once():
    def writers(prefix: str) -> list[str]:
        return [path.stem for path in FILES if any(k.startswith(prefix) for k in written(path))]

    assert writers("preprocess.split.") == ["ljspeech_mini"]
    assert writers("preprocess.corpus.Kathleen.") == ["kathleen"]
    assert writers("dataset_path.Kathleen") == ["kathleen"]
