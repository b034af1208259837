import pytest

from utils.cli import Parser, UsageError
from utils.inference_flags import add_inference_arguments, check_inference_arguments


def parse(*words: str):
    flags = Parser("A command.")
    add_inference_arguments(flags, "a text", "a split")
    flags.add_argument("--infer_text")
    return flags.parse_args(words)


MODEL = ("--infer_expt_dir", "m", "--infer_mode")


def test_finished_wavs_are_kept_unless_overwriting_is_asked_for():
    assert not parse(*MODEL, "batch").overwrite
    assert parse(*MODEL, "batch", "--overwrite").overwrite


def test_an_experiment_is_named_by_a_folder_or_by_configuration_and_name():
    for model in (("--infer_expt_dir", "m"), ("--config", "c", "--name", "n")):
        given = parse(*model, "--infer_mode", "single", "--infer_text", "Hi.")
        check_inference_arguments(given, ["infer_text"])
    given = parse("--name", "n", "--infer_mode", "single", "--infer_text", "Hi.")
    with pytest.raises(UsageError, match="give --infer_expt_dir, or --config and --name"):
        check_inference_arguments(given, ["infer_text"])
    given = parse(*MODEL, "single", "--infer_text", "Hi.", "--config", "c")
    with pytest.raises(UsageError, match="--infer_expt_dir and --config exclude each other"):
        check_inference_arguments(given, ["infer_text"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("single",), "--infer_mode single needs one of --infer_text"),
        (("single", "--infer_text", "Hi.", "--infer_dataset", "A"), "--infer_dataset and --infer_"),
        (("batch",), "--infer_mode batch needs --infer_dataset"),
        (("batch", "--infer_dataset", "A"), "batch needs --infer_testing_set"),
        (("batch", "--infer_text", "Hi."), "--infer_text and --infer_mode batch exclude"),
    ],
)
def test_flags_of_the_other_mode_and_missing_ones_are_named(words, message):
    with pytest.raises(UsageError, match=message):
        check_inference_arguments(parse(*MODEL, *words), ["infer_text"])
