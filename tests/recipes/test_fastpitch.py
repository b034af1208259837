"""The FastPitch recipe from a corpus to speech, as a user calls it."""

import json
import os
from pathlib import Path

import pytest
import soundfile
from safetensors.torch import load_file

from tests.recipes.runs import EGS, HELD_OUT, TRAINING, Place, lines_of, write_corpus

RECIPE = EGS / "tts" / "FastPitch"


def write_config(folder: Path) -> Path:
    """The recipe for LJSpeech, with a network that does two updates in no time."""
    stack = {"layers": 1, "heads": 2, "head_size": 4, "filter_size": 16}
    config = {
        "base_config": os.path.relpath(RECIPE / "exp_config.json", folder),
        "dataset": ["mini"],
        "dataset_path": {"mini": str(folder / "corpus")},
        "log_dir": str(folder / "ckpts"),
        "preprocess": {
            "processed_dir": str(folder / "data"),
            "corpus": {"mini": {"format": "ljspeech"}},
            "split": {"test_ids": HELD_OUT, "valid_ids": TRAINING[:1], "golden_size": 1},
        },
        "model": {
            "hidden": 16,
            "encoder": stack,
            "decoder": stack,
            "duration_predictor": {"filter_size": 16},
            "pitch_predictor": {"filter_size": 16},
            "energy_predictor": {"filter_size": 16},
            "aligner": {"hidden": 8, "attention_channels": 8},
        },
        "train": {
            "batch_size": 2,
            "gradient_accumulation_step": 2,
            "max_steps": 2,
            "valid_samples": 0,
            "tracker": "none",
            "dataloader": {"num_worker": 0},
        },
        "inference": {"griffin_lim_iterations": 2},
    }
    path = folder / "exp config.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Place:
    """Stages 1 to 3, from a folder that is not the repository's."""
    folder = tmp_path_factory.mktemp("a recipe")
    write_corpus(folder / "corpus")
    place = Place(folder, write_config(folder), RECIPE / "run.sh")
    done = place.run(
        "--stage", "1-3", "--config", "exp config.json", "--name", "tiny",
        "--num_workers", "1", "--infer_mode", "batch", "--infer_dataset", "mini",
        "--infer_testing_set", "test", "--vocoder_dir", "griffin_lim", cwd=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (folder / "ckpts" / "tiny").rename(place.experiment)
    return place


def test_three_stages_give_speech_for_every_test_sentence(trained):
    result = trained.experiment / "result"
    assert [line["id"] for line in lines_of(result)] == sorted(HELD_OUT)
    for id in HELD_OUT:
        info = soundfile.info(result / f"{id}.wav")
        assert (info.samplerate, info.channels) == (22050, 1)
        assert info.frames > 0


def test_the_experiment_holds_the_voice_and_its_aligner(trained):
    (checkpoint,) = (trained.experiment / "checkpoints").glob("step-*2")
    voice, aligner = (
        load_file(checkpoint / f"{name}.safetensors") for name in ("model", "aligner")
    )
    assert "energy.embedding.weight" in voice
    assert "phone_keys.weight" in aligner
    assert not aligner.keys() & voice.keys()
