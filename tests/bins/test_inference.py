import subprocess
import sys

import pytest

from bins.inference import arguments, main
from models.synthesizer import text_files, text_synthesis
from models.synthesizer.text_files import InputText
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
