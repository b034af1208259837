"""The FastPitch recipe from a corpus to speech, as a user calls it."""

import pytest
import soundfile
from safetensors.torch import load_file

from tests.recipes.runs import EGS, HELD_OUT, Place, lines_of, prepare, train_and_speak

RECIPE = EGS / "tts" / "FastPitch"


STACK = {"n_layers": 1, "heads": 2, "head_size": 4, "filter_size": 16}
TINY = {
    "model": {
        "hidden": 16,
        "encoder": STACK,
        "decoder": STACK,
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


def test_the_experiment_holds_the_voice_and_its_aligner(trained):
    (checkpoint,) = (trained.experiment / "checkpoints").glob("step-*2")
    voice, aligner = (
        load_file(checkpoint / f"{name}.safetensors") for name in ("model", "aligner")
    )
    assert "energy.embedding.weight" in voice
    assert "phone_keys.weight" in aligner
    assert not aligner.keys() & voice.keys()
