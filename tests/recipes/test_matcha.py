"""The Matcha recipe from a corpus to speech, as a user calls it."""

import json

import pytest
import soundfile

from models.base.registry import load_config
from models.tts.matcha.config import MatchaConfig
from tests.recipes.runs import EGS, HELD_OUT, Place, lines_of, prepare, train_and_speak

RECIPE = EGS / "tts" / "Matcha"
TINY = {
    "model": {
        "encoder": {"hidden": 16, "n_layers": 1, "filter_size": 16, "duration_filter_size": 16},
        "decoder": {"channels": [16, 16], "n_middle_stages": 1, "head_size": 8},
        "out_size": 64,
        "steps": 2,
    },
    "train": {
        "batch_size": 2,
        "max_steps": 2,
        "valid_samples": 0,
        "tracker": "jsonl",
        "dataloader": {"num_worker": 0},
    },
    "inference": {"griffin_lim_iterations": 2},
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Place:
    place = prepare(tmp_path_factory.mktemp("a recipe"), RECIPE, **TINY)
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


def test_the_losses_of_the_paper_are_logged(trained):
    text = (trained.experiment / "log" / "metrics.jsonl").read_text()
    names = {name for line in text.splitlines()[1:] for name in json.loads(line)}
    for loss in ("flow", "prior", "duration"):
        assert any(name.endswith(loss) for name in names), names


def test_pitch_cannot_be_controlled(trained):
    refused = trained.run(
        *("--stage", "3", "--infer_mode", "single", "--infer_text", "No."),
        *("--infer_expt_dir", str(trained.experiment), "--pitch_control", "1.2"),
    )
    assert refused.returncode == 1
    assert "has no control of pitch" in refused.stderr


def test_the_published_configuration_is_the_default_of_its_dataclass():
    full, vctk = (load_config(RECIPE / f"exp_config{name}.json") for name in ("", "_vctk"))
    assert full.model == MatchaConfig()
    assert (vctk.model.mel_mean, vctk.model.mel_std) == (-6.630575, 2.482914)
    for config in (full, vctk):
        assert (config.train.batch_size, config.train.adam.lr) == (32, 1e-4)
        assert (config.train.max_steps, config.train.grad_clip_thresh) == (500000, 5)
        assert config.preprocess.mel.padding == "hifigan"
        assert config.preprocess.text.phone_extractor == "espeak_characters"
