"""Every flag of the table is known where it belongs, and nowhere else."""

import re
from pathlib import Path

import pytest

import bins
from bins._flags.parsers import arguments, recipe_arguments
from bins._flags.programs import PROGRAMS
from bins._flags.table import ALL, COMMANDS, FLAGS, KINDS, command_of, flags_of_command
from utils.cli import Parser

DATA, MODEL = ["--config", __file__], ["--infer_expt_dir", "m"]
NEEDED = {
    **{"fetch": DATA, "preprocess": DATA, "train": [*DATA, "--name", "a"], "evaluate": MODEL},
    **{"inference": [*MODEL, "--infer_mode"], "vocode": [*MODEL, "--infer_mode"]},
}
# a value for each flag, and flags that it needs or takes the place of
VALUES = {
    **{"gpu": "0,GPU-1a", "set": "a.b=1", "pace": "2", "fade_out": "9", "task": "tts"},
    **{"num_machines": "2", "machine_rank": "1", "main_process_port": "1"},
    **{"seed": "9223372036854775807", "metrics": "mcd,wer", "checks": "none"},
    **{"recogniser": "my.asr:hear", "speaker_encoder": "my:encode"},
    **{"pitch_transform_custom": "ramp:0.5:2", "pitch_transform_shift": "-500"},
}
PLACES = {"FILE": __file__, "DIR": ".", "PATH": ".", "MODEL": "org/name", "N": "3", "X": "1.5"}
SPLIT = ["batch", "--infer_dataset", "A"]
OTHERS = {
    **{"inference": ["single", "--infer_text", "Hi."], "infer_text_file": ["single"]},
    **{"vocode": ["single", "--infer_audio_dir", "."], "infer_feature_dir": ["single"]},
    **{"infer_dataset": ["batch", "--infer_testing_set", "test"], "infer_testing_set": SPLIT},
}


def words_of(command, flag):
    """A command line with a flag that goes with it."""
    words = NEEDED[command.name]
    if flag.name in ("config", "name") and command.stage >= 3:
        words = ["--config", __file__, "--name", "a", *words[2:]]
    if flag.name == "acoustic_data":
        words = [*words, "--from_acoustic", "org/name"]
    if command.stage == 3:
        words = [*words, *OTHERS.get(flag.name, OTHERS[command.name])]
    if flag.name == "infer_testing_set" and command.stage == 4:
        words = [*words, *SPLIT[1:]]
    if flag.name == "resample":
        words = [*words, "--vocoder_dir", "v"]
    if flag.value is None:
        return [*words, f"--{flag.name}"]
    metavar = flag.metavar or flag.value.metavar
    value = VALUES.get(flag.name, PLACES.get(metavar, metavar.split("|")[0]))
    return words if f"--{flag.name}" in words else [*words, f"--{flag.name}", value]


PAIRS = [(command, flag) for command in COMMANDS for flag in flags_of_command(command)]


@pytest.mark.parametrize(("command", "flag"), PAIRS, ids=[f"{c.name} {f.name}" for c, f in PAIRS])
def test_the_command_of_a_stage_takes_each_of_its_flags(command, flag, capsys):
    words = words_of(command, flag)
    assert f"--{flag.name}" in words
    given = vars(arguments(command.name, words))
    assert given[flag.name] not in (None, [], False)
    with pytest.raises(SystemExit):
        arguments(command.name, ["--help"])
    assert f"--{flag.name}" in capsys.readouterr().out


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_the_command_of_a_stage_refuses_each_other_flag_and_says_where_it_belongs(command, capsys):
    for flag in FLAGS:
        if flag not in flags_of_command(command):
            with pytest.raises(SystemExit) as stop:
                arguments(command.name, [f"--{flag.name}", "1"])
            assert stop.value.code == 2
            places = "recipes (run.sh)" if flag.scope == "recipe" else flag.place
            assert capsys.readouterr().err == (
                f"error: --{flag.name} goes with {places} (python -m bins.{command.name} --help"
                " lists the flags)\n"
            )


@pytest.mark.parametrize("kind", KINDS)
def test_the_help_of_a_recipe_names_its_flags_and_stages_and_no_others(kind, capsys):
    with pytest.raises(SystemExit) as stop:
        recipe_arguments(kind, ["--help"])
    assert stop.value.code == 0
    shown = capsys.readouterr().out
    listed = set(re.findall(r"^ +(?:-\w(?: \w+)?, )?--(\w+)", shown, re.MULTILINE)) - {"help"}
    assert listed == {f.name for f in FLAGS if kind in f.kinds and f.scope != "command"}
    words = " ".join(shown.split())
    for flag in FLAGS:
        assert (flag.help in words) == (flag.name in listed), flag.name
    for stage in ALL:
        assert f"\n  {stage}  {command_of(stage, kind).help}" in shown


@pytest.mark.parametrize("kind", KINDS)
def test_a_recipe_refuses_the_flags_of_the_other_kind(kind, capsys):
    other = {"tts": "vocoder", "vocoder": "text-to-speech"}[kind]
    foreign = [flag.name for flag in FLAGS if kind not in flag.kinds]
    assert foreign
    for name in foreign:
        for words in ([f"--{name}"], [f"--{name}=1"]):
            with pytest.raises(SystemExit):
                recipe_arguments(kind, words)
            error = capsys.readouterr().err
            assert f"error: --{name} goes with {other} recipes; this is a" in error


def test_a_flag_is_declared_once():
    names = [flag.name for flag in FLAGS]
    assert len(set(names)) == len(names)
    shorts = [flag.short for flag in FLAGS if flag.short]
    assert len(set(shorts)) == len(shorts)


@pytest.mark.parametrize("name", [*(command.name for command in COMMANDS), *PROGRAMS])
def test_commands_declare_no_flag_of_their_own(name):
    text = (Path(bins.__path__[0]) / f"{name}.py").read_text(encoding="utf-8")
    assert "add_argument" not in text
    assert Parser.__name__ not in re.findall(r"\w+", text)
    assert re.search(rf'arguments\(\s*"{name}"', text)
