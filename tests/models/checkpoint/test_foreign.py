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

AMPHION = hifigan_amphion.FILES
OURS = "audio.json config.json lexicon.txt speakers.json stats.json vocabulary.json"
STEP, OLDER = "checkpoints/step-100000000", "checkpoints/step-99999999"
EPOCH, FIRST = "checkpoint/epoch-0125_step-0097902_loss-1.07", "checkpoint/epoch-0099_step-0077700"
SPEECH = "hifigan_speech/checkpoint/epoch-0001_step-0000200_loss-1.0"
FASTSPEECH2 = "LJSpeech/phone_pitches/statistics.json LJSpeech/phone_energys/statistics.json"
REPOSITORIES = [  # files that are needed; those that training needs, too; others
    (  # an experiment, as it is published, and as training left it
        f"{OURS} model.safetensors",
        "discriminator.safetensors",
        ".gitattributes README.md model.pt result/a.json",
    ),
    (
        f"{OURS} {STEP}/manifest.json {STEP}/model.safetensors {STEP}/trainer_state.json",
        f"{STEP}/discriminator.safetensors",
        f"{STEP}/training_state.pt log/events.out README.md {OLDER}/manifest.json "
        f"{OLDER}/model.safetensors checkpoints/step-00000900/model.safetensors",
    ),
    (  # HiFi-GAN of Amphion: one large file; in a folder of the repository; in two formats
        "args.json checkpoints/checkpoint checkpoints/step-0560000_loss-51.2373.pt",
        "",
        ".gitattributes README.md checkpoints/step-0090000_loss-60.1.pt",
    ),
    (
        f"hifigan_speech/args.json {SPEECH}/pytorch_model.bin",
        f"{SPEECH}/pytorch_model_1.bin",
        "README.md hifigan_speech/log/a.json hifigan_speech/result/b.json",
    ),
    (f"args.json {EPOCH}/model.safetensors", "", f"{EPOCH}/pytorch_model.bin"),
    *(  # FastSpeech 2 of Amphion
        (
            f"args.json lexicon/librispeech-lexicon.txt {EPOCH}/ckpts.json {EPOCH}/{weights} "
            f"{FASTSPEECH2}",
            "",
            f"{EPOCH}/optimizer.bin {EPOCH}/scheduler.bin {EPOCH}/random_states_0.pkl "
            f"{FIRST}_loss-1.2/ckpts.json {FIRST}_loss-1.2/{weights} "
            "log/fs2/events.out.tfevents.1 result/single/test_pred.wav",
        )
        for weights in ("pytorch_model.bin", "model.safetensors")
    ),
    ("config.json g_02500000", "do_02500000", "g_00900000 do_00900000 a.wav"),
    *(
        (f"config.json {name}", "", "README.md generator_v1.zip generator.py")
        for name in ("generator_v1", "generator_v1.0", "generator_all.pth.tar")
    ),
    ("config.yml model-150000.h5 stats.npy stats_f0.npy", "", "model-90000.h5"),
    ("900000.pth.tar model.yaml preprocess.yaml stats.json", "", "800000.pth.tar"),
    ("nvidia_fastpitch_210824.pt", "", "README.md waveglow.pt"),
    ("a/nvidia_waveglow256.pt", "", "README.md log/x.png"),
    ("checkpoint_WaveGlow_500.pt", "", "checkpoint_WaveGlow_50.pt"),
    ("config.yaml pytorch_model.bin", "", "README.md"),  # Vocos
]


@pytest.mark.parametrize(("needed", "training", "others"), REPOSITORIES)
def test_the_newest_checkpoint_and_its_settings_are_fetched(needed, training, others):
    names = f"{others} {training} {needed}".split()
    files, weights = needed_files(names)
    assert files == sorted(needed.split())
    assert weights == "" if "audio.json" in files else weights in files
    assert not weights.endswith((".json", ".yaml", ".yml", ".npy", ".txt", "/checkpoint"))
    assert needed_files(names, for_training=True)[0] == sorted(f"{needed} {training}".split())


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
    ("find", "names", "listed"),
    [
        (needed_files, "config.json generator_v1 generator_v2", "generator_v1, generator_v2"),
        (needed_files, "args.json a/model.safetensors b/pytorch_model.bin", "a, b"),
        (needed_files, "a/waveglow256.pt a/my_waveglow.pt", "a/my_waveglow.pt, a/waveglow256.pt"),
        (newest_of, "a.pt b.pt", r"a\.pt, b\.pt"),
        (newest_of, "b/pytorch_model.bin a/model.safetensors", "a, b"),
        (newest_of, "a/b/step-1_loss-2.pt b/b/step-3_loss-2.pt", "a/b, b/b"),
    ],
)
def test_of_several_models_none_is_guessed(find, names, listed):
    message = rf"^several models in it \({listed}\); give one of them"
    with pytest.raises(InputError, match=message):
        find(names.split())


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
