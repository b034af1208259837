"""The command that checks recordings before stage 1."""

from tests.commands import ROOT, command, python

DEMO = ROOT / "egs" / "_demo" / "LJSpeech-mini"


def test_the_command_reports_and_exits_with_1_if_stage_1_would_fail(tmp_path):
    for id in ("LJ001-0002", "LJ001-0004", "LJ001-0005"):
        (tmp_path / f"{id}.flac").symlink_to(DEMO / "wavs" / f"{id}.flac")
    table = "LJ001-0002|In being.\nLJ001-0004|Produced.\nLJ001-0005|The invention.\nx|No.\n"
    (tmp_path / "metadata.csv").write_text(table)
    flags = ("--config", "egs/tts/FastSpeech2/exp_config_folder.json", "--num_workers", 1)
    flags += ("--set", f"dataset_path.folder={tmp_path}", "--set", "preprocess.backend=sequential")
    good = command("check_data", *flags)
    strict = command("check_data", *flags, "--set", "preprocess.max_bad_ratio=0")
    unknown = command("check_data", *flags, "--dataset", "others")

    assert good.returncode == 0, good.stderr
    assert "x           metadata.csv:4: no audio file x (.wav, .flac, .mp3 ...)" in good.stdout
    assert (strict.returncode, unknown.returncode) == (1, 1)
    assert "stage 1 would fail" in strict.stdout
    assert unknown.stderr == "error: --dataset others: the configuration has folder\n"


def test_a_folder_of_the_users_own_does_not_hide_ours(tmp_path):
    for name in ("utils", "models"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise RuntimeError('not ours')")
    done = python("-m", "bins.check_data", "--help", folder=tmp_path, PYTHONPATH=str(ROOT))
    assert done.returncode == 0, done.stderr
