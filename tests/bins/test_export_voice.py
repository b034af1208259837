import builtins
import logging
from dataclasses import replace

import pytest
from onnx import ModelProto

from models.base import registry
from tests.commands import call
from tests.models.synthesizer.test_synthesizer import make_voice
from tests.models.synthesizer.test_vocoders import make_vocoder
from utils.errors import InputError


@pytest.fixture(scope="module")
def voice(tmp_path_factory):
    return make_voice(tmp_path_factory.mktemp("voices") / "tiny")


@pytest.mark.parametrize("package", ["onnx", "onnxscript"])
def test_a_missing_package_is_named_with_its_extra(monkeypatch, tmp_path, voice, package):
    original = builtins.__import__

    def without(name, *rest):
        if name.startswith("models.programs.export"):
            raise ModuleNotFoundError(f"No module named '{package}'", name=package)
        return original(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(InputError, match=rf"{package} is missing: pip install -e '\.\[onnx\]'"):
        call("export_voice", voice, tmp_path / "out")


def test_what_is_no_whole_experiment_is_refused(tmp_path, voice):
    vocoder, empty, out = make_vocoder(tmp_path / "vocoder"), tmp_path / "empty", tmp_path / "out"
    empty.mkdir()
    files = sorted(vocoder.iterdir())
    for words, message in (
        (["kathlen", out], "no voice 'kathlen'; did you mean kathleen"),
        ([vocoder, out], "is a vocoder; expected an acoustic model"),
        ([empty, out], r"neither an experiment nor a folder with model"),
        ([voice, out, "--vocoder_dir", voice], "is an acoustic model; expected a vocoder"),
        ([empty, vocoder], "vocoder exists and is not empty: choose another name"),
    ):
        with pytest.raises(InputError, match=message):
            call("export_voice", *words)
    assert not out.exists()
    assert files == sorted(vocoder.iterdir())


def test_a_model_without_graphs_is_refused(monkeypatch, tmp_path, voice):
    found = registry.find_model("tts", "fastspeech2")
    without = replace(found, graphs=None)
    monkeypatch.setattr("models.programs.export.folder.model_of", lambda _config: without)
    with pytest.raises(InputError, match="FastSpeech2 cannot be exported: its model file defines"):
        call("export_voice", voice, tmp_path / "out")


def test_files_and_licences_are_written(monkeypatch, tmp_path, voice, caplog):
    (voice / "README.md").write_text("the card of the voice")
    monkeypatch.setattr("models.programs.export.folder.to_onnx", lambda *_: ModelProto())
    with caplog.at_level(logging.INFO):
        call("export_voice", voice, tmp_path / "out")
    names = {path.name for path in (tmp_path / "out").iterdir()}
    expected = {"LICENSE", "README_vocoder.md", "README_voice.md", "speak.py", "voice.json"}
    assert expected | {"acoustic.onnx", "vocoder.onnx"} <= names
    assert (tmp_path / "out" / "README_voice.md").read_text() == "the card of the voice"
    assert "acoustic.onnx" in caplog.text
