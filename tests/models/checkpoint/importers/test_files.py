from pathlib import PurePosixPath

import pytest

from models.checkpoint.foreign import beside, newest
from models.checkpoint.importers import (
    fastspeech2_ming024,
    fastspeech2_tensorflowtts,
    hifigan_amphion,
    hifigan_authors,
    waveglow_nvidia,
)
from utils.errors import InputError

AMPHION = hifigan_amphion.FILES


def newest_of(names, files=AMPHION):
    return str(newest(map(PurePosixPath, names), files))


@pytest.mark.parametrize(
    ("importer", "name", "number"),
    [
        (hifigan_amphion, "epoch-0125_step-0097902_loss-1.07/model.safetensors", 97902),
        (hifigan_amphion, "step-0560000_loss-51.2373.pt", 560000),
        (hifigan_authors, "g_02500000", 2500000),
        (fastspeech2_ming024, "900000.pth.tar", 900000),
        (fastspeech2_ming024, "best.pth.tar", None),
        (fastspeech2_tensorflowtts, "fastspeech2-150k.h5", 150000),
        (waveglow_nvidia, "checkpoint_WaveGlow_7", 7),
        (waveglow_nvidia, "nvidia_waveglow256.pt", None),
    ],
)
def test_numbers_are_read_from_the_names_of_each_project(importer, name, number):
    assert importer.FILES.number_in(PurePosixPath(name)) == number


def test_the_newest_has_the_highest_number_then_the_last_epoch():
    names = [
        "epoch-0001_step-20_loss-1",
        "final_epoch-0003_step-20_loss-1",
        "epoch-9_step-3_loss-1",
    ]
    paths = [f"checkpoint/{name}/pytorch_model.bin" for name in names]
    assert newest_of(paths) == paths[1]


@pytest.mark.parametrize(
    "names",
    [
        ["checkpoint/epoch-1_step-2_loss-3/pytorch_model.bin", "pretrained/pytorch_model.bin"],
        ["checkpoints/step-0000002_loss-3.pt", "checkpoints/old/model.safetensors"],
        ["step-0000010_loss-1.PT", "step-0000009_loss-1.pt"],
        ["a/model.safetensors", "a/pytorch_model.bin"],
        ["it.pt", "optimizer.pt", "training_state.pt", "notes.txt", "result/model.safetensors"],
    ],
)
def test_other_files_are_ignored(names):
    assert newest_of(reversed(names)) == names[0]


@pytest.mark.parametrize(
    ("names", "listed"),
    [
        (["a.pt", "b.pt"], r"a\.pt, b\.pt"),
        (["b/pytorch_model.bin", "a/model.safetensors"], "a, b"),
        (["a/checkpoint/step-1_loss-2.pt", "b/checkpoint/step-3_loss-2.pt"], "a/checkpoint, b/ch"),
    ],
)
def test_of_several_models_none_is_guessed(names, listed):
    with pytest.raises(InputError, match=rf"^several models in it \({listed}.*; give one of them"):
        newest_of(names)


def test_settings_are_those_of_the_nearest_folder(tmp_path):
    weights = tmp_path / "a" / "b" / "weights.pt"
    weights.parent.mkdir(parents=True)
    (tmp_path / "args.json").touch()
    assert beside(weights, "args.json", 2) == tmp_path / "args.json"
    message = (
        rf"weights.pt: no args.json in its folder, nor in the 1 above; copy .* to {weights.parent}"
    )
    with pytest.raises(InputError, match=message):
        beside(weights, "args.json", 1)
    (tmp_path / "a" / "args.json").touch()
    assert beside(weights, "args.json", 2) == tmp_path / "a" / "args.json"
