"""Former names of keys, in old configurations and experiments."""

import json
import logging
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from config.renamed import RENAMED
from models.base import registry
from models.base.registry import config_lines, find_model, load_config
from utils.config import ConfigError

FASTSPEECH2 = Path(__file__).parents[2] / "config" / "tts" / "fastspeech2.json"
CORPUS = ['dataset=["a"]', 'dataset_path={a: "b"}']


def write(path: Path, base: Path, **sections: object) -> Path:
    path.write_text(json.dumps({"base_config": str(base), **sections}))
    return path


def test_a_former_name_is_accepted_with_one_line_that_names_the_new_one(tmp_path, caplog):
    old = {"preprocess": {"fmax": 7600}, "model": {"transformer": {"encoder_layer": 2}}}
    path = write(tmp_path / "my_config.json", FASTSPEECH2, **old)
    for _ in range(2):
        config = load_config(path, CORPUS)
    assert config.preprocess.f_max == 7600
    assert config.model.transformer.n_encoder_layers == 2
    said = [record.getMessage() for record in caplog.records]
    assert said == [
        f"{path}: preprocess.fmax is now called f_max; the old name still works",
        f"{path}: model.transformer.encoder_layer is now called n_encoder_layers;"
        " the old name still works",
    ]
    assert f"preprocess.f_max = 7600.0  # {path}" in config_lines(path, CORPUS)


@pytest.mark.parametrize(("first", "last"), [("fmax", "f_max"), ("f_max", "fmax")])
def test_of_both_names_the_one_that_is_set_last_counts(first, last, tmp_path):
    base = write(tmp_path / "base.json", FASTSPEECH2, preprocess={first: 7000})
    path = write(tmp_path / "exp_config.json", base, preprocess={last: 7600})
    assert load_config(path, CORPUS).preprocess.f_max == 7600
    assert load_config(path, [*CORPUS, f"preprocess.{first}=7800"]).preprocess.f_max == 7800


def test_the_configuration_of_an_old_experiment_loads_without_a_word(tmp_path, caplog):
    old = {"preprocess": {"hop_size": 300, "win_size": 1000, "n_mel": 60, "fmin": 20}}
    with caplog.at_level(logging.DEBUG):
        config = load_config(write(tmp_path / "config.json", FASTSPEECH2, **old), CORPUS)
    mel = config.preprocess.mel
    assert (mel.hop_length, mel.win_length, mel.n_mels, mel.f_min) == (300, 1000, 60, 20)
    assert caplog.text == ""


@dataclass(frozen=True)
class OwnConfig:
    """Of a user's model, with former names of other models."""

    layers: int = 2
    encoder_layer: int = 2
    n_layers: int = 2


def test_a_key_of_ones_own_model_may_have_a_former_name(tmp_path, monkeypatch, caplog):
    model = replace(find_model("tts", "fastspeech2"), config=OwnConfig)
    monkeypatch.setattr(registry, "find_model", lambda task, name: model)
    plain = {"task": "tts", "model_type": "own", "log_dir": "ckpts", "model": {"layers": 5}}
    path = tmp_path / "exp_config.json"
    path.write_text(json.dumps(plain))
    config = load_config(path, [*CORPUS, "model.encoder_layer=3"])
    assert config.model == OwnConfig(layers=5, encoder_layer=3)
    assert caplog.text == ""


@pytest.mark.parametrize("key", ["model.transformer.layers", "preprocess.text.n_mel"])
def test_a_former_name_in_another_section_is_unknown(key, caplog):
    with pytest.raises(ConfigError, match=rf"--set: unknown key {key}; "):
        load_config(FASTSPEECH2, [*CORPUS, f"{key}=3"])
    assert caplog.text == ""


def test_a_dataset_may_have_a_former_name():
    corpus = ['dataset=["fmax"]', 'dataset_path={fmax: "b"}', "preprocess.corpus.fmax.speaker=Anna"]
    assert load_config(FASTSPEECH2, corpus).preprocess.corpus["fmax"].speaker == "Anna"


@pytest.mark.parametrize(
    ("values", "override", "error"),
    [
        ({"model": {"transformer": {"encoder_layer": 2}}}, "model.transformer=null", "null"),
        ({"model": {"transformer": {"encoder_layer": 2}}}, "model=null", "null"),
        ({"preprocess": {"n_mel": 33}}, "preprocess=3", "3"),
    ],
)
def test_a_former_name_in_a_section_that_was_replaced_is_forgotten(
    values, override, error, tmp_path
):
    path, (key, _) = write(tmp_path / "exp_config.json", FASTSPEECH2, **values), override.split("=")
    with pytest.raises(ConfigError, match=rf"^--set: {key} is {error}, expected a section"):
        load_config(path, [*CORPUS, override])


def test_no_shipped_configuration_has_a_former_name():
    root = FASTSPEECH2.parents[2]
    files = [*root.glob("config/**/*.json"), *root.glob("egs/**/*.json")]
    former = tuple(f'"{old}":' for _, old in RENAMED)
    assert [path for path in files if any(name in path.read_text() for name in former)] == []
