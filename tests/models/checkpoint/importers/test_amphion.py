from pathlib import Path

import pytest

from models.checkpoint.importers._amphion import locate, read_args
from utils.errors import InputError


@pytest.mark.parametrize("name", ["model.safetensors", "pytorch_model.bin", "x.pt"])
def test_weights_of_another_name_without_settings_are_not_taken_for_amphion_s(tmp_path, name):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / name).touch()

    assert locate(tmp_path / "mine") is None
    assert locate(tmp_path / "mine" / name) is None


def touch(root, *names):
    """Empty files, and settings for all of them."""
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    (root / "args.json").write_text("{}")


@pytest.mark.parametrize(
    ("names", "newest"),
    [
        (["pretrained/pytorch_model.bin", "checkpoint/epoch-1_step-2_loss-3/pytorch_model.bin"], 1),
        (["checkpoints/old/model.safetensors", "checkpoints/step-0000002_loss-3.pt"], 1),
        (["step-0000010_loss-1.PT", "step-0000009_loss-1.pt"], 0),
        (
            ["epoch-9_step-2_loss-1/pytorch_model.bin", "epoch-10_step-2_loss-1/pytorch_model.bin"],
            1,
        ),
        (["ours/model.safetensors", "ours/audio.json", "it.pt"], 2),
    ],
)
def test_files_next_to_the_newest_checkpoint_are_ignored(tmp_path, names, newest):
    touch(tmp_path, *names)
    checkpoint = locate(tmp_path)

    assert checkpoint is not None
    assert checkpoint.weights == tmp_path / names[newest]


@pytest.mark.parametrize(
    "names", [["a.pt", "b.pt"], ["a/model.safetensors", "b/pytorch_model.bin"]]
)
def test_several_checkpoints_without_a_step_in_their_names_are_an_error(tmp_path, names):
    touch(tmp_path, *names)

    with pytest.raises(InputError, match=r"several models in it \(a\S*, b\S*\); give one of them"):
        locate(tmp_path)
    (tmp_path / "args.json").unlink()
    assert locate(tmp_path) is None


def test_a_checkpoint_is_found_through_a_link(tmp_path):
    name = "epoch-0001_step-0000002_loss-3.0"
    touch(tmp_path / "x", f"checkpoint/{name}/pytorch_model.bin", "step-0000005_loss-1.pt")
    (tmp_path / "best").symlink_to(tmp_path / "x" / "checkpoint" / name)
    (tmp_path / "it.pt").symlink_to(tmp_path / "x" / "step-0000005_loss-1.pt")

    for path, step in ((tmp_path / "best", 2), (tmp_path / "it.pt", None)):
        checkpoint = locate(path)
        assert checkpoint is not None
        assert (checkpoint.args, checkpoint.step) == (tmp_path / "x" / "args.json", step)


def test_settings_are_read_alone_without_the_base_that_they_name(tmp_path):
    (tmp_path / "args.json").write_text('{"base_config": "no/such.json", "model": {"a": [1,],},}')
    (tmp_path / "x.pt").touch()
    checkpoint = locate(tmp_path)

    assert checkpoint is not None
    assert read_args(checkpoint) == {"model": {"a": [1]}}
    (tmp_path / "args.json").write_text("{broken")
    with pytest.raises(InputError, match=r"args\.json: "):
        read_args(checkpoint)


def test_a_folder_is_seen_from_inside_as_well(tmp_path, monkeypatch):
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "args.json").write_text("{}")
    (tmp_path / "checkpoints" / "step-0000007_loss-1.0.pt").touch()
    monkeypatch.chdir(tmp_path / "checkpoints")

    checkpoint = locate(Path())
    assert checkpoint is not None
    assert (checkpoint.args, checkpoint.step) == (tmp_path / "args.json", 7)
