"""The FlowSpeech recipe from a corpus to speech and scores, as a user calls it."""

import json

import pytest
import soundfile
from safetensors.torch import load_file

from tests.recipes.runs import EGS, HELD_OUT, TEST_SET, Place, lines_of, prepare, train_and_speak

RECIPE = EGS / "tts" / "FlowSpeech"
SPEAK = ("--stage", "3", "--infer_mode", "single", "--infer_text", "No, it was not.")
SPEAK += ("--vocoder_dir", "griffin_lim")
TINY = {
    "model": {
        "hidden": 16,
        "encoder": {"n_layers": 1, "filter_size": 16, "kernel_size": 3},
        "prosody": {"channels": 16, "kernel_size": 3, "n_bins": 16},
        "estimator": {"channels": 16, "n_blocks": 2, "kernel_size": 3},
    },
    "train": {
        "batch_size": 2,
        "max_steps": 2,
        "adam": {"lr": 0.05},  # so that the flow moves
        "lr_scheduler": {"num_warmup": 0},
        "valid_samples": 0,
        "tracker": "none",
        "dataloader": {"num_worker": 0},
    },
    "inference": {"griffin_lim_iterations": 2},
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Place:
    return train_and_speak(prepare(tmp_path_factory.mktemp("a recipe"), RECIPE, **TINY))


def test_three_stages_give_speech_for_every_test_sentence(trained):
    result = trained.experiment / "result"
    assert [line["id"] for line in lines_of(result)] == sorted(HELD_OUT)
    for id in HELD_OUT:
        info = soundfile.info(result / f"{id}.wav")
        assert (info.samplerate, info.channels) == (22050, 1)
        assert info.frames > 0


def test_the_experiment_holds_the_average_and_the_weights_that_it_is_of(trained):
    (checkpoint,) = (trained.experiment / "checkpoints").glob("step-*2")
    average, raw = (
        load_file(checkpoint / f"{name}.safetensors") for name in ("model", "raw_model")
    )
    assert average.keys() == raw.keys()
    assert "estimator.velocity.weight" in average
    assert any(not tensor.equal(raw[name]) for name, tensor in average.items())


def test_steps_temperature_and_seed_are_recorded_and_each_gives_a_file_of_its_own(trained):
    voice = ("--infer_expt_dir", str(trained.experiment))
    wanted = [(None, None, 0), (2, None, 0), (None, 0.9, 0), (None, None, 5)]
    for steps, temperature, seed in (*wanted, wanted[1]):
        flags = [f"--seed={seed}"]
        flags += [] if steps is None else [f"--steps={steps}"]
        flags += [] if temperature is None else [f"--temperature={temperature}"]
        done = trained.run(*SPEAK, *voice, *flags)
        assert done.returncode == 0, done.stderr
    lines = lines_of(trained.experiment / "result" / "single")
    newest = {line["id"]: line for line in lines}.values()
    assert [(line["steps"], line["temperature"], line["seed"]) for line in newest] == wanted
    files = [(trained.experiment / "result/single" / line["file"]).read_bytes() for line in newest]
    assert len(set(files)) == 4


def test_its_speech_is_scored(trained):
    scored = trained.run(
        "--stage", "4", "--infer_expt_dir", str(trained.experiment), *TEST_SET,
        "--metrics", "mcd", "--copies", "no", "--page", "no",
    )  # fmt: skip
    assert scored.returncode == 0, scored.stderr
    scores = json.loads((trained.experiment / "result" / "scores.json").read_text())["scores"]
    assert scores["mcd"]["mean"] > 0
