from pathlib import Path

import pytest

from bins._flags.parsers import add_config_arguments, arguments, recipe_arguments
from utils.cli import Parser, UsageError

MODEL = ["--infer_expt_dir", "m"]


def test_values_have_their_types_and_flags_not_given_their_defaults():
    given = arguments(
        "inference", [*MODEL, "--infer_mode", "single", "--infer_text", "Hi.", "--pace", "1.25"]
    )
    assert given.infer_expt_dir == "m"
    assert given.set == given.infer_output_dir == []
    assert (given.pitch_control, given.duration_control, given.fade_out) == (1.0, 0.8, 0)
    assert (given.speaker, given.seed, given.overwrite) == (None, None, False)


def test_several_folders_are_named_at_once_or_one_by_one():
    folders = [Path("a"), Path("b"), Path("c")]
    at_once = arguments("evaluate", [*MODEL, "--infer_output_dir", *"abc"])
    one_by_one = ["--infer_output_dir=a", "--infer_output_dir", "b", "--infer_output_dir=c"]
    assert at_once.infer_output_dir == folders
    assert arguments("evaluate", [*MODEL, *one_by_one]).infer_output_dir == folders


def test_a_recipe_keeps_the_text_of_flags_and_takes_empty_text_for_none():
    texts = recipe_arguments(
        "tts",
        [
            *("-s", "3", "--infer_text", "--gpu", "--set", "a=--b", "--set=c=", "--gpu", ""),
            *("--resample", "--speaker=", "--num_workers", "", "--metrics="),
        ],
    )
    assert texts == {
        "stage": "3",
        "infer_text": "--gpu",
        "set": ["a=--b", "c="],
        "gpu": "",
        "resample": True,
        "metrics": "",
    }


@pytest.mark.parametrize("value", ["99999999999999999999", "-1", "x"])
def test_stages_2_and_3_have_one_range_of_seeds(value):
    for command, words in (
        ("train", ["--config", __file__, "--name", "a"]),
        ("inference", [*MODEL, "--infer_mode", "single", "--infer_text", "Hi."]),
        ("vocode", [*MODEL, "--infer_mode", "single", "--infer_audio_dir", "."]),
    ):
        with pytest.raises(UsageError, match=f"^--seed '{value}': expected a whole number from 0 "):
            arguments(command, [*words, f"--seed={value}"])


def test_a_command_that_is_no_stage_has_the_same_config_flags():
    parser = Parser("A command.")
    add_config_arguments(parser)
    given = parser.parse_args(["--config", "a b.json", "--set", "x=1", "--set", "y=-2"])
    assert str(given.config) == "a b.json"
    assert given.overrides == ["x=1", "y=-2"]
