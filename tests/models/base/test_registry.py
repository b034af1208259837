import json
import sys
from pathlib import Path

import pytest

import models.tts
from models.base import registry
from models.tts import fastspeech2
from utils.config import ConfigError, to_plain
from utils.errors import InputError


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(folder, **values):
    path = folder / "exp.json"
    experiment = {"task": "tts", "model_type": "FastSpeech2", "log_dir": "ckpts/tts"}
    data = {"dataset": ["A"], "dataset_path": {"A": "a"}, "train": {"max_steps": 10}}
    path.write_text(json.dumps(experiment | data | values))
    return path


def test_a_name_is_a_file_name_in_any_case():
    assert "fastspeech2" in registry.model_names("tts")
    assert registry.model_names("vocoder") == ["freevgl", "hifigan", "vocos", "waveglow"]
    assert registry.find_model("tts", "FastSpeech2") is fastspeech2.MODEL


@pytest.mark.parametrize("name", ["../tts/fastspeech2", "fastspeech2.py", "", "__init__"])
def test_an_unknown_name_is_refused_with_the_known_ones_and_the_nearest(name):
    with pytest.raises(ConfigError, match="no model"):
        registry.find_model("tts", name)
    message = r"no model 'FastSpeach2' in models/tts; did you mean fastspeech2\? \(known: "
    with pytest.raises(ConfigError, match=message):
        registry.find_model("tts", "FastSpeach2")


def test_the_model_section_is_the_models_own_dataclass_and_comes_back_the_same(folder):
    config = registry.load_config(write(folder), ["train.batch_size=3"])
    assert type(config.model) is registry.find_model("tts", "fastspeech2").config
    assert config.train.batch_size == 3
    (folder / "config.json").write_text(json.dumps(to_plain(config)))
    assert registry.load_config(folder / "config.json", task="tts") == config


def test_lines_of_a_configuration_name_the_origin_of_every_key(folder):
    train = {"max_steps": 10, "scheduler": "cosine", "lr_scheduler": {"num_warmup": 7}}
    lines = registry.config_lines(write(folder, train=train), ["train.scheduler=constant"])
    assert {
        "train.max_steps = 10  # exp.json",
        'train.scheduler = "constant"  # --set',
        "train.lr_scheduler.num_warmup = 7  # exp.json",
        "model.transformer.n_encoder_layers = 4  # default",
    } < set(lines)


OTHER_TASK = "task is tts, and this recipe is for vocoder; use a recipe in egs/tts"


@pytest.mark.parametrize(
    ("values", "overrides", "task", "message"),
    [
        ({"model_type": "x"}, [], None, r"exp\.json: model_type: no model 'x'"),
        ({}, ["model_type=x"], None, r"--set: model_type: no model 'x'"),
        ({"task": "tss"}, [], None, r'exp\.json: task is "tss", expected one of tts, vocoder'),
        ({"model": {"transfomer": {}}}, [], None, r"exp\.json: unknown key model\.transfomer; did"),
        ({}, [], "vocoder", rf"exp\.json: {OTHER_TASK}"),
    ],
)
def test_what_is_misspelt_or_of_another_task_is_named(folder, values, overrides, task, message):
    with pytest.raises(ConfigError, match=f"^{message}"):
        registry.load_config(write(folder, **values), overrides, task)


@pytest.fixture
def broken_model(tmp_path, monkeypatch):
    """Adds a file models/tts/broken.py with this end to the models."""
    source = Path(fastspeech2.__file__).read_text()
    monkeypatch.setattr(models.tts, "__path__", [*models.tts.__path__, str(tmp_path)])
    monkeypatch.setattr(registry, "model_names", lambda task: ["broken"])

    def write(end: str) -> None:
        (tmp_path / "broken.py").write_text(source.split("\nMODEL = ")[0] + end)

    yield write
    sys.modules.pop("models.tts.broken", None)


HOOKS = "config=FastSpeech2Config, network=FastSpeech2"


@pytest.mark.parametrize(
    ("end", "message"),
    [
        ("", " does not end with MODEL = Model"),
        (f"MODEL = Model({HOOKS}, tsak=FastSpeech2Task)", r", line \d+: .* argument 'tsak'"),
        (f"MODEL = Model({HOOKS})", r", line \d+: .* argument: 'task'"),
    ],
)
def test_a_missing_definition_and_a_misspelt_or_missing_hook_are_named(broken_model, end, message):
    broken_model(f"\n{end}\n")
    with pytest.raises(InputError, match=rf"models/tts/broken\.py{message}"):
        registry.find_model("tts", "broken")


def test_an_error_inside_a_model_file_stays_what_it_is(broken_model):
    broken_model("\n(lambda: len(5))()\n")
    with pytest.raises(TypeError, match="has no len"):
        registry.find_model("tts", "broken")
