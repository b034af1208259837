"""run.sh of a vocoder: the flags that it has, and those that only recipes for text have."""

from functools import partial
from pathlib import Path

import pytest

RECIPE = Path("egs/vocoder/HiFiGAN")
MODEL = ("--stage", "3", "--infer_expt_dir", "org/name")
SINGLE = (*MODEL, "--infer_mode", "single")


@pytest.fixture
def recipe(planned):
    return partial(planned, RECIPE)


def test_all_stages_are_those_of_a_vocoder(recipe, clone):
    batch = ("--infer_mode", "batch", "--infer_dataset", "A", "--infer_testing_set", "test")
    result = recipe("-s", "all", "-n", "a", *batch, "--set", "a.b=1")
    assert result.code == 0
    modules = ["bins.fetch", "bins.preprocess", "bins.train", "bins.vocode", "bins.evaluate"]
    assert [call.module for call in result.calls] == modules
    config = f"--config={clone / RECIPE / 'exp_config.json'}"
    assert all({config, "--set=a.b=1"} <= {*call.arguments} for call in result.calls)
    assert all("--task=vocoder" in call.arguments for call in result.calls[1:3])
    joined = [f"{flag}={value}" for flag, value in zip(batch[::2], batch[1::2], strict=True)]
    for call in result.calls[-2:]:
        assert call.arguments == [config, "--set=a.b=1", "--name=a", *joined]


@pytest.mark.parametrize("flag", ["--infer_audio_dir", "--infer_feature_dir"])
def test_files_of_a_user_are_found_here_or_at_the_root_and_scored(recipe, clone, tmp_path, flag):
    (tmp_path / "else where" / "my clips").mkdir(parents=True)
    (clone / "a clip").write_text("")
    for given, expected in (
        ("my clips", f"{tmp_path}/else where/my clips"),
        ("a clip", "a clip"),
        ("../else where/my clips", f"{tmp_path}/else where/../else where/my clips"),
    ):
        flags = ("-s", "3-4", "--infer_output_dir", "out", "--overwrite")
        result = recipe(*SINGLE, flag, given, *flags, folder=tmp_path / "else where")
        assert [call.module for call in result.calls] == ["bins.vocode", "bins.evaluate"]
        words = ["--infer_expt_dir=org/name", "--infer_mode=single", f"{flag}={expected}"]
        output = f"--infer_output_dir={tmp_path}/else where/out"
        assert result.calls[0].arguments == [*words, output, "--overwrite"]
        assert result.calls[1].arguments == [*words[:2], output]


def test_mels_of_an_acoustic_model_are_a_matter_of_stage_1(recipe):
    flags = ("--from_acoustic", "org/voice", "--init_from", "org/hifigan")
    first, second = recipe("-s", "1-2", "-n", "a", *flags).calls
    assert "--from_acoustic=org/voice" in first.arguments
    assert "--init_from=org/hifigan" in second.arguments
    assert not any(argument.startswith("--from_acoustic") for argument in second.arguments)


def test_a_recipe_of_an_unknown_kind_is_refused(planned, clone):
    (clone / "egs" / "vocoder").rename(clone / "egs" / "music")
    result = planned("egs/music/HiFiGAN", "--stage", "1")
    assert (result.code, result.calls) == (2, [])
    assert "error: no recipe 'music/HiFiGAN' (expected one of tts/FastPitch, " in result.output
