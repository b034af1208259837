import sys
from types import SimpleNamespace

import pytest
import torch

from models.checkpoint import foreign
from models.checkpoint.loading import load_model
from tests.models.checkpoint.importers.hifigan_originals import amphion_args, write_authors
from tests.models.checkpoint.importers.reading import Command
from tests.models.checkpoint.importers.test_fastspeech2_amphion import args_json
from utils.errors import InputError


def an_importer(kind, answer):
    def recognises(path):
        if isinstance(answer, str):
            raise InputError(answer)
        return answer

    return SimpleNamespace(KIND=kind, recognises=recognises, read=str, FILES=None)


def test_an_importer_is_a_file_in_the_folder():
    modules = foreign.importers()
    names = {module.__name__.rpartition(".")[2] for module in modules}
    assert {"hifigan_amphion", "hifigan_authors"} <= names
    assert all(callable(m.recognises) and callable(m.read) and m.KIND and m.FILES for m in modules)
    assert not any(name.startswith("_") for name in names)


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


def cut_short(_, path):
    path.write_bytes(b"PK\x03\x04 cut short")


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("g_00000001", ""),
        ("epoch-0001_step-0000002_loss-3.000000/pytorch_model.bin", amphion_args()),
        ("epoch-0001_step-0000002_loss-3.000000/pytorch_model.bin", args_json()),
        ("checkpoints/step-0000002_loss-3.0.pt", amphion_args()),
        ("FastPitch_checkpoint_1000.pt", ""),
    ],
)
@pytest.mark.parametrize(
    ("save", "fault"),
    [(torch.save, r"refused: it names \w+\.system"), (cut_short, "not a file of tensors")],
)
def test_what_is_no_tensors_is_one_message_and_not_run(tmp_path, name, args, save, fault):
    marker, path = tmp_path / "marker", tmp_path / name
    path.parent.mkdir(exist_ok=True)
    if name.startswith("g_"):
        write_authors(tmp_path, {}, step=1)
    elif args:
        (tmp_path / "args.json").write_text(args)
    parts = ("generator", "generator_state_dict", "mel_linear.weight", "optimizer")
    save(dict.fromkeys(parts, Command(marker)), path)
    for given in (tmp_path, path):
        with pytest.raises(InputError, match=f"{path.name}: {fault}"):
            load_model(given)
    assert not marker.exists()
