from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from torch import nn

from models.base.graphs import EXAMPLE_LENGTH, Graph
from models.programs.export import matcha_sherpa
from models.programs.export.folder import ExportedVoice, open_voice
from models.programs.export.onnx_file import to_onnx
from models.programs.export.piper_sherpa import export_piper, export_sherpa
from models.tts.matcha.network import _paced
from processors.text.symbols import mark_name
from processors.text.voice_phones import espeak_characters_vocabulary
from tests.models.programs.export.voices import SPEAKERS, infer
from tests.models.synthesizer.test_synthesizer import make_voice
from utils.errors import InputError

SPOKEN = ["<pad>", *(name for char in "həlˈoʊ wˈɜːld!" for name in (mark_name(char), "<pad>"))]


def session_of(model: str) -> onnxruntime.InferenceSession:
    return onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])


@pytest.fixture(scope="module")
def voice(tmp_path_factory) -> ExportedVoice:
    folder = make_voice(
        tmp_path_factory.mktemp("voice") / "two",
        *SPEAKERS,
        vocabulary=espeak_characters_vocabulary(),
        phone_extractor="espeak_characters",
        model="Matcha",
        default="bert",
    )
    return open_voice(folder, "griffin_lim")


@pytest.fixture(scope="module")
def exported(voice, tmp_path_factory):
    target = tmp_path_factory.mktemp("exported") / "two"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matcha_sherpa, "CMUDICT_PATH", words_in(target.parent))
        export_sherpa(voice, target)
    return target


def words_in(folder: Path) -> Path:
    path = folder / "words.txt"
    path.write_text("hello HH AH0 L OW1\nworld W ER1 L D\nworld(2) W ER0 L D\n")
    return path


@pytest.mark.slow
def test_a_text_of_any_length_has_the_mel_of_the_network_by_the_default_speaker(voice, exported):
    session = session_of(str(exported / "model.onnx"))
    names = [item.name for item in session.get_inputs()]
    assert names == ["x", "x_length", "noise_scale", "length_scale", "sid"]
    for N in (1, 4, 40):
        ids = torch.arange(N)[None] * 5 % 178
        inputs = {
            "x": ids.numpy(),
            "x_length": np.array([N]),
            "noise_scale": np.array([0.667], np.float32),
            "length_scale": np.array([1.3], np.float32),
            "sid": np.array([0]),
        }
        mel, durations = session.run(None, inputs)
        expected = infer(voice.model.network, ids[0].tolist(), duration_control=1.3)
        np.testing.assert_array_equal(durations, expected.durations)
        np.testing.assert_allclose(mel, expected.mel, rtol=0, atol=1e-4)


class Pace(nn.Module):
    def forward(self, durations: torch.Tensor, control: torch.Tensor) -> torch.Tensor:
        return _paced(durations, control)


def test_at_any_pace_phones_end_in_the_same_frames_in_onnxruntime():
    inputs = {"durations": torch.ones(1, EXAMPLE_LENGTH), "control": torch.ones(1)}
    graph = Graph(Pace(), inputs, ("frames",), {"durations": {1: "n_phones"}})
    session = session_of(to_onnx(graph).SerializeToString())
    durations = torch.randint(1, 6, (1, 200), generator=torch.Generator().manual_seed(0)).float()
    for control in (0.85, 1.1, 1.3):  # ends that are whole numbers, but for rounding
        inputs = {"durations": durations.numpy(), "control": np.array([control], np.float32)}
        (frames,) = session.run(None, inputs)
        np.testing.assert_array_equal(frames, _paced(durations, control))


def test_tokens_are_the_symbols_with_their_ids():
    lines = matcha_sherpa.matcha_tokens().splitlines()
    ids = {line[0]: int(line[2:]) for line in lines}
    assert len(ids) == len(lines)
    vocabulary = espeak_characters_vocabulary()
    for name, char in (("ˈ", "ˈ"), ("<,>", ","), ("<space>", " "), ("'", "'"), ("ᵻ", "ᵻ")):
        assert ids[char] == vocabulary.ids([name])[0]
    assert ids["^"] == ids["$"] == 0


def test_the_lexicon_has_the_words_of_cmudict_as_espeak_says_them(voice, tmp_path, monkeypatch):
    monkeypatch.setattr(matcha_sherpa, "CMUDICT_PATH", words_in(tmp_path))
    lexicon = matcha_sherpa.matcha_lexicon(voice)
    assert lexicon == "hello h ə l ˈ o ʊ\nworld w ˈ ɜ ː l d\n"


@pytest.mark.slow
def test_the_published_sherpa_onnx_speaks(voice, exported):
    sherpa_onnx = pytest.importorskip("sherpa_onnx")
    matcha = sherpa_onnx.OfflineTtsMatchaModelConfig(
        acoustic_model=str(exported / "model.onnx"),
        vocoder=str(exported / "vocoder.onnx"),
        lexicon=str(exported / "lexicon.txt"),
        tokens=str(exported / "tokens.txt"),
    )
    model = sherpa_onnx.OfflineTtsModelConfig(matcha=matcha, num_threads=1)
    tts = sherpa_onnx.OfflineTts(sherpa_onnx.OfflineTtsConfig(model=model))
    assert (tts.sample_rate, tts.num_speakers) == (22050, 2)
    ids = voice.model.vocabulary.ids(SPOKEN)
    for speed in (1.0, 1.5):
        expected = infer(voice.model.network, ids, 0, duration_control=1 / speed)
        samples = tts.generate("Hello world!", sid=1, speed=speed).samples
        assert len(samples) == 256 * int(expected.mel_lengths)


def test_piper_is_refused(voice, tmp_path):
    with pytest.raises(InputError, match="needs phone_extractor espeak_characters"):
        export_piper(voice, tmp_path / "out")
