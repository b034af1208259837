"""The Vocos recipe from recordings to scored resynthesis, as a user calls it."""

import json

import pytest
import soundfile
from safetensors.torch import load_file

from tests.recipes.runs import EGS, HELD_OUT, TEST_SET, Place, lines_of, prepare, run_stages
from tests.recipes.tiny import TWO_UPDATES

RECIPE = EGS / "vocoder" / "Vocos"
TINY = {
    "model": {
        "channels": 8,
        "expanded": 12,
        "n_layers": 1,
        "discriminator": {
            "periods": [3],
            "period_channels": [2, 2, 2, 2, 2],
            "windows": [256],
            "resolution_channels": 2,
        },
    },
    "train": TWO_UPDATES,
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Place:
    """All stages, from a folder that is not the repository's."""
    place = prepare(tmp_path_factory.mktemp("a recipe"), RECIPE, **TINY)
    run_stages(place, (), (), TEST_SET, (*TEST_SET, "--metrics", "mel_l1", "--page", "no"))
    return place


def test_recordings_become_scored_copies_of_their_length(trained):
    result = trained.folder / "ckpts" / "tiny" / "result"
    lines = lines_of(result)
    assert sorted(line["id"] for line in lines) == sorted(HELD_OUT)
    for line in lines:
        assert soundfile.info(result / line["file"]).frames % 256 == 0
        assert line["mel_l1"] > 0.1  # two updates teach nothing
    scores = json.loads((result / "scores.json").read_text())["scores"]
    assert scores["mel_l1"]["n"] == len(HELD_OUT)


def test_a_checkpoint_holds_both_networks(trained):
    (checkpoint,) = (trained.folder / "ckpts" / "tiny" / "checkpoints").glob("step-*")
    assert "blocks.0.scale" in load_file(checkpoint / "model.safetensors")
    names = load_file(checkpoint / "discriminator.safetensors").keys()
    assert {name.split(".")[0] for name in names} == {"periods", "resolutions"}
