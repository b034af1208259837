"""run.sh of a vocoder: the flags that it has, and those that only recipes for text have."""

import re
from functools import partial
from pathlib import Path

import pytest

RECIPE = Path("egs/vocoder/HiFiGAN")
MODEL = ("--stage", "3", "--infer_expt_dir", "org/name")
SINGLE = (*MODEL, "--infer_mode", "single")
BATCH = (*MODEL, "--infer_mode", "batch")


@pytest.fixture
def recipe(run_sh):
    return partial(run_sh, RECIPE)


def test_all_stages_are_those_of_a_vocoder(recipe, clone):
    result = recipe(
        "-s", "all", "-n", "a", "--infer_mode", "batch", "--infer_dataset", "LJSpeech",
        "--infer_testing_set", "test", "--set", "a.b=1",
    )  # fmt: skip
    assert result.code == 0
    modules = ["bins.fetch", "bins.preprocess", "bins.train", "bins.vocode", "bins.evaluate"]
    assert [call.module for call in result.calls] == modules
    config = f"--config={clone / RECIPE / 'exp_config.json'}"
    assert all({config, "--set=a.b=1"} <= {*call.arguments} for call in result.calls)
    assert all("--task=vocoder" in call.arguments for call in result.calls[1:3])
    for call in result.calls[-2:]:
        assert call.arguments[2:] == [
            "--infer_mode=batch", "--infer_dataset=LJSpeech", "--infer_testing_set=test",
            config, "--name=a", "--set=a.b=1",
        ]  # fmt: skip


@pytest.mark.parametrize("flag", ["--infer_audio_dir", "--infer_feature_dir"])
def test_a_path_to_be_spoken_is_looked_for_here_and_then_at_the_root(recipe, clone, tmp_path, flag):
    (tmp_path / "else where").mkdir()
    (tmp_path / "else where" / "my clips").mkdir()
    (clone / "a clip").write_text("")
    for given, expected in (
        ("my clips", f"{tmp_path}/else where/my clips"),
        ("a clip", "a clip"),
        ("../else where/my clips", f"{tmp_path}/else where/../else where/my clips"),
    ):
        flags = ("--infer_output_dir", "out", "--overwrite")
        result = recipe(*SINGLE, flag, given, *flags, folder=tmp_path / "else where")
        assert result.calls[0].arguments == [
            "-m", "bins.vocode", f"{flag}={expected}", "--infer_mode=single", "--overwrite",
            "--infer_expt_dir=org/name", f"--infer_output_dir={tmp_path}/else where/out",
        ]  # fmt: skip


@pytest.mark.parametrize("flag", ["--infer_audio_dir", "--infer_feature_dir"])
def test_copies_of_the_files_of_a_user_are_scored(recipe, clone, flag):
    (clone / "clips").mkdir()
    flags = ("-s", "3-4", "--infer_expt_dir", "org/name", "--infer_mode", "single")
    result = recipe(*flags, flag, "clips", "--infer_output_dir", "out")
    assert [call.module for call in result.calls] == ["bins.vocode", "bins.evaluate"]
    assert result.calls[1].arguments == [
        "-m", "bins.evaluate", "--infer_mode=single", "--infer_expt_dir=org/name",
        f"--infer_output_dir={clone}/out",
    ]  # fmt: skip


def test_mels_of_an_acoustic_model_are_a_matter_of_stage_1(recipe):
    first, second = recipe(
        "-s", "1-2", "-n", "a", "--from_acoustic", "org/voice", "--init_from", "org/hifigan"
    ).calls
    assert "--from_acoustic=org/voice" in first.arguments
    assert "--init_from=org/hifigan" in second.arguments
    assert not any(argument.startswith("--from_acoustic") for argument in second.arguments)


def test_help_names_the_flags_of_vocoders_and_no_others(recipe, clone):
    output = recipe("--help").output
    script, scores, own, foreign = (
        (clone / "egs" / "_shared" / f"{name}.sh").read_text()
        for name in ("recipe", "evaluation", "vocoder", "tts")
    )
    known = set(re.findall(r"^ +(?:-\w \| )?(--\w+)\)", script + scores + own, re.MULTILINE))
    others = set(re.findall(r"^ +(--\w+)\)", foreign, re.MULTILINE))
    assert {"--infer_audio_dir", "--from_acoustic", "--set"} < known
    assert {"--infer_text", "--vocoder_dir"} < others
    shown = set(re.findall(r"--\w+", output)) - {"--flag"}
    assert known <= shown
    assert not shown & others
    assert not re.search(r"^\w+\|", output, re.MULTILINE)


FAULTS = [
    ((*SINGLE, "--infer_text", "Hi."), "--infer_text goes with text-to-speech recipes"),
    ((*SINGLE, "--infer_text=Hi."), "--infer_text goes with text-to-speech recipes"),
    ((*SINGLE, "--infer_text_file", "a"), "--infer_text_file goes with text-to-speech recipes"),
    ((*SINGLE, "--vocoder_dir", "a/b"), "--vocoder_dir goes with text-to-speech recipes"),
    ((*SINGLE, "--resample"), "--resample goes with text-to-speech recipes"),
    ((*SINGLE, "--speaker", "a"), "--speaker goes with text-to-speech recipes"),
    ((*SINGLE, "--pitch_control", "2"), "--pitch_control goes with text-to-speech recipes"),
    ((*SINGLE, "--energy_control", "2"), "--energy_control goes with text-to-speech recipes"),
    ((*SINGLE, "--duration_control", "2"), "--duration_control goes with text-to-speech recipes"),
    ((*SINGLE, "--pace", "2"), "--pace goes with text-to-speech recipes"),
    ((*SINGLE, "--pitch_transform_flatten"), "--pitch_transform_flatten goes with text-to-speech"),
    ((*SINGLE, "--fade_out", "2"), "--fade_out goes with text-to-speech recipes"),
    ((*SINGLE, "--save_alignment", "ctm"), "--save_alignment goes with text-to-speech recipes"),
    ((*SINGLE, "--infer_audio", "a"), "--infer_audio; did you mean --infer_audio_dir?"),
    (MODEL, "stage 3 needs --infer_mode: single or batch"),
    ((*MODEL, "--infer_mode", "infer_from_audio"), "'infer_from_audio': expected single or batch"),
    (("-s", "3", "--infer_mode", "single"), "stage 3 needs --infer_expt_dir, or --name"),
    (SINGLE, "--infer_mode single needs --infer_audio_dir or --infer_feature_dir"),
    ((*SINGLE, "--infer_audio_dir", ""), "--infer_mode single needs --infer_audio_dir or"),
    ((*SINGLE, "--infer_audio_dir", "none"), "--infer_audio_dir none: no such file or folder"),
    ((*SINGLE, "--infer_feature_dir", "none"), "--infer_feature_dir none: no such file or folder"),
    (
        (*SINGLE, "--infer_audio_dir", "egs", "--infer_feature_dir", "egs"),
        "--infer_audio_dir and --infer_feature_dir exclude each other",
    ),
    ((*SINGLE, "--infer_dataset", "A"), "--infer_dataset goes with --infer_mode batch"),
    ((*SINGLE, "--infer_testing_set", "test"), "--infer_testing_set goes with --infer_mode batch"),
    (BATCH, "--infer_mode batch needs --infer_dataset"),
    ((*BATCH, "--infer_dataset", "A"), "--infer_mode batch needs --infer_testing_set"),
    (
        (*BATCH, "--infer_dataset", "A", "--infer_testing_set", "all"),
        "--infer_testing_set 'all': expected train, test or golden_test",
    ),
    ((*BATCH, "--infer_audio_dir", "egs"), "go with --infer_mode single"),
    (("-s", "2", "-n", "a", "--from_acoustic", "a/b"), "--from_acoustic goes with stage 1"),
    (("-s", "1", "--from_acoustic"), "--from_acoustic needs a value"),
    (("-s", "1-2"), "stage 2 needs --name"),
    (("-s", "2", "-n", "a", "--resume", "--init_from", "b/c"), "cannot be combined with"),
    (("-s", "5"), "--stage 5: the last stage is 4"),
    (("-s", "4", "-n", "a", "--vocoder_dir", "a/b"), "--vocoder_dir goes with text-to-speech"),
]


@pytest.mark.parametrize(("flags", "output"), FAULTS, ids=[" ".join(f)[:60] for f, _ in FAULTS])
def test_a_wrong_flag_is_one_line_and_exit_code_2_before_any_work(recipe, flags, output):
    result = recipe(*flags)
    assert (result.code, result.calls) == (2, [])
    assert result.output.startswith("error: ")
    assert result.output.count("\n") == 1
    assert output in result.output


def test_a_recipe_of_an_unknown_kind_is_refused(run_sh, clone):
    (clone / "egs" / "vocoder").rename(clone / "egs" / "music")
    result = run_sh("egs/music/HiFiGAN", "--stage", "1")
    assert (result.code, result.calls) == (2, [])
    assert "expected a recipe in egs/tts or egs/vocoder" in result.output
