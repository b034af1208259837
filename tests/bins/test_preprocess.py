"""The command of stage 1."""

import json
from pathlib import Path

import pytest

from tests.commands import ROOT, call
from tests.processors.small_corpus import copy_corpus
from utils.errors import InputError
from utils.files import read_json

SET = ("--set", "preprocess.backend=sequential", "--set", "preprocess.aligner=textgrid")


def write_config(tmp_path: Path) -> str:
    """Two datasets, whose folders are called as they are."""
    config = tmp_path / "config.json"
    corpus = {name: {"format": "ljspeech"} for name in ("one", "two")}
    values = {
        "base_config": f"{ROOT}/config/tts/fastspeech2.json",
        "dataset": ["one", "two"],
        "dataset_path": {name: f"{tmp_path}/{name}" for name in corpus},
        "log_dir": str(tmp_path),
        "preprocess": {"processed_dir": f"{tmp_path}/data", "corpus": corpus},
        "train": {"max_steps": 1},
    }
    config.write_text(json.dumps(values), encoding="utf-8")
    return str(config)


def test_it_prepares_every_dataset_of_the_config_or_none(tmp_path):
    copy_corpus(tmp_path / "one")
    with pytest.raises(InputError, match=r"two: no folder .*dataset_path\.two"):
        call("preprocess", "--config", write_config(tmp_path), *SET)
    assert not (tmp_path / "data").exists()
    copy_corpus(tmp_path / "two")
    call("preprocess", "--config", write_config(tmp_path), *SET)
    for name in ("one", "two"):
        assert read_json(tmp_path / "data" / name / "fingerprint.json")["finished"]


def test_mels_of_an_acoustic_model_are_for_vocoders_only(tmp_path):
    config = f"{ROOT}/egs/tts/FlowSpeech/exp_config_demo.json"
    with pytest.raises(InputError, match="--from_acoustic prepares the training data of a vocoder"):
        call("preprocess", "--config", config, "--from_acoustic", str(tmp_path))
