import subprocess
import sys

import pytest

from bins.inference import arguments, main
from models.synthesizer.prosody.contours import PitchContour
from models.synthesizer.runs import text_synthesis
from models.synthesizer.text import text_files
from models.synthesizer.text.text_files import InputText
from modules.pitch_transform import PitchTransform
from utils.cli import UsageError

MODEL = ["--infer_expt_dir", "m"]
SINGLE = [*MODEL, "--infer_mode", "single"]
BATCH = [*MODEL, "--infer_mode", "batch"]
TEST = ["--infer_testing_set", "test"]


@pytest.mark.parametrize(
    "flags",
    [
        [*SINGLE, "--infer_text", "Hi."],
        [*SINGLE, "--infer_text_file", "texts.txt"],
        [*SINGLE, "--infer_text", "Hi.", "--vocoder_dir", "v", "--resample"],
        [*BATCH, "--infer_dataset", "Anna", *TEST],
        ["--config", "c", "--name", "n", "--infer_mode", "single", "--infer_text", "Hi."],
    ],
)
def test_flags_that_go_together_are_accepted(flags):
    assert arguments(flags).infer_mode in flags


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (SINGLE, "single needs one of --infer_text and --infer_text_file"),
        ([*SINGLE, "--infer_text", "Hi.", "--infer_text_file", "f"], "one of --infer_text and"),
        (
            [*SINGLE, "--infer_text", "Hi.", "--infer_dataset", "Anna"],
            "--infer_dataset and --infer_mode single exclude",
        ),
        (
            [*SINGLE, "--infer_text", "Hi.", *TEST],
            "--infer_testing_set and --infer_mode single exclude",
        ),
        ([*BATCH, *TEST], "--infer_mode batch needs --infer_dataset"),
        ([*BATCH, "--infer_dataset", "Anna"], "--infer_mode batch needs --infer_testing_set"),
        (
            [*BATCH, "--infer_dataset", "Anna", *TEST, "--infer_text", ""],
            "--infer_text and --infer_mode batch exclude",
        ),
        ([*SINGLE, "--infer_text", "Hi.", "--resample"], "--resample goes with --vocoder_dir"),
        (["--infer_mode", "single", "--infer_text", "Hi."], "--infer_expt_dir, or --config and"),
        (
            ["--infer_mode", "single", "--infer_text", "Hi.", "--name", "n"],
            "--infer_expt_dir, or --config and --name",
        ),
        (
            [*SINGLE, "--infer_text", "Hi.", "--name", "n"],
            "--infer_expt_dir and --name exclude each other",
        ),
    ],
)
def test_flags_that_do_not_go_together_are_named(flags, message):
    with pytest.raises(UsageError, match=message):
        arguments(flags)


@pytest.mark.parametrize(
    ("flags", "overwrite"),
    [
        ([*SINGLE, "--infer_text", "Hi."], True),
        ([*SINGLE, "--infer_text_file", "texts.txt"], False),
        ([*SINGLE, "--infer_text_file", "texts.txt", "--overwrite"], True),
        ([*BATCH, "--infer_dataset", "Anna", *TEST], False),
        ([*BATCH, "--infer_dataset", "Anna", *TEST, "--overwrite"], True),
    ],
)
def test_a_text_of_the_command_line_is_spoken_even_if_it_was_before(monkeypatch, flags, overwrite):
    spoken = []
    loaded = text_synthesis.TextSynthesis(None, "none", None)
    monkeypatch.setattr("sys.argv", ["inference", *flags])
    monkeypatch.setattr(text_synthesis, "load_text_synthesis", lambda *_, **__: loaded)
    monkeypatch.setattr(text_files, "read_input_texts", lambda path: [InputText("Hi.")])
    for name in ("synthesise_texts", "synthesise_dataset"):
        monkeypatch.setattr(text_synthesis, name, lambda synthesis, *_: spoken.append(synthesis))
    main()
    assert [synthesis.overwrite for synthesis in spoken] == [overwrite]


TEXT = [*SINGLE, "--infer_text", "Hi."]


def test_pace_is_the_inverse_of_the_duration_control():
    assert arguments(TEXT).duration_control == 1
    assert arguments([*TEXT, "--pace", "1.25"]).duration_control == 0.8
    assert arguments([*TEXT, "--duration_control", "1.25"]).duration_control == 1.25


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--pace 0", "argument --pace: 0, expected a number from 0.1 to 10"),
        ("--pace=-1", "argument --pace: -1, expected a number from 0.1 to 10"),
        ("--pace nan", "argument --pace: 'nan', expected a finite number"),
        ("--pace fast", "argument --pace: 'fast', expected a finite number"),
        ("--pitch_control 20", "argument --pitch_control: 20, expected a number from 0.1 to 10"),
        ("--pitch_transform_shift 501", "shift: 501, expected -500 to 500 Hz"),
        ("--pitch_transform_shift inf", "--pitch_transform_shift: 'inf', expected a finite number"),
        ("--pitch_transform_amplify a", "--pitch_transform_amplify: 'a', expected a finite number"),
        ("--fade_out 1.5", "argument --fade_out: '1.5', expected a whole number, 0 or more"),
        ("--fade_out=-1", "argument --fade_out: '-1', expected a whole number, 0 or more"),
    ],
)
def test_a_control_that_is_no_number_is_one_line_and_exit_code_2(capsys, flags, message):
    with pytest.raises(SystemExit) as stop:
        arguments([*TEXT, *flags.split()])
    assert stop.value.code == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--pace 1 --duration_control 1", "--pace and --duration_control exclude each other"),
        ("--pitch_transform_flatten", "_custom and --pitch_transform_flatten exclude each other"),
        ("--pitch_transform_invert", "_custom and --pitch_transform_invert exclude each other"),
        ("--pitch_transform_amplify 0", "_custom and --pitch_transform_amplify exclude each other"),
        ("--pitch_transform_shift 5", "_custom and --pitch_transform_shift exclude each other"),
    ],
)
def test_controls_that_exclude_each_other_are_named(flags, message):
    with pytest.raises(UsageError, match=message):
        arguments([*TEXT, "--pitch_transform_custom", "ramp:1:2", *flags.split()])


def settings_of(monkeypatch, *flags: str) -> text_synthesis.Settings:
    """What stage 3 is asked for by flags."""
    asked = []
    loaded = text_synthesis.TextSynthesis(None, "none", None)
    monkeypatch.setattr("sys.argv", ["inference", *TEXT, *flags])
    monkeypatch.setattr(text_synthesis, "load_text_synthesis", lambda *_, **__: loaded)
    monkeypatch.setattr(text_synthesis, "synthesise_texts", lambda *given: asked.append(given))
    main()
    return asked[0][2]


def test_transforms_and_fade_reach_stage_3(monkeypatch):
    flags = "--pitch_transform_invert --pitch_transform_amplify 1.5 --pitch_transform_shift -50"
    settings = settings_of(monkeypatch, *flags.split(), "--fade_out", "10", "--pace", "2")
    assert settings.pitch_transform == PitchTransform(invert=True, amplify=1.5, shift_hz=-50)
    assert (settings.fade_out, settings.duration_control) == (10, 0.5)
    ramp = settings_of(monkeypatch, "--pitch_transform_custom", "ramp:0.5:1.5")
    assert ramp.pitch_transform == PitchContour((0.5, 1.5), "ramp:0.5:1.5")


def test_a_contour_that_cannot_be_read_is_a_usage_error(monkeypatch, tmp_path):
    (tmp_path / "c.txt").write_text("1\nhigh\n")
    for spec, message in (
        (f"{tmp_path}/c.txt", "^--pitch_transform_custom: .*/c.txt, line 2: 'high'; expected a"),
        ("ramp:1:nan", "^--pitch_transform_custom: ramp:1:nan: 'nan'; expected a finite"),
    ):
        with pytest.raises(UsageError, match=message):
            settings_of(monkeypatch, "--pitch_transform_custom", spec)


def test_an_unknown_testing_set_is_refused_with_the_known_ones(capsys):
    with pytest.raises(SystemExit) as stop:
        arguments([*BATCH, "--infer_testing_set", "tset"])
    assert stop.value.code == 2
    assert "golden_test" in capsys.readouterr().err


def test_help_does_not_wait_for_torch():
    code = (
        "import sys; from bins.inference import parser; parser().format_help();"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
