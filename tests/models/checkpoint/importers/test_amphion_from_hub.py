"""Models that others published, by their names, from a Hub on this machine with their layouts."""

from pathlib import Path

import numpy as np
import pytest
import torch
from huggingface_hub import constants

from models.checkpoint.loading import load_model
from models.checkpoint.publish import convert_to_experiment
from models.synthesizer.synthesizer import Synthesizer
from models.vocoder.hifigan import HiFiGAN
from models.vocoder.hifigan.config import GeneratorConfig
from tests.commands import command
from tests.models.checkpoint.importers import fastspeech2_originals, hifigan_originals
from tests.models.checkpoint.importers.test_fastspeech2_amphion import args_json, statistics
from utils.config import to_plain
from utils.errors import InputError
from utils.files import read_jsonl

FASTSPEECH2, HIFIGAN = "amphion/fastspeech2_ljspeech", "amphion/hifigan_ljspeech"
NEWEST = "checkpoint/epoch-0125_step-0097902_loss-1.074404"
GENERATOR = GeneratorConfig(
    upsample_rates=(8, 8, 4),
    upsample_kernel_sizes=(16, 16, 8),
    upsample_initial_channel=16,
    resblock_kernel_sizes=(3,),
    resblock_dilation_sizes=((1, 3, 5),),
)


def generator(seed):
    torch.manual_seed(seed)
    return HiFiGAN(GENERATOR, 80).eval()


def write_hifigan(folder):
    audio = {"sample_rate": 22050, "n_fft": 1024, "win_size": 1024, "hop_size": 256}
    sizes = to_plain(GENERATOR)
    args = hifigan_originals.amphion_args(sizes, **audio, n_mel=80, fmax=8000)
    state = {f"module.{name}": tensor for name, tensor in generator(0).state_dict().items()}
    return hifigan_originals.write_amphion(folder, state, generator(1).state_dict(), args)


def write_fastspeech2(folder, weights="pytorch_model.bin"):
    """The layout of amphion/fastspeech2_ljspeech."""
    newest = folder / NEWEST
    newest.mkdir(parents=True)
    torch.save(fastspeech2_originals.checkpoint(n_rows=152), newest / weights)
    for name in ("optimizer.bin", "scheduler.bin", "random_states_0.pkl"):
        (newest / name).write_bytes(b"never fetched")
    (newest / "ckpts.json").write_text("[]")
    (folder / "args.json").write_text(args_json())
    statistics(folder / "LJSpeech")
    return folder


def files_of(folder):
    files = filter(Path.is_file, folder.rglob("*"))
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def layouts(tmp_path_factory):
    root = tmp_path_factory.mktemp("published")
    return write_fastspeech2(root / "fastspeech2"), write_hifigan(root / "hifigan")


@pytest.fixture
def amphion(hub, layouts):
    """The Hub with both models; files are asked for only where they are needed."""
    for name, folder in zip((FASTSPEECH2, HIFIGAN), layouts, strict=True):
        hub.publish(name, files_of(folder))
    return hub


def test_hifigan_by_its_name_gives_the_numbers_of_its_newest_weights(amphion, tmp_path):
    model = load_model(HIFIGAN)
    mel = torch.randn(1, 80, 9) - 4
    assert torch.allclose(model.network.infer(mel), generator(0).infer(mel), atol=1e-6)
    assert model.step == 560_000
    assert model.origin.startswith(f"{HIFIGAN}@")
    assert sorted(amphion.fetched()) == [
        "args.json",
        "checkpoints/checkpoint",
        "checkpoints/step-0560000_loss-51.2373.pt",
    ]
    convert_to_experiment(HIFIGAN, tmp_path / "imported")
    imported = load_model(tmp_path / "imported").network.infer(mel)
    assert torch.allclose(imported, generator(0).infer(mel), atol=1e-6)
    assert "| updates | 560000 |" in (tmp_path / "imported" / "README.md").read_text()


def test_fastspeech2_by_its_name_comes_with_its_statistics(amphion):
    model = load_model(FASTSPEECH2)
    assert model.step == 97_902
    (stats,) = model.assets.stats.speakers.values()
    assert stats.f0_phone.mean == pytest.approx(207.58)
    assert sorted(amphion.fetched()) == [
        "LJSpeech/phone_energys/statistics.json",
        "LJSpeech/phone_pitches/statistics.json",
        "args.json",
        f"{NEWEST}/ckpts.json",
        f"{NEWEST}/pytorch_model.bin",
    ]


def test_both_together_speak_as_the_same_files_in_folders_do(amphion, layouts, monkeypatch):
    speech = Synthesizer(FASTSPEECH2, vocoder=HIFIGAN)("Hello, world!")
    local = Synthesizer(layouts[0], vocoder=layouts[1])("Hello, world!")
    assert speech.sample_rate == 22050
    assert len(speech.wav) == speech.mel.shape[1] * 256
    np.testing.assert_array_equal(speech.wav, local.wav)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    amphion.asked.clear()
    offline = Synthesizer(FASTSPEECH2, vocoder=HIFIGAN)("Hello, world!")
    np.testing.assert_array_equal(offline.wav, local.wav)
    assert amphion.asked == []


def test_a_repository_whose_settings_are_missing_is_refused(hub, layouts):
    files = files_of(layouts[1])
    del files["args.json"]
    hub.publish("org/first_upload", files)
    with pytest.raises(InputError, match=r"^org/first_upload: there is no model in it"):
        load_model("org/first_upload")
    assert hub.fetched() == []


def test_stage_3_by_names(amphion, tmp_path):
    voice = ("--infer_expt_dir", FASTSPEECH2, "--vocoder_dir", HIFIGAN)
    text = ("--infer_mode", "single", "--infer_text", "Hello.")
    done = command("inference", *voice, *text, "--infer_output_dir", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert f"{HIFIGAN}: from the Hub, commit " in done.stderr
    assert (tmp_path / "out" / "single" / "text-0001.wav").stat().st_size > 1000
    (line,) = read_jsonl(tmp_path / "out" / "single" / "metadata.jsonl")
    assert line["vocoder"] == f"{HIFIGAN}@{amphion.repos[HIFIGAN].refs['main']}"
