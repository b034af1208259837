import json
import os
import resource
import signal
from itertools import count

import pytest
import torch
from safetensors.torch import save

from models.checkpoint import folders
from utils.errors import InputError

FILES = {"model.safetensors": save({"w": torch.zeros(2)}), "trainer_state.json": b"{}"}


def write_nan(checkpoint):
    bad = save({"w": torch.zeros(2), "v": torch.tensor([1, torch.nan])})
    folders.write_checkpoint(checkpoint.parent, 2, FILES | {"discriminator.safetensors": bad})


def test_a_checkpoint_is_written_whole_with_the_digest_of_every_file(tmp_path):
    path = folders.write_checkpoint(tmp_path, 12, FILES)
    assert path == tmp_path / "step-00000012"
    assert {p.name for p in path.iterdir()} == {"manifest.json", *FILES}
    manifest = json.loads((path / "manifest.json").read_text())
    assert manifest.keys() == FILES.keys()
    assert all(len(digest) == 64 for digest in manifest.values())
    assert folders.fault_of(path) == ""
    assert folders.steps_of(tmp_path) == [12]


@pytest.mark.parametrize(
    ("damage", "fault"),
    [
        (lambda p: (p / "model.safetensors").write_bytes(b"weightz"), "model.safetensors has chan"),
        (lambda p: (p / "model.safetensors").write_bytes(b"weig"), "model.safetensors has changed"),
        (lambda p: (p / "trainer_state.json").unlink(), "incomplete"),
        (lambda p: (p / "manifest.json").unlink(), "manifest.json"),
        (lambda p: (p / "manifest.json").write_text('{"model'), "not JSON"),
        (lambda p: (p / "manifest.json").write_text("{}"), "manifest.json names no file"),
        (lambda p: (p / "manifest.json").write_text("[]"), "json: not a list of checksums"),
        (write_nan, "discriminator.safetensors holds NaN or infinity in v"),
    ],
)
def test_a_broken_checkpoint_is_passed_over_with_a_warning(tmp_path, caplog, damage, fault):
    older = folders.write_checkpoint(tmp_path, 1, FILES)
    newer = folders.write_checkpoint(tmp_path, 2, FILES)
    damage(newer)
    assert folders.latest_checkpoint(tmp_path) == older
    assert "step-00000002 is not used" in caplog.text
    assert fault in caplog.text


def test_without_a_whole_checkpoint_there_is_an_error_and_no_fresh_start(tmp_path):
    for step in (1, 2):
        (folders.write_checkpoint(tmp_path, step, FILES) / "model.safetensors").write_bytes(b"")
    message = r"no whole checkpoint in it \(step-00000002: model\.safetensors has changed .*; co"
    with pytest.raises(InputError, match=message):
        folders.latest_checkpoint(tmp_path)
    with pytest.raises(InputError, match=r"no whole checkpoint in it \(empty\)"):
        folders.latest_checkpoint(tmp_path / "nowhere")


def test_a_broken_checkpoint_of_the_same_update_is_replaced(tmp_path):
    (folders.write_checkpoint(tmp_path, 1, FILES) / "model.safetensors").unlink()
    folders.write_checkpoint(tmp_path, 1, FILES)
    assert folders.fault_of(folders.latest_checkpoint(tmp_path)) == ""


def test_other_folders_are_no_checkpoints(tmp_path):
    folders.write_checkpoint(tmp_path, 7, FILES)
    for name in ("step-00000009.partial", "step-x", "notes"):
        (tmp_path / name).mkdir()
    assert folders.steps_of(tmp_path) == [7]


def test_the_newest_the_best_and_milestones_survive_pruning(tmp_path):
    for step in range(1, 8):
        folders.write_checkpoint(tmp_path, step, FILES)
    folders.prune(tmp_path, keep_last=2, always={3, 1, 99})
    assert folders.steps_of(tmp_path) == [1, 3, 6, 7]
    folders.prune(tmp_path, keep_last=1, always={None})
    assert folders.steps_of(tmp_path) == [6, 7], "the newest two are never pruned"


def test_newer_checkpoints_than_that_of_a_resumed_run_are_set_aside_and_named(tmp_path, caplog):
    for step in (1, 2, 3, 2, 3):
        folders.write_checkpoint(tmp_path, step, FILES)
        folders.set_aside(tmp_path, 1)
    assert folders.steps_of(tmp_path) == [1]
    names = {"step-00000001", "step-00000002.damaged", "step-00000003.damaged"}
    assert {path.name for path in tmp_path.iterdir()} == names
    assert f"{tmp_path / 'step-00000003.damaged'} is damaged: renamed; it may be" in caplog.text


def test_a_full_disk_keeps_older_checkpoints_and_leaves_nothing_behind(tmp_path):
    older = folders.write_checkpoint(tmp_path, 1, FILES)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))
    message = r"step-00000002: the checkpoint could not be written: .*; free disk space"
    try:
        with pytest.raises(InputError, match=message):
            folders.write_checkpoint(tmp_path, 2, FILES | {"big.pt": bytes(1_000_000)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [path.name for path in tmp_path.iterdir()] == [older.name]
    assert folders.fault_of(older) == ""


def save_for_ever(folder, log):
    for step in count(1):
        content = {f"{i}.bin": step.to_bytes(4, "big") * 250_000 for i in range(4)}
        folders.write_checkpoint(folder, step, content)
        folders.prune(folder, 2, ())
        os.write(log, b"%d\n" % step)


@pytest.mark.parametrize("n_saves", range(1, 7))
def test_a_kill_during_a_save_leaves_the_last_checkpoint_whole(tmp_path, n_saves):
    steps, log = os.pipe()
    child = os.fork()  # a new process would import everything again
    if child == 0:
        try:
            save_for_ever(tmp_path, log)
        finally:
            os._exit(1)
    os.close(log)
    with os.fdopen(steps) as lines:
        for _ in range(n_saves):
            last = int(lines.readline())
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    newest = folders.latest_checkpoint(tmp_path)
    step = folders.steps_of(tmp_path)[-1]
    assert step >= last
    assert newest == folders.step_folder(tmp_path, step)
    assert (newest / "0.bin").read_bytes()[:4] == step.to_bytes(4, "big")
    folders.remove_partial(tmp_path)
    assert all(folders.fault_of(path) == "" for path in tmp_path.iterdir())
