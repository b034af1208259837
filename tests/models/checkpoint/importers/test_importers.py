import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from models.checkpoint import importers
from models.checkpoint.importers import _amphion
from models.checkpoint.loading import load_model
from tests.models.checkpoint.importers.hifigan_originals import amphion_args, write_authors
from utils.errors import InputError


class Command:
    """Runs a command where it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self):
        return os.system, (f"touch {self.marker}",)


def an_importer(kind, answer):
    def recognises(path):
        if isinstance(answer, str):
            raise InputError(answer)
        return answer

    return SimpleNamespace(KIND=kind, recognises=recognises)


def test_an_importer_is_a_file_in_the_folder():
    modules = importers.importers()

    assert {"hifigan_amphion", "hifigan_authors"} <= {
        m.__name__.rpartition(".")[2] for m in modules
    }
    assert all(callable(m.recognises) and callable(m.read) and m.KIND for m in modules)
    assert not any(m.__name__.rpartition(".")[2].startswith("_") for m in modules)


def test_an_importer_that_misses_a_file_gives_way_to_one_that_does_not(tmp_path, monkeypatch):
    right = an_importer("b", True)
    monkeypatch.setattr(importers, "importers", lambda: [an_importer("a", "no yaml"), right])
    assert importers.find(tmp_path) is right

    others = [an_importer("a", "no yaml"), an_importer("b", False), an_importer("c", "no json")]
    monkeypatch.setattr(importers, "importers", lambda: others)
    with pytest.raises(InputError, match=r"^no yaml; or no json$"):
        importers.find(tmp_path)


def test_what_is_unknown_is_refused_with_what_is_known(tmp_path):
    (tmp_path / "weights.ckpt").write_bytes(b"?")

    assert importers.find(tmp_path) is None
    for path in (tmp_path, tmp_path / "weights.ckpt"):
        with pytest.raises(
            InputError, match=r"of other projects, these can be read: .*HiFi-GAN of"
        ):
            load_model(path)


def test_an_experiment_of_ours_is_not_looked_at_by_importers(tmp_path, monkeypatch):
    """Its files say whose it is; importing importers would cost time."""
    (tmp_path / "audio.json").write_text("{}")
    (tmp_path / "args.json").write_text("{}")
    for name in [name for name in sys.modules if name.startswith("models.checkpoint.importers")]:
        monkeypatch.delitem(sys.modules, name)
    (tmp_path / "model.safetensors").write_bytes(b"")

    with pytest.raises(InputError, match=r"no config\.json"):
        load_model(tmp_path)
    assert not any(name.startswith("models.checkpoint.importers") for name in sys.modules)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("g_00000001", "config.json"),
        ("epoch-0001_step-0000002_loss-3.000000/pytorch_model.bin", "args.json"),
        ("checkpoints/step-0000002_loss-3.0.pt", "args.json"),
    ],
)
@pytest.mark.parametrize("save", [torch.save, lambda value, path: path.write_bytes(b"cut short")])
def test_a_file_that_is_no_tensors_is_one_message_and_runs_nothing(tmp_path, name, settings, save):
    marker, path = tmp_path / "marker", tmp_path / name
    path.parent.mkdir(exist_ok=True)
    save({"generator": Command(marker), "generator_state_dict": Command(marker)}, path)
    authors = (write_authors(tmp_path / "x", {}) / "config.json").read_text()
    text = {"config.json": authors, "args.json": amphion_args()}[settings]
    (tmp_path / settings).write_text(text)

    for given in (tmp_path, path):
        with pytest.raises(
            InputError, match=rf"{path.name}: (refused: it names|not a file of ten)"
        ):
            load_model(given)
    assert not marker.exists()


@pytest.mark.parametrize("name", ["model.safetensors", "pytorch_model.bin", "x.pt"])
def test_weights_of_another_name_without_settings_are_not_taken_for_amphion_s(tmp_path, name):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / name).touch()

    assert _amphion.locate(tmp_path / "mine") is None
    assert _amphion.locate(tmp_path / "mine" / name) is None


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
def test_what_lies_beside_the_newest_checkpoint_is_left_alone(tmp_path, names, newest):
    touch(tmp_path, *names)
    checkpoint = _amphion.locate(tmp_path)

    assert checkpoint is not None
    assert checkpoint.weights == tmp_path / names[newest]


@pytest.mark.parametrize(
    "names", [["a.pt", "b.pt"], ["a/model.safetensors", "b/pytorch_model.bin"]]
)
def test_between_checkpoints_whose_names_tell_nothing_the_user_decides(tmp_path, names):
    touch(tmp_path, *names)

    with pytest.raises(InputError, match=r"several models in it \(a\S*, b\S*\); give one of them"):
        _amphion.locate(tmp_path)
    (tmp_path / "args.json").unlink()
    assert _amphion.locate(tmp_path) is None


def test_a_checkpoint_is_found_through_a_link(tmp_path):
    name = "epoch-0001_step-0000002_loss-3.0"
    touch(tmp_path / "x", f"checkpoint/{name}/pytorch_model.bin", "step-0000005_loss-1.pt")
    (tmp_path / "best").symlink_to(tmp_path / "x" / "checkpoint" / name)
    (tmp_path / "it.pt").symlink_to(tmp_path / "x" / "step-0000005_loss-1.pt")

    for path, step in ((tmp_path / "best", 2), (tmp_path / "it.pt", None)):
        checkpoint = _amphion.locate(path)
        assert checkpoint is not None
        assert (checkpoint.args, checkpoint.step) == (tmp_path / "x" / "args.json", step)


def test_settings_are_read_alone_without_the_base_that_they_name(tmp_path):
    (tmp_path / "args.json").write_text('{"base_config": "no/such.json", "model": {"a": [1,],},}')
    (tmp_path / "x.pt").touch()
    checkpoint = _amphion.locate(tmp_path)

    assert checkpoint is not None
    assert _amphion.read_args(checkpoint) == {"model": {"a": [1]}}
    (tmp_path / "args.json").write_text("{broken")
    with pytest.raises(InputError, match=r"args\.json: "):
        _amphion.read_args(checkpoint)


def test_a_folder_is_seen_from_inside_as_well(tmp_path, monkeypatch):
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "args.json").write_text("{}")
    (tmp_path / "checkpoints" / "step-0000007_loss-1.0.pt").touch()
    monkeypatch.chdir(tmp_path / "checkpoints")

    checkpoint = _amphion.locate(type(tmp_path)("."))
    assert checkpoint is not None
    assert (checkpoint.args, checkpoint.step) == (tmp_path / "args.json", 7)
