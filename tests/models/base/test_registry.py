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
    experiment = {
        "task": "tts",
        "model_type": "FastSpeech2",
        "dataset": ["A"],
        "dataset_path": {"A": "a"},
        "log_dir": "ckpts/tts",
        "train": {"max_steps": 10},
    }
    path.write_text(json.dumps(experiment | values))
    return path


def test_a_name_is_a_file_name():
    assert "fastspeech2" in registry.model_names("tts")
    assert registry.model_names("vocoder") == ["freevgl", "hifigan", "vocos", "waveglow"]


def test_a_model_is_found_in_any_case():
    assert registry.find_model("tts", "FastSpeech2") is fastspeech2.MODEL


def test_an_unknown_model_lists_the_known_ones_and_the_nearest():
    with pytest.raises(
        ConfigError,
        match=r"no model 'FastSpeach2' in models/tts; did you mean fastspeech2\? \(known: ",
    ):
        registry.find_model("tts", "FastSpeach2")


def test_a_configuration_of_another_task_is_refused(folder):
    path = write(folder)
    assert registry.load_config(path, task="tts").task == "tts"
    with pytest.raises(
        ConfigError,
        match=r"exp\.json: task is tts, and this recipe is for vocoder; use a recipe in egs/tts",
    ):
        registry.load_config(path, task="vocoder")


@pytest.mark.parametrize("name", ["../tts/fastspeech2", "fastspeech2.py", "", "__init__"])
def test_a_name_that_is_no_module_name_is_refused(name):
    with pytest.raises(ConfigError, match="no model"):
        registry.find_model("tts", name)


def test_the_model_section_is_the_models_own_dataclass_and_comes_back_the_same(folder):
    config = registry.load_config(write(folder), ["train.batch_size=3"])
    assert type(config.model) is registry.find_model("tts", "fastspeech2").config
    assert config.train.batch_size == 3
    (folder / "config.json").write_text(json.dumps(to_plain(config)))
    assert registry.load_config(folder / "config.json") == config


def test_lines_of_a_configuration_name_the_origin_of_every_key(folder):
    train = {"max_steps": 10, "scheduler": "cosine", "lr_scheduler": {"num_warmup": 7}}
    lines = registry.config_lines(write(folder, train=train), ["train.scheduler=constant"])
    assert {
        "train.max_steps = 10  # exp.json",
        'train.scheduler = "constant"  # --set',
        "train.lr_scheduler.num_warmup = 7  # exp.json",
        "model.transformer.n_encoder_layers = 4  # default",
    } < set(lines)


def test_an_error_about_an_unknown_model_names_the_file(folder):
    with pytest.raises(ConfigError, match=r"^exp\.json: model_type: no model 'x'"):
        registry.load_config(write(folder, model_type="x"))
    with pytest.raises(ConfigError, match=r"^--set: model_type: no model 'x'"):
        registry.load_config(write(folder), ["model_type=x"])


def test_a_misspelt_task_or_model_key_is_named(folder):
    with pytest.raises(
        ConfigError, match=r'exp\.json: task is "tss", expected one of tts, vocoder'
    ):
        registry.load_config(write(folder, task="tss"))
    with pytest.raises(
        ConfigError, match=r"exp\.json: unknown key model\.transfomer; did you mean"
    ):
        registry.load_config(write(folder, model={"transfomer": {}}))


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


def test_a_model_file_without_definition_is_refused(broken_model):
    broken_model("\n")
    with pytest.raises(InputError, match=r"models/tts/broken\.py does not end with MODEL = Model"):
        registry.find_model("tts", "broken")


def test_a_misspelt_or_missing_hook_names_file_and_hook(broken_model):
    broken_model(
        "\nMODEL = Model(config=FastSpeech2Config, network=FastSpeech2, tsak=FastSpeech2Task)\n"
    )
    with pytest.raises(InputError, match=r"models/tts/broken\.py, line \d+: .* argument 'tsak'"):
        registry.find_model("tts", "broken")
    broken_model("\nMODEL = Model(config=FastSpeech2Config, network=FastSpeech2)\n")
    with pytest.raises(InputError, match=r"models/tts/broken\.py, line \d+: .* argument: 'task'"):
        registry.find_model("tts", "broken")


def test_an_error_inside_a_model_file_stays_what_it_is(broken_model):
    broken_model("\n(lambda: len(5))()\n")
    with pytest.raises(TypeError, match="has no len"):
        registry.find_model("tts", "broken")
