from pathlib import Path

import pytest

from bins._flags.parsers import arguments, program_arguments, recipe_arguments
from tests.commands import python
from utils.cli import UsageError

MODEL = ["--infer_expt_dir", "m"]
NAMED = ["--config", __file__, "--name", "n"]
SINGLE = [*MODEL, "--infer_mode", "single"]
BATCH = [*MODEL, "--infer_mode", "batch"]
TEXT = [*SINGLE, "--infer_text", "Hi."]
SPLIT = [*BATCH, "--infer_dataset", "Anna", "--infer_testing_set", "test"]
TRAIN = ["--config", __file__, "--name", "a"]
RAMP = [*TEXT, "--pitch_transform_custom", "ramp:1:2"]


def test_values_have_their_types_and_flags_not_given_their_defaults():
    given = arguments("inference", [*TEXT, "--pace", "1.25"])
    assert given.infer_expt_dir == "m"
    assert given.set == given.infer_output_dir == []
    assert (given.pitch_control, given.duration_control, given.fade_out) == (1.0, 0.8, 0)
    assert (given.speaker, given.seed, given.overwrite) == (None, None, False)


def test_several_folders_are_named_at_once_or_one_by_one():
    at_once = ["--infer_output_dir", "a", "b", "c"]
    one_by_one = ["--infer_output_dir=a", "--infer_output_dir", "b", "--infer_output_dir=c"]
    for words in (at_once, one_by_one):
        given = arguments("evaluate", [*MODEL, *words])
        assert given.infer_output_dir == [Path("a"), Path("b"), Path("c")]


def test_a_recipe_keeps_the_text_of_flags_and_takes_empty_text_for_none():
    words = ["-s", "3", "--infer_text", "--gpu", "--set", "a=--b", "--set=c=", "--gpu", ""]
    words += ["--resample", "--speaker=", "--num_workers", "", "--metrics="]
    expected = {"stage": "3", "infer_text": "--gpu", "set": ["a=--b", "c="], "gpu": ""}
    assert recipe_arguments("tts", words) == expected | {"resample": True, "metrics": ""}


@pytest.mark.parametrize("value", ["99999999999999999999", "-1", "x"])
def test_stages_2_and_3_have_one_range_of_seeds(value):
    vocode = [*SINGLE, "--infer_audio_dir", "."]
    for command, words in (("train", TRAIN), ("inference", TEXT), ("vocode", vocode)):
        with pytest.raises(UsageError, match=f"^--seed '{value}': expected a whole number from 0 "):
            arguments(command, [*words, f"--seed={value}"])


def test_a_command_that_is_no_stage_has_the_same_config_flags():
    words = ["--config", "a b.json", "--set", "x=1", "--set", "y=-2"]
    given = program_arguments("check_data", words)
    assert str(given.config) == "a b.json"
    assert given.overrides == ["x=1", "y=-2"]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("inference", [*NAMED, "--infer_mode", "single", "--infer_text", "Hi."]),
        ("vocode", [*NAMED, "--infer_mode", "single", "--infer_feature_dir", __file__]),
        ("evaluate", [*SINGLE, "--recordings", "."]),
        ("evaluate", [*NAMED, "--infer_dataset", "A", "--infer_testing_set", "test"]),
        ("evaluate", ["--config", __file__, "--infer_output_dir", "o", "--metrics", "wer,mcd"]),
        ("train", [*TRAIN, "--restart", "--init_from", "m"]),
    ],
)
def test_flags_that_go_together_are_accepted(command, words):
    given = vars(arguments(command, words))
    assert [word for word in words if word.startswith("--") and given[word[2:]] is None] == []


@pytest.mark.parametrize(
    ("command", "words", "message"),
    [
        ("fetch", [], "stage 0 needs --config FILE"),
        ("preprocess", [], "stage 1 needs --config FILE"),
        ("preprocess", [*TRAIN[:2], "--acoustic_data", "."], "_data needs --from_acoustic"),
        ("train", TRAIN[:2], "stage 2 needs --name NAME"),
        ("train", [*TRAIN, "--resume", "--restart"], "--resume and --restart exclude each other"),
        ("inference", MODEL, r"stage 3 needs --infer_mode single\|batch"),
        ("inference", SINGLE, "single needs --infer_text or --infer_text_file"),
        ("inference", [*SINGLE, "--infer_text", ""], "--infer_text '': the text is empty"),
        ("vocode", SINGLE, "single needs --infer_audio_dir or --infer_feature_dir"),
        ("inference", [*TEXT, "--infer_text_file", __file__], "--infer_text and --infer_text_file"),
        ("inference", [*TEXT, "--infer_dataset", "A"], "--infer_dataset goes with --infer_mode ba"),
        ("inference", [*TEXT, "--infer_testing_set", "test"], "--infer_testing_set goes with --in"),
        ("inference", [*SPLIT, "--infer_text", "Hi."], "_text goes with --infer_mode single"),
        ("vocode", [*SPLIT, "--infer_feature_dir", "."], "--infer_feature_dir goes with --infer_m"),
        ("inference", BATCH, "--infer_mode batch needs --infer_dataset NAME"),
        ("inference", SPLIT[:-2], r"--infer_mode batch needs --infer_testing_set train\|test\|go"),
        ("inference", [*TEXT, "--resample"], "--resample needs --vocoder_dir"),
        ("inference", TEXT[2:], "stage 3 needs --infer_expt_dir, or --name"),
        ("inference", [*TEXT[2:], "--name", "n"], "without --infer_expt_dir needs --config FI"),
        ("inference", [*TEXT, "--name", "n"], "--infer_expt_dir and --name exclude each other"),
        ("vocode", [*SPLIT, "--config", __file__], "--infer_expt_dir and --config exclude each"),
        ("inference", [*TEXT, "--infer_output_dir", "a", "b"], "one --infer_output_dir, found 2"),
        ("inference", [*TEXT, "--pace", "1", "--duration_control", "1"], "--pace and --duration_c"),
        ("inference", [*RAMP, "--pitch_transform_flatten"], "custom and --pitch_transform_flatten"),
        ("inference", [*RAMP, "--pitch_transform_invert"], "custom and --pitch_transform_invert"),
        ("inference", [*RAMP, "--pitch_transform_amplify=0"], "custom and --pitch_transform_ampli"),
        ("inference", [*RAMP, "--pitch_transform_shift=5"], "custom and --pitch_transform_shift"),
        ("evaluate", [], "stage 4 needs --infer_expt_dir, --name or --infer_output_dir"),
        ("evaluate", ["--infer_output_dir", "o"], "without --infer_expt_dir needs --config"),
        ("evaluate", [*MODEL, "--name", "n"], "--infer_expt_dir and --name exclude each other"),
        ("evaluate", [*MODEL, "--infer_testing_set", "test"], "--infer_testing_set needs --inf"),
        ("evaluate", [*MODEL, "--resample"], "--resample needs --vocoder_dir"),
        ("evaluate", [*MODEL, "--metrics", "wer,mel"], "--metrics mel: no such metric; did you me"),
        ("evaluate", [*MODEL, "--checks", "none,words"], r"none: no such check \(known: all, "),
    ],
)
def test_flags_that_do_not_go_together_are_named(command, words, message):
    with pytest.raises(UsageError, match=message):
        arguments(command, words)


def test_pace_is_the_inverse_of_the_duration_control():
    assert arguments("inference", TEXT).duration_control == 1
    assert arguments("inference", [*TEXT, "--pace", "1.25"]).duration_control == 0.8
    assert arguments("inference", [*TEXT, "--duration_control", "1.25"]).duration_control == 1.25


def test_the_flags_of_every_stage_are_checked_without_torch():
    commands = ["recipe", "fetch", "preprocess", "train", "inference", "vocode", "evaluate"]
    imports = "; ".join(f"import bins.{command}" for command in commands)
    code = (
        f"import sys; {imports}; from bins._flags.parsers import arguments;"
        f"arguments('evaluate', {[*MODEL, '--metrics', 'mcd']});"
        "print({'torch', 'accelerate', 'joblib', 'json5'} & {*sys.modules})"
    )
    assert python("-c", code) == (0, "set()\n", "")
