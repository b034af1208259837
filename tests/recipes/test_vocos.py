"""The Vocos recipe from recordings to scored resynthesis, as a user calls it."""

import json

import soundfile
from safetensors.torch import load_file

from tests.recipes.runs import EGS, HELD_OUT, TEST_SET, lines_of, prepare, run_stages
from tests.recipes.tiny import TWO_UPDATES, tiny_model


def test_recordings_become_scored_copies_of_their_length(tmp_path):
    tiny = {"model": tiny_model("vocos"), "train": TWO_UPDATES}
    place = prepare(tmp_path, EGS / "vocoder" / "Vocos", **tiny)
    run_stages(place, (), (), TEST_SET, (*TEST_SET, "--metrics", "mel_l1", "--page", "no"))
    experiment = place.folder / "ckpts" / "tiny"
    lines = lines_of(experiment / "result")
    assert sorted(line["id"] for line in lines) == sorted(HELD_OUT)
    for line in lines:
        assert soundfile.info(experiment / "result" / line["file"]).frames % 256 == 0
        assert line["mel_l1"] > 0.1  # two updates teach nothing
    scores = json.loads((experiment / "result" / "scores.json").read_text())["scores"]
    assert scores["mel_l1"]["n"] == len(HELD_OUT)
    (checkpoint,) = (experiment / "checkpoints").glob("step-*")
    assert "blocks.0.scale" in load_file(checkpoint / "model.safetensors")
    names = load_file(checkpoint / "discriminator.safetensors").keys()
    assert {name.split(".")[0] for name in names} == {"periods", "resolutions"}
