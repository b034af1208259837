"""The HiFi-GAN recipe from recordings to a vocoder, as a user calls it."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import soundfile
from safetensors.numpy import load_file

from tests.recipes.runs import (
    DEMO,
    EGS,
    HELD_OUT,
    TRAINING,
    Place,
    lines_of,
    run_stages,
    write_config,
)
from tests.recipes.tiny import TWO_UPDATES, tiny_model

RUN = EGS / "vocoder" / "HiFiGAN" / "run.sh"
HOP, RATE = 256, 22050


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Place:
    """All stages for a folder of clips without texts, with networks that train in no time."""
    folder = tmp_path_factory.mktemp("a recipe")
    (folder / "corpus" / "a reader").mkdir(parents=True)
    for id in TRAINING + HELD_OUT:
        shutil.copy(DEMO / "wavs" / f"{id}.flac", folder / "corpus" / "a reader")
    config = write_config(
        folder / "exp config.json",
        RUN.parent / "exp_config_folder.json",
        dataset="folder",
        preprocess={"split": {"valid": 0.1, "test": 0.25, "golden_size": 1}},
        model=tiny_model("hifigan"),
        train=TWO_UPDATES,
    )
    place = Place(folder, config, RUN)
    test_set = ("--infer_mode", "batch", "--infer_dataset", "folder", "--infer_testing_set", "test")
    run_stages(place, (), (), test_set, test_set)
    (folder / "ckpts" / "tiny").rename(place.experiment)
    return place


def checkpoints_of(experiment: Path) -> list[str]:
    return sorted(path.name for path in (experiment / "checkpoints").glob("step-*"))


def test_stage_3_gives_a_copy_of_every_test_recording(trained):
    result = trained.experiment / "result"
    lines = lines_of(result)
    ids = json.loads((trained.folder / "data" / "folder" / "test.json").read_text())
    assert [line["id"] for line in lines] == ids
    assert len(lines) == 2
    for line in lines:
        info = soundfile.info(result / line["file"])
        assert (info.samplerate, info.channels, info.subtype) == (RATE, 1, "PCM_16")
        assert info.frames % HOP == 0
        assert line["seconds"] == pytest.approx(info.frames / RATE, abs=1e-4)
        assert line["real_time_factor"] > 0
        assert 0.5 < line["mel_l1"] < 10  # two updates teach nothing


def test_the_fourth_stage_scores_the_copies_by_the_same_mel_distance(trained):
    result = trained.experiment / "result"
    report = json.loads((result / "scores.json").read_text())
    rows = [json.loads(row) for row in (result / "scores.jsonl").read_text().splitlines()]
    copied = {line["id"]: line["mel_l1"] for line in lines_of(result)}
    assert {row["id"]: row["mel_l1"] for row in rows} == pytest.approx(copied, abs=1e-4)
    assert (report["utterances"], report["scores"]["mel_l1"]["n"]) == (2, 2)
    assert report["scores"]["mstft"]["mean"] > 0.5
    assert report["vocoder"].endswith("tiny")
    # a folder of audio has no texts
    assert report["skipped"]["wer"].startswith(("lacks a text", "not installed (pip"))
    assert {"mcd", "f0rmse", "energy_rmse", "speech_rate"} < report["scores"].keys()
    assert set(report["flags"]) >= {"silence", "clipping"}
    assert (result / "report.html").stat().st_size > 10000


def test_the_experiment_speaks_a_folder_of_audio_at_another_rate(trained, tmp_path):
    wav, _ = soundfile.read(DEMO / "wavs" / "LJ001-0002.flac")
    (tmp_path / "my clips").mkdir()
    soundfile.write(tmp_path / "my clips" / "half the rate.wav", wav[::2], RATE // 2)
    flags = ("--infer_audio_dir", "my clips", "--infer_output_dir", "out put")
    done = trained.speak(*flags, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "half the rate.wav: resampled from 11025 to 22050 Hz" in done.stderr
    (line,) = lines_of(tmp_path / "out put" / "single")
    assert line["file"] == "half the rate.wav"
    frames = soundfile.info(tmp_path / "out put" / "single" / line["file"]).frames
    assert frames == pytest.approx(len(wav), abs=HOP)


def test_one_checkpoint_speaks_mels_alone_and_names_the_bad_one(trained, tmp_path):
    mels = tmp_path / "mels"
    mels.mkdir()
    np.save(mels / "good.npy", np.full((80, 9), -5.0, dtype=np.float32))
    np.save(mels / "bad.npy", np.full((9, 80), -5.0, dtype=np.float32))
    (checkpoint,) = checkpoints_of(trained.experiment)
    flags = ("--infer_feature_dir", str(mels), "--infer_output_dir", str(tmp_path))
    done = trained.speak(*flags, model=trained.experiment / "checkpoints" / checkpoint)
    assert done.returncode == 1
    assert "1 of 2 mels could not be synthesised:\n  bad: " in done.stderr
    assert "expected (M, T) with M 80; transpose it" in done.stderr
    assert "Traceback" not in done.stderr
    assert soundfile.info(tmp_path / "single" / "good.wav").frames == 9 * HOP


def test_training_goes_on_where_it_stopped_among_strange_files(trained):
    whole = trained.folder / "ckpts" / "resumed"
    shutil.copytree(trained.experiment, whole)
    for stranger in ("eval", "step-00000009.partial", "step-99_loss-51.2373"):
        (whole / "checkpoints" / stranger).mkdir()
        (whole / "checkpoints" / stranger / "sample.wav").touch()
    flags = ("--name", "resumed", "--resume", "--set", "train.max_steps=3")
    done = trained.run("--stage", "2", "--config", str(trained.config), *flags)
    assert done.returncode == 0, done.stderr
    assert f"resumed from {whole / 'checkpoints' / 'step-00000002'}" in done.stderr
    assert "step-00000003" in checkpoints_of(whole)
    assert (whole / "checkpoints" / "eval" / "sample.wav").exists()


def test_a_vocoder_starts_from_the_weights_of_another_in_every_network(trained):
    flags = ("--init_from", str(trained.experiment), "--set", "train.max_steps=1")
    flags += ("--name", "tuned", "--set", "train.adam.lr=0")
    done = trained.run("--stage", "2", "--config", str(trained.config), *flags)
    assert done.returncode == 0, done.stderr
    (first,) = checkpoints_of(trained.experiment)
    (tuned,) = checkpoints_of(trained.folder / "ckpts" / "tuned")
    for name in ("model.safetensors", "discriminator.safetensors"):
        before = load_file(trained.experiment / "checkpoints" / first / name)
        after = load_file(trained.folder / "ckpts" / "tuned" / "checkpoints" / tuned / name)
        learnt = [key for key in before if not key.endswith(("_u", "_v"))]
        assert learnt
        assert all(np.array_equal(before[key], after[key]) for key in learnt)
