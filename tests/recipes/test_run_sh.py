"""run.sh and its helper, with a Python that only listens; what the shell does, in each shell."""

import os
import shlex
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from processors.durations import EXPORT_FORMATS

REPOSITORY = Path(__file__).parents[2]
RECIPE = Path("egs/tts/FastSpeech2")


@pytest.fixture
def script(run_sh):
    return partial(run_sh, RECIPE)


@pytest.fixture
def recipe(planned):
    return partial(planned, RECIPE)


SHELLS = ("dash", "busybox", "bash", "bash-posix")
each_shell = pytest.mark.parametrize("shell", SHELLS, indirect=True)


@pytest.fixture
def stopped(clone, shell, listening, tmp_path):
    """Sends a signal to the script while training runs; gives its code, and what was saved."""

    def stop(stages, number):
        ready = tmp_path / "ready"
        os.mkfifo(ready)
        script = subprocess.Popen(
            [*shell, str(clone / RECIPE / "run.sh"), "--name", "a", "--gpu", ""]
            + (["--stage", "2"] if stages == "2" else [*SPEAK[4:], "--stage", stages]),
            env=listening | {"READY": str(ready)},
        )
        assert ready.read_text() == "ready"
        script.send_signal(number)
        return script.wait(timeout=20), Path(listening["RECORD"]).read_text()

    return stop


READ = ("wavs $HOME", "my recordings", "2nd takes", "it's heard")  # folders of stage 4
SINGLE = ("--stage", "3", "--infer_expt_dir", "org/name", "--infer_mode", "single")
SPEAK = (*SINGLE, "--infer_text", "Hi.")
BATCH = (*SINGLE[:-1], "batch")


@each_shell
def test_each_stage_runs_at_the_root_of_the_clone(script, clone):
    config = f"--config={clone / RECIPE / 'exp_config.json'}"
    for stage, module, flags in (("0", "fetch", []), ("1", "preprocess", ["--task=tts"])):
        result = script("--stage", stage)
        assert result.code == 0
        (call,) = result.calls
        assert (call.module, call.arguments) == (f"bins.{module}", [config, *flags])
        assert call.folder == call.environment["PYTHONPATH"] == str(clone)
        assert call.environment["PYTHONUTF8"] == "1"


def test_each_recipe_runs_its_own_configuration(run_sh, clone):
    for script in sorted(REPOSITORY.glob("egs/*/*/run.sh")):
        folder = script.parent.relative_to(REPOSITORY)
        (call,) = run_sh(folder, "--stage", "0").calls
        assert call.arguments == [f"--config={clone / folder / 'exp_config.json'}"]


@each_shell
def test_the_last_stage_replaces_the_shell_and_earlier_ones_have_processes(script):
    first, second, third = script("--stage", "0-2", "-n", "a").calls
    assert third.command[1:4] == ["-m", "bins.recipe", "tts/FastSpeech2"]
    assert first.command[1:3] == ["-m", "bins.fetch"]
    assert second.command[1:3] == ["-m", "bins.preprocess"]
    assert len({call.process for call in (first, second, third)}) == 3


def test_training_on_the_cpu_is_one_process_with_all_cores(script, clone):
    (call,) = script("--stage", "2", "--name", "voice", OMP_NUM_THREADS="").calls
    config = f"--config={clone / RECIPE / 'exp_config.json'}"
    assert call.module == "bins.train"
    assert call.arguments == [config, "--task=tts", "--name=voice"]
    assert call.command[2] == "bins.recipe"
    assert int(call.environment["OMP_NUM_THREADS"]) == len(os.sched_getaffinity(0))
    assert call.environment["ACCELERATE_USE_CPU"] == "true"
    fewer = script("--stage", "2", "--name", "voice", OMP_NUM_THREADS="1").calls[0]
    assert fewer.environment["OMP_NUM_THREADS"] == "1"


def test_waiting_threads_sleep_soon_unless_the_user_decides(recipe):
    (call,) = recipe("--stage", "2", "--name", "voice").calls
    assert call.environment["OMP_WAIT_POLICY"] == "PASSIVE"
    assert call.environment["GOMP_SPINCOUNT"] == "5000"
    (call,) = recipe("--stage", "2", "--name", "voice", OMP_WAIT_POLICY="ACTIVE").calls
    assert call.environment["OMP_WAIT_POLICY"] == "ACTIVE"
    assert "GOMP_SPINCOUNT" not in call.environment


def test_training_on_several_gpus_starts_one_process_on_each_if_there_are_as_many(script):
    call = script("--stage", "2", "-n", "a", FAKE_GPUS="1").calls[0]
    assert call.environment["CUDA_VISIBLE_DEVICES"] == "0"
    assert "ACCELERATE_USE_CPU" not in call.environment
    assert call.command[2] == "bins.recipe"
    call = script("--stage", "2", "-n", "a", "--gpu", "0,1,2,3", FAKE_GPUS="4").calls[0]
    assert call.environment["CUDA_VISIBLE_DEVICES"] == "0,1,2,3"
    launcher = call.command[1 : call.command.index("bins.train")]
    assert launcher[:3] == ["-m", "accelerate.commands.launch", "--quiet"]
    assert " --multi_gpu --num_processes 4 --num_machines 1 " in " ".join(launcher)
    assert launcher[-1] == "-m"
    too_few = script("--stage", "1-2", "-n", "a", "--gpu", "0,1", FAKE_GPUS="1")
    assert (too_few.code, too_few.calls) == (2, [])  # before any work
    assert "this machine has only 1 of these" in too_few.output


@pytest.mark.parametrize("gpu", ["", "0", "0,1"])
def test_no_gpu_means_the_cpu_without_being_asked_twice(script, gpu):
    result = script("--stage", "2", "-n", "a", "--gpu", gpu, FAKE_GPUS="0")
    assert (f"--gpu {gpu}: PyTorch finds no GPU here" in result.output) == bool(gpu)
    (call,) = result.calls
    assert call.environment["ACCELERATE_USE_CPU"] == "true"
    assert call.environment["CUDA_VISIBLE_DEVICES"] == gpu


def test_variables_of_training_reach_no_other_stage_and_given_gpus_are_kept(recipe, script):
    train, speak = script("-s", "2-3", "-n", "a", "--gpu", "", *SPEAK[4:]).calls
    assert "ACCELERATE_USE_CPU" in train.environment
    assert "ACCELERATE_USE_CPU" not in speak.environment
    call = recipe("--stage", "1", CUDA_VISIBLE_DEVICES="5,6").calls[0]
    assert call.environment["CUDA_VISIBLE_DEVICES"] == "5,6"


@pytest.mark.parametrize(
    ("stages", "modules"),
    [
        ("1-2", ["bins.preprocess", "bins.train"]),
        ("2-3", ["bins.train", "bins.inference"]),
        ("0-3", ["bins.fetch", "bins.preprocess", "bins.train", "bins.inference"]),
    ],
)
def test_a_range_of_stages_runs_in_order_and_speaks_with_what_it_trained(recipe, stages, modules):
    speak = ["--infer_mode", "single", "--infer_text", "Hi."] if stages[-1] == "3" else []
    result = recipe("-s", stages, "-n", "a", *speak)
    assert [call.module for call in result.calls] == modules
    if "bins.inference" in modules:
        assert "--name=a" in result.calls[-1].arguments
        assert any(a.startswith("--config=") for a in result.calls[-1].arguments)


def test_all_stages_end_with_scores(recipe, clone):
    batch = ("--infer_mode", "batch", "--infer_dataset", "A", "--infer_testing_set", "test")
    result = recipe("-s", "all", "-n", "a", *batch, "--num_workers", "2", "--set", "a.b=1")
    modules = ["bins.fetch", "bins.preprocess", "bins.train", "bins.inference", "bins.evaluate"]
    assert [call.module for call in result.calls] == modules
    config = f"--config={clone / RECIPE / 'exp_config.json'}"
    joined = ["--infer_mode=batch", "--infer_dataset=A", "--infer_testing_set=test"]
    flags = [config, "--set=a.b=1", "--num_workers=2", "--name=a", *joined]
    assert result.calls[-1].arguments == flags


def test_every_flag_of_stage_4_reaches_python(recipe, clone, tmp_path):
    for folder in READ:
        (tmp_path / folder).mkdir()
    (tmp_path / "the texts").touch()
    values = {
        **{"--infer_mode": "single", "--infer_dataset": "a set", "--infer_testing_set": "test"},
        **{"--recordings": "my recordings", "--natural": "2nd takes", "--texts": "the texts"},
        **{"--vocoder_dir": "org/hifigan@main", "--metrics": "wer,mel_l1"},
        **{"--checks": "silence,words", "--transcripts": "it's heard", "--copies": "no"},
        **{"--recogniser": "my_asr:hear", "--speaker_encoder": "voices.all:encode"},
        **{"--report_dir": "a report", "--page": "no", "--num_workers": "2"},
        **{"--infer_expt_dir": "org/name", "--infer_output_dir": "wavs $HOME"},
    }
    given = [part for flag in values.items() for part in flag]
    joined = [f"{flag}={value}" for flag, value in values.items()]
    here = {*READ, "the texts", "a report"}
    expected = {
        f"{flag}={tmp_path}/{value}" if value in here else f"{flag}={value}"
        for flag, value in values.items()
    }
    for flags in (given, joined):
        (call,) = recipe("-s", "4", *flags, "--resample", folder=tmp_path).calls
        assert {*call.arguments} == expected | {"--resample"}
        assert call.environment["PYTHONPATH"] == f"{clone}:{tmp_path}"


def test_stage_4_needs_no_model_where_it_is_told_what_to_score(recipe, clone):
    (clone / "out").mkdir()
    config = f"--config={clone / RECIPE / 'exp_config.json'}"
    (call,) = recipe("-s", "4", "--infer_output_dir", "out").calls
    assert call.arguments == [config, f"--infer_output_dir={clone}/out"]
    assert call.environment["PYTHONPATH"] == str(clone)


@pytest.mark.parametrize(
    "flags",
    [
        ("--infer_output_dir", "a a", "b's $x *", "./--c", "--stage", "4", "--name", "v"),
        ("--name=v", "-s", "4", "--infer_output_dir", "a a", "b's $x *", "./--c"),
        ("-s", "4", "--infer_output_dir=a a", "-n", "v", "--infer_output_dir", "b's $x *", "./--c"),
        ("-s", "4", "-n", "v", *(f"--infer_output_dir={x}" for x in ("a a", "b's $x *", "--c"))),
    ],
)
def test_several_folders_are_scored_in_their_order(recipe, tmp_path, flags):
    folders = [tmp_path / "a a", tmp_path / "b's $x *", tmp_path / "--c"]
    for folder in folders:
        folder.mkdir()
    (call,) = recipe(*flags, "--set", "x=1", folder=tmp_path).calls
    outputs = [x.partition("=")[2] for x in call.arguments if x.startswith("--infer_output_dir=")]
    assert [Path(path).resolve() for path in outputs] == folders
    assert {"--name=v", "--set=x=1"} <= {*call.arguments}


def test_folders_to_be_scored_may_lie_at_the_root_and_one_to_be_written_does_not(
    recipe, clone, tmp_path
):
    (clone / "ckpts").mkdir()
    (tmp_path / "else where").mkdir()
    flags = ("--infer_output_dir", "ckpts")
    (call,) = recipe("-s", "4", "-n", "v", *flags, folder=tmp_path / "else where").calls
    assert call.arguments[-1] == "--infer_output_dir=ckpts"
    calls = recipe(*SPEAK, "-s", "3-4", *flags, folder=tmp_path / "else where").calls
    output = f"--infer_output_dir={tmp_path}/else where/ckpts"
    assert {call.arguments[-1] for call in calls} == {output}
    assert [call.module for call in calls] == ["bins.inference", "bins.evaluate"]
    (call,) = recipe(*SPEAK, *flags, folder=tmp_path / "else where").calls
    assert output in call.arguments
    (call,) = recipe(*SPEAK).calls  # left to the experiment
    assert not any("output_dir" in word or "/result" in word for word in call.arguments)


def test_only_the_last_two_stages_get_the_folder_of_the_wavs(recipe):
    flags = ("--set", "a.b=1", "--infer_output_dir=out", "--set=c=--infer_output_dir=2")
    calls = recipe("-s", "0-4", "-n", "a", *SPEAK[4:], *flags).calls
    counts = [sum(x.startswith("--infer_output_dir=") for x in call.arguments) for call in calls]
    assert counts == [0, 0, 0, 1, 1]
    assert all("--set=c=--infer_output_dir=2" in call.arguments for call in calls)


@each_shell
def test_a_home_is_found_by_shells_that_do_not_expand_it_in_a_flag(script, tmp_path):
    (tmp_path / "my wavs").mkdir()
    (call,) = script("-s", "4", "-n", "a", "--recordings=~/my wavs", HOME=str(tmp_path)).calls
    assert f"--recordings={tmp_path}/my wavs" in call.arguments


@pytest.mark.parametrize(
    ("stage", "following"),
    [("1", "--stage 2 --name a"), ("1-2", "--stage 3 --name a --infer_mode single --infer_text")],
)
def test_after_stages_1_and_2_the_next_command_is_printed_and_can_be_typed(
    script, clone, stage, following
):
    result = script("--stage", stage, "-n", "a", "--set", "log_dir=it's $HOME")
    (line,) = [line for line in result.output.splitlines() if line.startswith("next: sh ")]
    assert following in line
    words = shlex.split(line.removeprefix("next: "))
    assert words[1] == str(clone / RECIPE / "run.sh")
    assert words[-2:] == ["--set", "log_dir=it's $HOME"]
    assert "next:" not in script("--stage", "0").output
    assert "next:" not in script("--stage", "2", "-n", "a", "--synthetic").output


@each_shell
def test_a_stage_that_fails_stops_the_range_with_its_exit_code(script):
    result = script("--stage", "1-2", "-n", "a", FAKE_EXIT="7")
    assert result.code == 7
    assert [call.module for call in result.calls] == ["bins.preprocess"]


@pytest.mark.parametrize(
    ("shell", "stages", "number"),
    [
        *((name, "2", signal.SIGTERM) for name in SHELLS),
        *(("sh", "2", number) for number in (signal.SIGHUP, signal.SIGINT)),
        *(("sh", "2-3", number) for number in (signal.SIGTERM, signal.SIGHUP)),
    ],
    indirect=["shell"],
)
def test_training_that_a_signal_stops_may_save_before_the_script_ends(stopped, stages, number):
    assert stopped(stages, number) == (143, "saved")


@each_shell
def test_a_text_arrives_byte_exact_in_any_locale_and_runs_nothing(script, clone):
    text = """ a"; touch X; "$(touch X) `touch X` ${X} * '\t\\n\\\\\n 100 % Ünïcödé 😀\n"""
    for flags in (("--infer_text", text), (f"--infer_text={text}",)):
        result = script(*SINGLE, *flags)
        assert f"--infer_text={text}" in result.calls[0].arguments
    assert not list(clone.rglob("X"))
    result = script(*SINGLE, "--infer_text", "é", LC_ALL="C")
    assert f"--infer_text={os.fsdecode('é'.encode())}" in result.calls[0].arguments


def test_a_text_may_look_like_anything_else(recipe):
    for text in ("*", "-n --stage", "--gpu", "a=b"):
        for flags in (("--infer_text", text), (f"--infer_text={text}",)):
            assert f"--infer_text={text}" in recipe(*SINGLE, *flags).calls[0].arguments


def test_every_flag_of_stage_3_reaches_python(recipe):
    flags = {
        **{"--infer_output_dir": "/out put", "--vocoder_dir": "org/hifigan@main"},
        **{"--speaker": "a speaker", "--pitch_control": "1.2", "--energy_control": "0.9"},
        **{"--pace": "1.25", "--pitch_transform_amplify": "0", "--pitch_transform_shift": "-50.5"},
        **{"--fade_out": "10", "--seed": "7", "--save_alignment": "textgrid"},
    }
    switches = ["--pitch_transform_flatten", "--pitch_transform_invert", "--resample"]
    given = [part for flag in flags.items() for part in flag] + switches
    call = recipe(*SPEAK, *given).calls[0]
    assert call.module == "bins.inference"
    assert {*call.arguments} == {
        "--infer_expt_dir=org/name",
        "--infer_mode=single",
        "--infer_text=Hi.",
        *(f"{flag}={value}" for flag, value in flags.items()),
        *switches,
    }


def test_a_flag_that_is_not_read_beside_a_model_is_named(recipe):
    for name, value in (("--config", "egs/tts/FastSpeech2/exp_config.json"), ("--name", "a")):
        result = recipe(*SPEAK, name, value)
        assert f"{name} is not read: --infer_expt_dir names the model\n" in result.output
        assert not any(word.startswith(name) for word in result.calls[0].arguments)
    assert "is not read" not in recipe("-s", "2-3", "-n", "a", *SPEAK[2:]).output


def test_durations_have_a_factor_and_a_contour_is_a_ramp_or_a_file(recipe, clone):
    slower = recipe(*SPEAK, "--duration_control", "1.5").calls[0].arguments
    assert "--duration_control=1.5" in slower
    assert not any(word.startswith("--pace") for word in slower)
    (clone / "my contour.txt").write_text("1")
    flag = "--pitch_transform_custom"
    ramp = recipe(*SPEAK, flag, "ramp:0.5:1.5").calls[0].arguments
    assert f"{flag}=ramp:0.5:1.5" in ramp
    file = recipe(*SPEAK, f"{flag}=my contour.txt").calls[0].arguments
    assert f"{flag}={clone / 'my contour.txt'}" in file
    for format in EXPORT_FORMATS:
        assert recipe(*SPEAK, "--save_alignment", format).code == 0


def test_batch_mode_names_the_data_set_and_the_split_and_all_is_spoken_again_if_asked_for(recipe):
    for split in ("train", "test", "golden_test"):
        flags = ("--infer_dataset", "LJSpeech", "--infer_testing_set", split, "--overwrite")
        call = recipe(*BATCH, *flags).calls[0]
        assert {"--infer_dataset=LJSpeech", "--overwrite"} <= {*call.arguments}
        assert f"--infer_testing_set={split}" in call.arguments
    again = recipe("-s", "3-4", *SPEAK[2:], "--overwrite").calls
    assert [("--overwrite" in call.arguments) for call in again] == [True, False]


def test_every_flag_of_stages_1_and_2_reaches_python(recipe):
    flags = ("-n", "a", "--num_workers", "4", "--seed=3", "--resume")
    first, second = recipe("-s", "1-2", *flags).calls
    assert "--num_workers=4" in first.arguments
    assert second.arguments[-3:] == ["--name=a", "--resume", "--seed=3"]
    assert not any(word.startswith("--num_workers") for word in second.arguments)
    assert recipe("-s2", "-n", "a").code == 2
    tuned = "--init_from=org/name"
    for flags in (["--restart"], [tuned], ["--restart", tuned], ["--synthetic"], ["--profile"]):
        (call,) = recipe("-s", "2", "-n", "a", *flags).calls
        assert call.arguments[-len(flags) :] == flags


def test_overrides_are_repeatable_reach_every_stage_and_may_hold_what_looks_like_a_flag(recipe):
    overrides = ("--set", "a.b=two  words = $x", "-n", "a", "--set=c=-1", "--set", "d=")
    for call in recipe("--stage", "0-2", *overrides, "--set", "a=--b", "--set=c=--d").calls:
        settings = [word for word in call.arguments if word.startswith("--set=")]
        expected = ["--set=a.b=two  words = $x", "--set=c=-1", "--set=d="]
        assert settings == [*expected, "--set=a=--b", "--set=c=--d"]


def test_a_relative_path_is_looked_for_here_and_then_at_the_root(recipe, clone, tmp_path):
    elsewhere = tmp_path / "else where"
    (elsewhere / "runs").mkdir(parents=True)
    (elsewhere / "here.json").write_text("{}")
    (clone / "there.json").write_text("{}")

    def config(path):
        return recipe("-s", "1", "-c", path, folder=elsewhere).calls[0].arguments[0]

    assert config("here.json") == f"--config={elsewhere}/here.json"
    assert config("./here.json") == f"--config={elsewhere}/./here.json"
    assert config("there.json") == "--config=there.json"
    model = ("-s", "3", "--infer_mode", "single", "--infer_text", "Hi.", "--infer_expt_dir")
    for given, expected in (
        ("org/name", "org/name"),
        ("runs/missing", f"{elsewhere}/runs/missing"),
        ("runs", f"{elsewhere}/runs"),
        ("ckpts/tts/a", "ckpts/tts/a"),
        ("../a", f"{elsewhere}/../a"),
    ):
        arguments = recipe(*model, given, folder=elsewhere).calls[0].arguments
        assert f"--infer_expt_dir={expected}" in arguments


def test_help_is_that_of_the_recipe_and_does_nothing_else(script):
    for flag in ("--help", "-h"):
        result = script(flag)
        assert (result.code, result.calls) == (0, [])
        assert "usage: sh run.sh --stage STAGES" in result.output


@each_shell
def test_a_wrong_flag_or_a_python_that_is_missing_is_one_line_and_exit_code_2(script):
    result = script("--stage", "1-2", "-n", "a", "--$(touch X)\\n")
    assert (result.code, result.calls) == (2, [])
    assert result.output == "error: unknown flag --$(touch X)\\n (--help lists the flags)\n"
    result = script("--stage", "1", PYTHON="/none/python")
    assert result.code == 2
    assert "no Python at /none/python; run make venv, or set PYTHON" in result.output


@pytest.mark.parametrize("chosen", ["", "./bare/python3"])
def test_a_python_without_the_packages_is_named_before_any_work(script, clone, tmp_path, chosen):
    python = tmp_path / "bare" / "python3"
    python.parent.mkdir()
    python.symlink_to(sys.executable)  # without the folder of the virtual environment
    (clone / "torch.py").unlink()
    path = f"{python.parent}{os.pathsep}{os.environ['PATH']}"
    # a clone has no virtual environment
    result = script("--stage", "1", PYTHON=chosen, PATH=path, PYTHONNOUSERSITE="1", folder=tmp_path)
    assert (result.code, result.calls) == (2, [])
    (line,) = result.output.splitlines()
    assert line.startswith("error: ")
    assert line.endswith("/bare/python3 lacks torch or json5; run make venv, or set PYTHON")


@each_shell
def test_a_config_beside_the_script_is_found_from_its_folder_and_any_other(script, clone, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    for folder in (clone / RECIPE, tmp_path / "elsewhere"):
        result = script("--stage", "1", "-c", "exp_config_vctk.json", folder=folder)
        assert f"--config={clone / RECIPE}/exp_config_vctk.json" in result.calls[0].arguments


def test_every_script_passes_shellcheck():
    linter = Path(sys.executable).parent / "shellcheck"
    scripts = sorted((REPOSITORY / "egs").rglob("*.sh"))
    assert REPOSITORY / RECIPE / "run.sh" in scripts
    words = [str(linter), "-s", "sh", "-x", *map(str, scripts)]
    result = subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True)
    assert result.stdout + result.stderr == ""
