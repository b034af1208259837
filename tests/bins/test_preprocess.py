"""The command of stage 1."""

import sys
from pathlib import Path

import pytest

from bins.preprocess import main
from tests.processors.small_corpus import copy_corpus
from utils.errors import InputError
from utils.files import read_json

ROOT = Path(__file__).parents[2]


def call(monkeypatch, *arguments: str) -> None:
    monkeypatch.setattr(sys, "argv", ["preprocess", *arguments])
    main()


SET = ("--set", "preprocess.backend=sequential", "--set", "preprocess.aligner=textgrid")


def write_config(tmp_path: Path) -> str:
    """Two datasets, whose folders are called as they are."""
    config = tmp_path / "config.json"
    config.write_text(
        f"""{{
          base_config: "{ROOT}/config/tts/fastspeech2.json",
          dataset: ["one", "two"],
          dataset_path: {{one: "{tmp_path}/one", two: "{tmp_path}/two"}},
          log_dir: "{tmp_path}",
          preprocess: {{
            processed_dir: "{tmp_path}/data",
            corpus: {{one: {{format: "ljspeech"}}, two: {{format: "ljspeech"}}}},
          }},
          train: {{max_steps: 1}},
        }}""",
        encoding="utf-8",
    )
    return str(config)


def test_it_prepares_every_dataset_of_the_config(tmp_path, monkeypatch):
    for name in ("one", "two"):
        copy_corpus(tmp_path / name)
    call(monkeypatch, "--config", write_config(tmp_path), *SET)
    for name in ("one", "two"):
        assert read_json(tmp_path / "data" / name / "fingerprint.json")["finished"]


def test_all_datasets_are_looked_at_before_the_work_on_the_first(tmp_path, monkeypatch):
    copy_corpus(tmp_path / "one")
    with pytest.raises(InputError, match=r"two: no folder .*dataset_path\.two"):
        call(monkeypatch, "--config", write_config(tmp_path), *SET)
    assert not (tmp_path / "data").exists()


def test_mels_of_an_acoustic_model_are_for_vocoders_only(tmp_path, monkeypatch):
    config = f"{ROOT}/egs/tts/FlowSpeech/exp_config_demo.json"
    with pytest.raises(InputError, match="--from_acoustic prepares the training data of a vocoder"):
        call(monkeypatch, "--config", config, "--from_acoustic", str(tmp_path))
