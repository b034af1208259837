"""The configurations that the recipes come with."""

from pathlib import Path

import pytest

from models.registry import find, load_config

REPOSITORY = Path(__file__).parents[2]
CONFIGS = sorted(REPOSITORY.glob("egs/*/*/exp_config*.json"))
FASTSPEECH2 = REPOSITORY / "egs" / "tts" / "FastSpeech2"


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_recipe_config_is_valid_and_ends_by_itself(path):
    config = load_config(path)
    assert config.train.max_steps > 0
    assert config.log_dir == "ckpts/tts"
    assert set(config.dataset) == set(config.dataset_path)
    assert not any(Path(folder).is_absolute() for folder in config.dataset_path.values())


def test_the_full_size_model_is_the_default_of_its_dataclass():
    config = load_config(FASTSPEECH2 / "exp_config.json")
    assert config.model == find("tts", "fastspeech2").CONFIG()
    assert config.train.adam.lr == pytest.approx(config.model.transformer.encoder_hidden**-0.5)


def test_all_recipes_of_the_full_size_model_share_one_mel():
    mels = {load_config(path).preprocess.mel for path in FASTSPEECH2.glob("exp_config*.json")}
    assert len(mels) == 1


def test_the_folder_recipe_names_the_format_that_reads_folders():
    config = load_config(FASTSPEECH2 / "exp_config_folder.json")
    assert config.preprocess.corpus["folder"].format == "folder"
