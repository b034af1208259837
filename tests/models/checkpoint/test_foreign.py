from pathlib import PurePosixPath

import pytest

from models.checkpoint.foreign import beside, needed_files, newest
from models.checkpoint.importers import (
    fastspeech2_ming024,
    fastspeech2_tensorflowtts,
    hifigan_amphion,
    hifigan_authors,
    waveglow_nvidia,
)
from utils.errors import InputError

CHECKPOINT = ["manifest.json", "model.safetensors", "trainer_state.json", "training_state.pt"]

AMPHION = hifigan_amphion.FILES


def ours(*more):
    settings = ["audio.json", "config.json", "lexicon.txt", "speakers.json", "stats.json"]
    return [".gitattributes", "README.md", "vocabulary.json", *settings, *more]


def test_a_published_experiment_is_its_settings_and_its_weights():
    names = ours("model.safetensors", "discriminator.safetensors", "model.pt", "result/a.json")
    wanted = sorted(set(ours("model.safetensors")) - {".gitattributes", "README.md"})
    assert needed_files(names)[0] == wanted
    assert needed_files(names, for_training=True)[0] == sorted(
        [*wanted, "discriminator.safetensors"]
    )


def test_of_an_experiment_as_training_left_it_the_newest_checkpoint_is_fetched():
    steps = ["step-00000900", "step-100000000", "step-99999999"]
    names = ours(*(f"checkpoints/{step}/{name}" for step in steps for name in CHECKPOINT))
    names += ["checkpoints/step-100000000/discriminator.safetensors", "log/events.out"]
    chosen = [name for name in needed_files(names)[0] if "/" in name]
    assert chosen == [f"checkpoints/step-100000000/{name}" for name in CHECKPOINT[:3]]
    chosen = needed_files(names, for_training=True)[0]
    assert "checkpoints/step-100000000/discriminator.safetensors" in chosen
    assert "checkpoints/step-100000000/training_state.pt" not in chosen


def test_amphions_hifigan_as_published_is_one_large_file_and_its_settings():
    newest = "checkpoints/step-0560000_loss-51.2373.pt"
    names = [
        ".gitattributes",
        "README.md",
        "args.json",
        "checkpoints/checkpoint",
        "checkpoints/step-0090000_loss-60.1.pt",
        newest,
    ]
    assert needed_files(names)[0] == ["args.json", "checkpoints/checkpoint", newest]


@pytest.mark.parametrize("weights", ["pytorch_model.bin", "model.safetensors"])
def test_amphions_fastspeech2_as_published_comes_with_its_statistics(weights):
    newest = "checkpoint/epoch-0125_step-0097902_loss-1.074404"
    older = "checkpoint/epoch-0099_step-0077700_loss-1.2"
    state = ["ckpts.json", "optimizer.bin", "scheduler.bin", "random_states_0.pkl", weights]
    names = [
        "args.json",
        "LJSpeech/phone_pitches/statistics.json",
        "LJSpeech/phone_energys/statistics.json",
        "lexicon/librispeech-lexicon.txt",
        *(f"{folder}/{name}" for folder in (newest, older) for name in state),
        "log/fs2/events.out.tfevents.1",
        "result/single/test_pred.wav",
    ]
    assert needed_files(names)[0] == [
        "LJSpeech/phone_energys/statistics.json",
        "LJSpeech/phone_pitches/statistics.json",
        "args.json",
        f"{newest}/ckpts.json",
        f"{newest}/{weights}",
        "lexicon/librispeech-lexicon.txt",
    ]


def test_an_experiment_in_a_folder_of_the_repository():
    folder = "hifigan_speech/checkpoint/epoch-0001_step-0000200_loss-1.0"
    names = [
        "README.md",
        "hifigan_speech/args.json",
        "hifigan_speech/log/a.json",
        "hifigan_speech/result/b.json",
        f"{folder}/pytorch_model.bin",
        f"{folder}/pytorch_model_1.bin",
    ]
    wanted = ["hifigan_speech/args.json", f"{folder}/pytorch_model.bin"]
    assert needed_files(names)[0] == sorted(wanted)
    trained = needed_files(names, for_training=True)[0]
    assert trained == sorted([*wanted, f"{folder}/pytorch_model_1.bin"])


def test_of_one_checkpoint_in_two_formats_the_safe_one_is_fetched():
    folder = "checkpoint/epoch-0001_step-0000200_loss-1.0"
    names = ["args.json", f"{folder}/model.safetensors", f"{folder}/pytorch_model.bin"]
    assert needed_files(names)[0] == ["args.json", f"{folder}/model.safetensors"]


def test_the_authors_hifigan_is_its_newest_generator():
    names = ["config.json", "g_02500000", "g_00900000", "do_02500000", "do_00900000", "a.wav"]
    assert needed_files(names)[0] == ["config.json", "g_02500000"]
    trained = needed_files(names, for_training=True)[0]
    assert trained == ["config.json", "do_02500000", "g_02500000"]


@pytest.mark.parametrize("name", ["generator_v1", "generator_v1.0", "generator_all.pth.tar"])
def test_a_generator_that_was_published_under_a_name(name):
    names = ["config.json", name, "README.md", "generator_v1.zip", "generator.py"]
    assert needed_files(names)[0] == ["config.json", name]


@pytest.mark.parametrize(
    ("names", "listed"),
    [
        (["config.json", "generator_v1", "generator_v2"], "generator_v1, generator_v2"),
        (["args.json", "a/model.safetensors", "b/pytorch_model.bin"], "a, b"),
    ],
)
def test_of_several_models_none_is_guessed(names, listed):
    with pytest.raises(InputError, match=rf"several models in it \({listed}\)"):
        needed_files(names)


def test_tensorflowtts_fastspeech2_comes_with_its_statistics():
    names = ["config.yml", "model-150000.h5", "model-90000.h5", "stats.npy", "stats_f0.npy"]
    assert needed_files(names)[0] == [name for name in names if "90000" not in name]


def test_ming024s_fastspeech2_comes_with_its_yaml_files():
    names = ["900000.pth.tar", "800000.pth.tar", "model.yaml", "preprocess.yaml", "stats.json"]
    assert needed_files(names)[0] == [
        "900000.pth.tar",
        "model.yaml",
        "preprocess.yaml",
        "stats.json",
    ]


@pytest.mark.parametrize(
    "names",
    [
        [],
        ["README.md", "config.json", "model.safetensors"],  # of some other kind
        ["config.json", "audio.json"],
        ["args.json", "optimizer.pt", "LJSpeech/statistics.json"],
        ["checkpoints/step-0560000_loss-51.2373.pt"],
        [f"model-{i:05d}-of-00030.safetensors" for i in range(30)],
    ],
)
def test_a_repository_without_a_model_is_refused_before_anything_is_fetched(names):
    first = sorted(names)[0] if names else "nothing"
    with pytest.raises(InputError, match=rf"there is no model in it.*it holds {first}"):
        needed_files(names)


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
        ["it.pt", "optimizer.pt", "training_state.pt", "notes.txt"],
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
def test_of_several_weights_none_is_guessed(names, listed):
    with pytest.raises(InputError, match=rf"^several models in it \({listed}.*; give one of them"):
        newest_of(names)


def test_settings_are_those_of_the_nearest_folder(tmp_path):
    weights = tmp_path / "a" / "b" / "weights.pt"
    weights.parent.mkdir(parents=True)
    (tmp_path / "args.json").touch()
    assert beside(weights, "args.json", 2) == tmp_path / "args.json"
    message = rf"weights.pt: no args.json in its folder; copy .* to {weights.parent}"
    with pytest.raises(InputError, match=message):
        beside(weights, "args.json", 1)
    (tmp_path / "a" / "args.json").touch()
    assert beside(weights, "args.json", 2) == tmp_path / "a" / "args.json"
