import shutil
import subprocess
import sys
import wave

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx.compose import merge_models

from models.programs.export.folder import open_voice
from models.synthesizer.synthesizer import Synthesizer
from tests.models.programs.export.voices import SPEAKERS, TEXTS, infer
from tests.models.synthesizer.test_synthesizer import make_voice
from utils.errors import InputError


@pytest.fixture(scope="module")
def synthesizer(home, vocoder):
    return Synthesizer(home, vocoder, "cpu")


def test_mels_are_those_of_the_network(voice, synthesizer):
    generator, names = np.random.default_rng(0), ("duration", "pitch", "energy")
    clauses = [clause for text in TEXTS for row in voice._reader(text, "en-us") for clause in row]
    for ids in (clause.phone_ids for clause in clauses):
        factors = generator.uniform(0.5, 2, (3, 1, len(ids))).astype("f")
        controls = dict(zip(names, factors, strict=True))
        found = voice.mel(ids, 1, controls, generator)
        settings = {f"{name}_control": torch.from_numpy(controls[name]) for name in names}
        expected = infer(synthesizer.model.network, ids, **settings).mel
        np.testing.assert_allclose(found, expected.numpy(), rtol=0, atol=1e-4)


def test_lengths_have_names_and_both_graphs_without_paths_can_be_one(folder, voice):
    for path in folder.glob("*.onnx"):
        assert b".py" not in path.read_bytes(), path.name
    acoustic, vocoder = (onnx.load(folder / f"{name}.onnx") for name in ("acoustic", "vocoder"))
    tensors = (tensor for m in (acoustic, vocoder) for tensor in (*m.graph.input, *m.graph.output))
    dims = ((tensor.name, tensor.type.tensor_type.shape.dim) for tensor in tensors)
    shapes = {name: [size.dim_param or size.dim_value for size in dim] for name, dim in dims}
    assert shapes == {
        **{"phone_ids": [1, "n_phones"], "speaker_id": [1]},
        **{key: [1, "n_phones or 1"] for key in ("duration", "pitch", "energy")},
        **{"mel": [1, 80, "n_frames"], "durations": [1, "n_phones"], "wav": [1, "256*n_frames"]},
    }
    both = merge_models(acoustic, vocoder, [("mel", "mel")], prefix1="acoustic_", outputs=["wav"])
    session = onnxruntime.InferenceSession(both.SerializeToString())
    (clause,) = voice._reader(TEXTS[0], "en-us")[0]
    factors = voice._factors({"pace": 1 / 1.3, "pitch": 1, "energy": 1})
    inputs = {"phone_ids": np.array([clause.phone_ids]), "speaker_id": np.array([1]), **factors}
    (found,) = session.run(None, {f"acoustic_{name}": value for name, value in inputs.items()})
    noise = np.random.default_rng()
    expected = voice.wav(voice.mel(clause.phone_ids, 1, factors, noise), noise)
    np.testing.assert_allclose(found[0], expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("settings", "changes"),
    [
        ({"speaker": "anna"}, {}),
        (
            {"speaker": "bert", "pace": 0.7, "pitch": 1.3, "energy": 0.8},
            {"duration_control": 1 / 0.7, "pitch_control": 1.3, "energy_control": 0.8},
        ),
    ],
)
def test_texts_sound_as_with_the_synthesizer(voice, synthesizer, settings, changes):
    for text in TEXTS:
        expected = synthesizer(text, speaker=settings["speaker"], **changes).wav
        np.testing.assert_allclose(voice(text, **settings), expected, rtol=0, atol=1e-4)


def test_the_command_speaks_without_pytorch(folder, voice, tmp_path):
    refused = "import sys, runpy; sys.modules['torch'] = None; runpy.run_path(sys.argv.pop(1)," \
        " run_name='__main__')"  # fmt: skip
    words = [str(folder / "speak.py"), TEXTS[3], "-o", str(tmp_path / "a.wav"), "--speaker", "bert"]
    environment = {"PYTHONPATH": str(folder)}
    subprocess.run([sys.executable, "-c", refused, *words], check=True, env=environment)
    with wave.open(str(tmp_path / "a.wav")) as file:
        assert file.getframerate() == voice.sample_rate
        samples = np.frombuffer(file.readframes(file.getnframes()), "<i2")
    expected = voice(TEXTS[3], speaker="bert")
    np.testing.assert_allclose(samples / 32768, expected, rtol=0, atol=1 / 32768)
    words[3] = str(tmp_path / "a.flac")
    failed = subprocess.run([sys.executable, *words], stderr=subprocess.PIPE, text=True)
    assert failed.returncode == 1
    [line] = [line for line in failed.stderr.splitlines() if "flac" in line]
    assert line == f"speak.py: {words[3]}: only WAV is written; end the name with .wav"
    assert "Traceback" not in failed.stderr


@pytest.mark.parametrize("name", ["voice.json", "frontend.json", "acoustic.onnx"])
def test_the_command_names_a_damaged_folder(folder, tmp_path, name):
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    (copy / name).write_bytes((copy / name).read_bytes()[:50])
    words = [sys.executable, str(copy / "speak.py"), "Hello."]
    failed = subprocess.run(words, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    assert failed.returncode == 1
    assert "a file of this folder is damaged or missing (" in failed.stderr
    assert "Traceback" not in failed.stderr


def test_what_the_voice_cannot_do_is_refused(voice, monkeypatch):
    controls = ["duration", "pitch"]
    monkeypatch.setattr(voice, "facts", voice.facts | {"controls": controls})
    for settings, message in (
        ({}, "speaker None: expected one of anna, bert"),
        ({"speaker": "carl"}, "speaker carl: expected one of anna, bert"),
        ({"speaker": "anna", "pitch": 11}, "the factor 11 on the pitch is not from 0.1 to 10"),
        ({"speaker": "anna", "pace": 0}, "the factor 0 on the pace is not from 0.1 to 10"),
        ({"speaker": "anna", "energy": 1.2}, "this voice has no control of energy"),
        ({"speaker": "anna", "temperature": 0.3}, "this voice has no control of temperature"),
    ):
        with pytest.raises(ValueError, match=message):
            voice(TEXTS[0], **settings)


def test_the_default_speaker_speaks_where_none_is_asked_for_if_there_is_such_a_speaker(
    voice, monkeypatch, tmp_path
):
    assert voice.facts["speaker"] is None
    monkeypatch.setattr(voice, "facts", voice.facts | {"speaker": "bert"})
    assert np.array_equal(voice(TEXTS[0]), voice(TEXTS[0], speaker="bert"))
    home = make_voice(tmp_path / "voice", *SPEAKERS, default="carl")
    with pytest.raises(InputError, match=r"config\.json: the model has no speaker 'carl'"):
        open_voice(home, "griffin_lim")


def test_a_voice_that_aligns_by_attention_runs_the_loop(voice, folder, monkeypatch):
    runner, given = sys.modules[type(voice).__module__], []
    frames = np.full((1, 80, 7), -5, np.float32)
    monkeypatch.setattr(runner, "decode", lambda *words: given.append(words) or frames)
    graphs = {"vocoder": voice._graphs["vocoder"]}
    monkeypatch.setattr(voice, "_graphs", graphs)
    assert len(voice(TEXTS[0], speaker="bert")) == 7 * voice.facts["hop_length"]
    [(used, inputs, _noise)] = given
    (clause,) = voice._reader(TEXTS[0], "en-us")[0]
    assert used is graphs
    assert inputs["phone_ids"].tolist() == [list(clause.phone_ids)]
    assert inputs["speaker_id"].tolist() == [1]
