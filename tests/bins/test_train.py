"""The command of stage 2."""

import json

import pytest

from models.checkpoint.folders import fault_of
from processors.dataset.store import FeatureStore, write_index
from tests.commands import command
from tests.models.training import small_tasks
from tests.processes import run_together
from tests.processors.stores import write_shard


@pytest.fixture
def root(tmp_path):
    small_tasks.make_processed(tmp_path / "data" / "mini", speakers=("anna", "ben"))
    return tmp_path


def test_the_command_trains_and_reports_faults_in_one_line(root):
    config = small_tasks.write_voice_config(root)
    done = command("train", "--config", config, "--name", "voice", "--set", "train.max_steps=2")
    again = command("train", "--config", config, "--name", "voice", "--seed", "3")

    assert done.returncode == 0, done.stderr
    assert "update 2: validation loss" in done.stderr
    assert again.returncode == 1
    assert again.stderr.startswith("error: ")
    assert again.stderr.count("\n") == 1


def test_a_flag_that_a_setting_takes_back_is_refused(root):
    config = small_tasks.write_voice_config(root)
    synthetic, profile = "train.synthetic_utterances=0", "train.profile.steps=[]"
    for flag, setting in (("--synthetic", synthetic), ("--profile", profile)):
        result = command("train", "--config", config, "--name", "a", flag, "--set", setting)
        assert result.returncode == 2
        assert result.stderr.strip() == f"error: {flag} contradicts --set {setting}"
    assert not (root / "ckpts").exists()


def test_two_processes_train_one_experiment(root):
    """Saving, validation, scores and resuming with random states of both processes."""
    small_tasks.write_corpus(root, FeatureStore(root / "data" / "mini"))
    config = small_tasks.write_voice_config(root, score_steps=2)
    train = "-m", "bins.train", "--config", config, "--name", "voice"
    run_together(2, *train)
    resumed, _ = run_together(2, *train, "--resume", "--set", "train.max_steps=6")
    checkpoint = root / "ckpts" / "voice" / "checkpoints" / "step-00000006"

    assert fault_of(checkpoint) == ""
    assert len(json.loads((checkpoint / "trainer_state.json").read_text())["random"]) == 2
    assert "begins again" not in resumed.stderr
    assert resumed.stderr.count("update 6: scores of 2 utterances: mcd ") == 1


def test_a_fault_in_a_worker_process_ends_the_command_with_one_line(root):
    broken = [small_tasks.make_features(i) for i in range(14)]
    broken[3].durations[0] += 1
    folder = root / "data" / "mini"
    shard = folder / "features" / "shard-00000.safetensors"
    write_index(folder, write_shard(shard, broken, small_tasks.PREPROCESS.mel))
    flags = ("--name", "voice", "--set", "train.dataloader.num_worker=1")
    done = command("train", "--config", small_tasks.write_voice_config(root), *flags)

    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("error: utt-003: durations sum to")
