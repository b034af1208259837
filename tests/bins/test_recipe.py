"""`python -m bins.recipe`: flags that are wrong, missing, or go with another stage or recipe."""

import shlex
import shutil

import pytest

from bins._flags.parsers import recipe_arguments
from bins.recipe import ROOT, find_recipe, from_here, located, next_command
from tests.commands import call, python
from utils.cli import UsageError

DEMO_CONFIG = "egs/tts/FlowSpeech/exp_config_demo.json"
SINGLE = ("--stage", "3", "--infer_expt_dir", "org/name", "--infer_mode", "single")
SPEAK = (*SINGLE, "--infer_text", "Hi.")
BATCH = (*SINGLE[:-1], "batch")
SPLIT = (*BATCH, "--infer_dataset", "A", "--infer_testing_set")
DATA, TRAIN, SCORE = ("--stage", "1"), ("--stage", "2", "-n", "a"), ("-s", "4", "-n", "a")

TTS = find_recipe("tts/FastPitch", "/")
VOCODER = find_recipe("vocoder/HiFiGAN", None)


@pytest.fixture
def refusal(monkeypatch, tmp_path, capsys):
    """The message with which a recipe ends before any work, called from an empty folder."""

    def refusal_of(recipe, *words):
        monkeypatch.chdir(tmp_path)
        with pytest.raises((UsageError, SystemExit)) as stop:
            call("recipe", recipe, *words)
        if isinstance(stop.value, UsageError):
            return str(stop.value)
        assert stop.value.code == 2
        return capsys.readouterr().err.removeprefix("error: ").removesuffix("\n")

    return refusal_of


# values by themselves: tests/bins/_flags/test_values.py; flags of a stage: test_parsers.py; of the
# other kind of recipe: test_table.py; unknown flags, missing values: tests/utils/test_cli.py
TTS_FAULTS = [
    ((), "--stage is required"),
    (("--stage", "one"), "--stage 'one': expected a stage from 0 to 4"),
    (("--stage", "3-1"), "--stage '3-1': the range runs backwards"),
    (("--stage", "1-9"), "--stage '1-9': the last stage is 4"),
    (("--stage",), "--stage needs a value"),
    (("-s",), "-s needs a value"),
    (("--stage", "--gpu", "0"), "--stage needs a value, found the flag --gpu"),
    ((*DATA, "--resum"), "--resum; did you mean --resume? (--help lists the flags)"),
    (("-stage", "1"), "unknown flag -stage; did you mean --stage? (--help"),
    (("--infer-mode=single", "--stage", "3"), "--infer-mode; did you mean --infer_mode?"),
    ((*DATA, "--$(touch X)\\n"), "unknown flag --$(touch X)\\n (--help lists the flags)"),
    ((*DATA, "--"), "unknown flag --"),
    ((*SPEAK, "--overwrite=yes"), "--overwrite takes no value"),
    ((*SPEAK, "--infer_audio_dir=a"), "--infer_audio_dir goes with vocoder recipes"),
    ((*TRAIN, "--overwrite"), "--overwrite goes with stage 3"),
    ((*TRAIN, "--resume", "true"), "unexpected argument 'true'"),
    ((*DATA, "a b"), "unexpected argument 'a b'; quote a value that holds spaces"),
    ((*DATA, "--config", "none.json"), "--config 'none.json': no such file"),
    ((*DATA, "--config", ""), "--config '': no such file"),
    ((*DATA, "--gpu", "0 1"), "--gpu '0 1': expected numbers and commas"),
    (("--stage", "1-2"), "stage 2 needs --name"),
    (("--stage", "2", "--name", "-a"), "--name '-a': expected letters"),
    (("--stage", "1-2", "-n", "a", "--synthetic"), "replaces the data of stages 0 and 1"),
    (("--stage", "1-3", "-n", "a"), "stage 3 needs --infer_mode single|batch"),
    ((*SINGLE, "--infer_text", " "), "--infer_text ' ': the text is empty"),
    ((*SPEAK, "--pace", "-1"), "--pace '-1': expected a number from 0.1 to 10, such as 1.2"),
    ((*SPEAK, "--pitch_transform_shift", "-"), "--pitch_transform_shift '-': expected a number"),
    ((*SPEAK, "--steps", "51"), "--steps '51': expected a whole number from 1 to 50"),
    ((*SPEAK, "--temperature", "2.1"), "'2.1': expected a number from 0 to 2, such as 0.5"),
    ((*SPEAK, "--temperature", "-1"), "'-1': expected a number from 0 to 2, such as 0.5"),
    ((*SPEAK, "--save_alignment", "ass"), "--save_alignment 'ass': expected json, npy, srt"),
    (("-s", "4", "--infer_output_dir", "egs", "b c"), "--infer_output_dir 'b c': no such folder"),
    (("-s", "4", "--infer_output_dir=egs", "b"), "unexpected argument 'b'"),
    ((*SCORE, "--infer_output_dir", ""), "--infer_output_dir '': expected a folder"),
    ((*SPEAK, "-s", "3-4", "--infer_output_dir=a", "--infer_output_dir=b"), "into one --infer_"),
    ((*SCORE, "--recordings", __file__), "': is a file, expected a folder"),
    ((*SCORE, "--texts", "egs"), "--texts 'egs': is a folder, expected a file"),
    ((*SCORE, "--metrics", "wre"), "no such metric; did you mean wer? (known: all, "),
    ((*SCORE, "--metrics", "none"), "--metrics none: no such metric"),
    ((*SCORE, "--metrics="), "--metrics '': expected names and commas"),
    ((*DATA, "--what=1"), "unknown flag --what (--help lists the flags)"),
    ((*DATA, "--set", "a"), "--set 'a': expected key.path=value"),
    ((*DATA, "--num_workers", "0"), "--num_workers '0': expected a whole number"),
    (("--stage", "2", "--name", "a" * 101), "underscores, 100 at most"),
    ((*TRAIN, "--seed", "x"), "--seed 'x': expected a whole number"),
    ((*TRAIN, "--resume", "--init_from", "b/c"), "--resume and --init_from exclude"),
    ((*SINGLE[:-1], "both"), "--infer_mode 'both': expected single or batch"),
    ((*SINGLE, "--infer_text_file", "none"), "--infer_text_file 'none': no such file"),
    ((*SPEAK, "--pitch_control", "high"), "--pitch_control 'high': expected a number from 0.1 to"),
    ((*SPEAK, "--energy_control", "0.0"), "--energy_control '0.0': expected a number from 0.1 to"),
    ((*SPEAK, "--duration_control", "-1"), "--duration_control '-1': expected a number"),
    ((*SPEAK, "--pitch_transform_amplify", "nan"), "--pitch_transform_amplify 'nan': expected a"),
    ((*SPEAK, "--pitch_transform_amplify", "1.0.0"), "amplify '1.0.0': expected a number such as"),
    ((*SPEAK, "--pitch_transform_custom", "none"), "ramp:A:B, such as ramp:0.5:1.5, or a file"),
    ((*SPEAK, "--fade_out", "1.5"), "--fade_out '1.5': expected a whole number from 0"),
    ((*SPLIT, "valid"), "_testing_set 'valid': expected train, test or golden_test"),
    (("-s", "4", "--infer_output_dir", "egs", "--page", "no", "b"), "unexpected argument 'b'"),
    ((*SCORE, "--infer_output_dir"), "--infer_output_dir needs a value"),
    (("-s", "4", "--infer_output_dir", "--page", "no"), "needs a value, found the flag --page"),
    ((*SCORE, "--recordings", "my wavs"), "--recordings 'my wavs': no such folder"),
    ((*SCORE, "--natural", "2 nd"), "--natural '2 nd': no such folder"),
    ((*SCORE, "--transcripts=none"), "--transcripts 'none': no such folder"),
    ((*SCORE, "--report_dir", __file__), "test_recipe.py': is a file, expected a folder"),
    ((*SCORE, "--page", "off"), "--page 'off': expected yes or no"),
    ((*SCORE, "--recogniser", "a.py"), "--recogniser 'a.py': expected module:func"),
    ((*SCORE, "--speaker_encoder", ":b"), "--speaker_encoder ':b': expected module"),
    ((*SCORE, "--checks="), "--checks '': expected names and commas"),
    ((*SCORE, "--checks", "words,quiet"), "--checks quiet: no such check (known: "),
]
RECORDINGS = ("--infer_audio_dir", "egs")
VOCODER_FAULTS = [
    ((*SPLIT, "all"), "--infer_testing_set 'all': expected train, test or golden_test"),
    ((*SINGLE[:5], "infer_from_audio"), "'infer_from_audio': expected single or batch"),
    (
        (*SINGLE, "--infer_feature_dir", "none"),
        "--infer_feature_dir 'none': no such file or folder",
    ),
    ((*SINGLE, *RECORDINGS, "--infer_feature_dir", "egs"), "_dir and --infer_feature_dir exclude"),
    ((*SINGLE, "--infer_text=Hi."), "--infer_text goes with text-to-speech recipes"),
    ((*SINGLE, "--infer_audio_dir", ""), "--infer_mode single needs --infer_audio_dir or"),
    ((*SINGLE, "--infer_audio_dir", "none"), "--infer_audio_dir 'none': no such file or folder"),
    (("-s", "2", "-n", "a", "--from_acoustic", "a/b"), "--from_acoustic goes with stage 1"),
]
LAST = ("--machine_rank", "2", "--main_process_ip", "127.0.0.1")
THREE = ("--num_machines", "3", *LAST)
MACHINE_FAULTS = [
    (("--num_machines", "0"), "--num_machines '0': expected a whole number from 1 to 65535"),
    (("--num_machines", "999999"), "--num_machines '999999': expected a whole number"),
    (("--num_machines", "2", *LAST), "--machine_rank 2: --num_machines 2 has the ranks 0 to 1"),
    (("--num_machines", "2"), "--num_machines 2 needs --machine_rank"),
    (("--num_machines", "2", "--machine_rank", "0"), "2 needs --main_process_ip: the address"),
    (LAST, "--machine_rank needs --num_machines"),
    (("--num_machines", "3", *LAST[:-1], "n" * 64, "--gpu", ""), f"--main_process_ip {'n' * 64}: "),
    ((*THREE, "-s", "1-2"), "3 goes with --stage 2; run the other"),
    (
        (*THREE, "--main_process_port", "70000"),
        "_port '70000': expected a whole number from 1 to 6553",
    ),
    (("--accelerate_config", "none.yaml"), "--accelerate_config 'none.yaml': no such file"),
    (("--accelerate_config", __file__, "-s", "1-2"), "--accelerate_config goes with --stage 2"),
    (("--accelerate_config", "a", *THREE[:2]), "of their flags, only --machine_rank goes with it"),
]
FAULTS = [("tts/FastSpeech2", *fault) for fault in TTS_FAULTS]
FAULTS += [("vocoder/HiFiGAN", (*TRAIN, *flags), message) for flags, message in MACHINE_FAULTS]
FAULTS += [("vocoder/HiFiGAN", *fault) for fault in VOCODER_FAULTS]


@pytest.mark.parametrize(
    ("recipe", "flags", "message"), FAULTS, ids=[" ".join(flags)[:60] for _, flags, _ in FAULTS]
)
def test_a_wrong_flag_is_one_line_before_any_work(refusal, recipe, flags, message):
    line = refusal(recipe, *flags)
    assert "\n" not in line
    assert message in line


def test_a_python_that_is_too_old_is_named():
    old = "import sys; sys.version_info = (3, 9, 1); import bins"
    done = python("-c", old)
    assert done.returncode == 2
    assert "is Python 3.9, expected 3.10 or newer; run make venv, or set PYTHON" in done.stderr


def shown(monkeypatch, capsys, *words):
    monkeypatch.chdir(ROOT)
    call("recipe", "tts/FastSpeech2", "--show_config", *words)
    lines = capsys.readouterr().out.splitlines()
    return {line.split(" = ")[0]: line.split(" = ", 1)[1] for line in lines}


def test_show_config_names_the_origin_of_every_key(monkeypatch, capsys):
    lines = shown(monkeypatch, capsys, "--set", "train.batch_size=3", "--config", DEMO_CONFIG)
    assert lines["train.batch_size"] == "3  # --set"
    assert lines["train.grad_clip_thresh"] == "1.0  # default"
    assert lines["dataset"].startswith('["LJSpeech-mini"]  # ')
    assert lines["dataset"].endswith(("exp_config_demo.json", "ljspeech_mini.json"))


def test_show_config_of_an_experiment_or_a_checkpoint_in_it(monkeypatch, capsys, tmp_path):
    voice = shown(monkeypatch, capsys, "--infer_expt_dir", "egs/_voices/kathleen")
    assert voice["model_type"].startswith('"FlowSpeech"  # ')
    (tmp_path / "checkpoints" / "step-00000001").mkdir(parents=True)
    shutil.copy(ROOT / "egs/_voices/kathleen/config.json", tmp_path)
    checkpoint = tmp_path / "checkpoints" / "step-00000001"
    inside = shown(monkeypatch, capsys, "--infer_expt_dir", str(checkpoint))
    assert inside["model_type"] == f'"FlowSpeech"  # {tmp_path / "config.json"}'
    with pytest.raises(UsageError, match="org/name is no local experiment; give its folder"):
        shown(monkeypatch, capsys, "--infer_expt_dir", "org/name")


THIRD = "--stage 3 --name a --infer_mode single"


@pytest.mark.parametrize(
    ("recipe", "stage", "texts", "flags"),
    [
        (TTS, 1, {}, "--stage 2 --name my_model"),
        (TTS, 1, {"name": "a"}, "--stage 2 --name a"),
        (TTS, 2, {"name": "a"}, f"{THIRD} --infer_text 'Any text.'"),
        (VOCODER, 2, {"name": "a"}, f"{THIRD} --infer_audio_dir /path/to/recordings"),
    ],
)
def test_the_next_stage_is_named_with_all_that_it_needs(recipe, stage, texts, flags):
    given = {"config": "a b.json", "set": ["x=it's", "y=1"], **texts}
    words = shlex.split(next_command(recipe, stage, given))
    settings = ["--config", "a b.json", "--set", "x=it's", "--set", "y=1"]
    assert words == [*recipe.command, *shlex.split(flags), *settings]
    recipe_arguments(recipe.kind, words[len(recipe.command) :])


def test_a_recipe_is_called_as_its_folder_or_by_its_model():
    assert find_recipe("FastPitch", None).name == "tts/FastPitch"
    assert find_recipe("HiFiGAN", None).name == "vocoder/HiFiGAN"
    recipe = find_recipe("vocoder/HiFiGAN", "/home of a user")
    assert recipe.kind == "vocoder"
    assert (ROOT / "egs" / recipe.name / "exp_config.json").is_file()
    assert recipe.command == ("sh", str(ROOT / "egs/vocoder/HiFiGAN/run.sh"))
    assert find_recipe("tts/FastPitch", None).command == (
        *("python", "-m", "bins.recipe", "tts/FastPitch"),
    )


def test_a_folder_that_is_no_recipe_is_refused_and_the_nearest_named(refusal):
    nearest = "no recipe 'tts/FastSpeech'; did you mean tts/FastSpeech2? (expected "
    assert nearest in refusal("tts/FastSpeech", "--stage", "1")
    for name in ("", "fastpitch", "tts/fastpitch", "_demo/mini", "tts/.."):
        expected = r"one of tts/FastPitch, tts/FastSpeech2, .*, then its flags"
        with pytest.raises(UsageError, match=expected):
            find_recipe(name, None)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("here", "caller/here"),
        ("both", "caller/both"),
        ("there", "there"),
        ("there/file", "there/file"),
        ("org/name", "org/name"),
        ("here/missing", "caller/here/missing"),
        ("./there", "caller/./there"),
        ("..", "caller/.."),
        ("/there", "/there"),
        ("~/there", "home/there"),
        ("", ""),
    ],
)
def test_a_path_is_looked_for_in_the_callers_folder_and_then_at_the_root(
    tmp_path, monkeypatch, text, place
):
    for folder in ("root/there", "root/both", "caller/here", "caller/both"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "root" / "there" / "file").touch()
    monkeypatch.chdir(tmp_path / "root")
    monkeypatch.setenv("HOME", f"{tmp_path}/home")
    if place.startswith(("caller", "home")):
        place = f"{tmp_path}/{place}"
    assert located(text, f"{tmp_path}/caller") == place


def test_a_folder_to_be_made_is_below_the_callers():
    for text, place in (("out", "/a b/out"), ("/out", "/out"), ("", "")):
        assert from_here(text, "/a b") == place
