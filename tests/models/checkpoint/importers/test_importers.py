import os
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from models.checkpoint import foreign
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

    return SimpleNamespace(KIND=kind, recognises=recognises, read=str, FILES=None)


def test_an_importer_is_a_file_in_the_folder():
    modules = foreign.importers()

    assert {"hifigan_amphion", "hifigan_authors"} <= {
        m.__name__.rpartition(".")[2] for m in modules
    }
    assert all(callable(m.recognises) and callable(m.read) and m.KIND and m.FILES for m in modules)
    assert not any(m.__name__.rpartition(".")[2].startswith("_") for m in modules)


def test_an_importer_that_misses_a_file_gives_way_to_one_that_does_not(tmp_path, monkeypatch):
    (tmp_path / "weights").touch()
    right = an_importer("b", True)
    monkeypatch.setattr(foreign, "importers", lambda: [an_importer("a", "no yaml"), right])
    assert foreign.find(tmp_path / "weights")[1].KIND == "b"

    others = [an_importer("a", "no yaml"), an_importer("b", False), an_importer("c", "no json")]
    monkeypatch.setattr(foreign, "importers", lambda: others)
    with pytest.raises(InputError, match=r"^no yaml; or no json$"):
        foreign.find(tmp_path / "weights")


def test_what_is_unknown_is_refused_with_what_is_known(tmp_path):
    (tmp_path / "weights.onnx").write_bytes(b"?")

    assert foreign.find(tmp_path) is None
    for path in (tmp_path, tmp_path / "weights.onnx"):
        with pytest.raises(InputError, match=r"checkpoint of another project: .*HiFi-GAN of"):
            load_model(path)


def test_an_experiment_of_ours_is_not_looked_at_by_importers(tmp_path, monkeypatch):
    """Its files say whose it is; importing importers would cost time."""
    (tmp_path / "audio.json").write_text("{}")
    (tmp_path / "args.json").write_text("{}")
    for name in [name for name in sys.modules if name.startswith("models.checkpoint.importers.")]:
        monkeypatch.delitem(sys.modules, name)
    (tmp_path / "model.safetensors").write_bytes(b"")

    with pytest.raises(InputError, match=r"no config\.json"):
        load_model(tmp_path)
    assert not any(name.startswith("models.checkpoint.importers.fast") for name in sys.modules)


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
    shutil.rmtree(tmp_path / "x")
    text = {"config.json": authors, "args.json": amphion_args()}[settings]
    (tmp_path / settings).write_text(text)

    for given in (tmp_path, path):
        with pytest.raises(
            InputError, match=rf"{path.name}: (refused: it names|not a file of ten)"
        ):
            load_model(given)
    assert not marker.exists()
