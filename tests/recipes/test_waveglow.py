"""The WaveGlow recipe from recordings to scored resynthesis, as a user calls it."""

import json
from pathlib import Path

import pytest
import soundfile
from safetensors.torch import load_file

from tests.recipes.runs import EGS, HELD_OUT, TEST_SET, Place, lines_of, prepare, run_stages
from tests.recipes.tiny import TWO_UPDATES

RECIPE = EGS / "vocoder" / "WaveGlow"


TINY = {"model": {"flows": 3, "channels": 4, "n_layers": 2}, "train": TWO_UPDATES}


def experiment_of(place: Place) -> Path:
    return place.folder / "ckpts" / "tiny"


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Place:
    """All stages, from a folder that is not the repository's."""
    place = prepare(tmp_path_factory.mktemp("a recipe"), RECIPE, **TINY)
    run_stages(place, (), (), TEST_SET, (*TEST_SET, "--metrics", "mel_l1", "--page", "no"))
    return place


def test_recordings_become_scored_copies_of_their_length(trained):
    result = experiment_of(trained) / "result"
    lines = lines_of(result)
    assert sorted(line["id"] for line in lines) == sorted(HELD_OUT)
    for line in lines:
        assert soundfile.info(result / line["file"]).frames % 256 == 0
        assert line["mel_l1"] > 0.1  # two updates teach nothing
    scores = json.loads((result / "scores.json").read_text())["scores"]
    assert scores["mel_l1"]["n"] == len(HELD_OUT)


def test_a_checkpoint_holds_weights_under_weight_normalisation(trained):
    (checkpoint,) = (experiment_of(trained) / "checkpoints").glob("step-*")
    names = load_file(checkpoint / "model.safetensors").keys()
    assert "flows.2.coupling.mel_conv.parametrizations.weight.original1" in names
    assert "flows.2.coupling.end.weight" in names
    assert "flows.2.mixing.weight" in names


@pytest.mark.parametrize(
    "flags", [("--seed", "1"), ("--set", "inference.vocoder_options.sigma=0.6")]
)
def test_seed_and_options_of_stage_3_change_the_speech(trained, tmp_path, flags):
    done = trained.run(
        "--stage", "3", "--infer_expt_dir", str(experiment_of(trained)), *TEST_SET,
        "--infer_output_dir", str(tmp_path), *flags,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    name = f"{HELD_OUT[0]}.wav"
    first = (experiment_of(trained) / "result" / name).read_bytes()
    assert (tmp_path / name).read_bytes() != first


def test_an_unknown_option_is_an_error_that_names_the_known_ones(trained, tmp_path):
    done = trained.run(
        "--stage", "3", "--infer_expt_dir", str(experiment_of(trained)), *TEST_SET,
        "--infer_output_dir", str(tmp_path), "--set", "inference.vocoder_options.sigm=0.6",
    )  # fmt: skip
    assert done.returncode == 1
    assert "has no option sigm; did you mean sigma? (its options: sigma, denois" in done.stderr
    assert "Traceback" not in done.stderr
