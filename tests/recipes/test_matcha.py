"""The Matcha recipe from a corpus to speech, as a user calls it."""

import json

import pytest
import soundfile

from models.base.registry import load_config
from models.tts.matcha.config import MatchaConfig
from tests.recipes.runs import EGS, HELD_OUT, Place, lines_of, prepare, train_and_speak
from tests.recipes.tiny import TWO_UPDATES, tiny_model

RECIPE = EGS / "tts" / "Matcha"


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Place:
    train = {key: value for key, value in TWO_UPDATES.items() if key != "cut_mel_frame"}
    tiny = {"model": tiny_model("matcha"), "train": train}
    place = prepare(tmp_path_factory.mktemp("a recipe"), RECIPE, **tiny)
    config = json.loads(place.config.read_text(encoding="utf-8"))
    config["preprocess"]["text"] = {"phone_extractor": "lexicon"}  # no need of espeak-ng
    place.config.write_text(json.dumps(config), encoding="utf-8")
    return train_and_speak(place)


def test_three_stages_give_speech_for_every_test_sentence(trained):
    result = trained.experiment / "result"
    assert [line["id"] for line in lines_of(result)] == sorted(HELD_OUT)
    for id in HELD_OUT:
        info = soundfile.info(result / f"{id}.wav")
        assert (info.samplerate, info.channels) == (22050, 1)
        assert info.frames > 0


def test_the_published_configuration_is_the_default_of_its_dataclass():
    full, vctk = (load_config(RECIPE / f"exp_config{name}.json") for name in ("", "_vctk"))
    assert full.model == MatchaConfig()
    assert (vctk.model.mel_mean, vctk.model.mel_std) == (-6.630575, 2.482914)
    for config in (full, vctk):
        assert (config.train.batch_size, config.train.adam.lr) == (32, 1e-4)
        assert (config.train.max_steps, config.train.grad_clip_thresh) == (500000, 5)
        assert config.preprocess.mel.padding == "hifigan"
        assert config.preprocess.text.phone_extractor == "espeak_characters"
