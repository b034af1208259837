"""FlowSpeech in every format: the noise of its flow is part of the graph."""

import copy
import json
from dataclasses import replace

import numpy as np
import onnxruntime
import pytest
import torch

from models.base.graphs import FeedForward, feed_forward_graphs
from models.programs.export.folder import open_voice
from models.programs.export.piper_sherpa import export_piper, export_sherpa, ids_of
from models.synthesizer.synthesizer import Synthesizer
from tests.models.programs.export import voices
from tests.models.programs.export.test_onnx_file import session_of
from tests.models.programs.export.voices import TEXTS, infer, wav_of

FACTORS = ("duration", "pitch", "energy")
SPOKEN = ["<sil>", "HH", "AH0", "L", "OW1", "<.>"]


@pytest.fixture(scope="module")
def synthesizer(vocoder, tmp_path_factory):
    folder = voices.make_flow_voice(tmp_path_factory.mktemp("voice") / "flow", *voices.SPEAKERS)
    return Synthesizer(folder, vocoder, "cpu")


@pytest.fixture(scope="module")
def opened(synthesizer):
    return open_voice(synthesizer.model.home, synthesizer.vocoder_name)


@pytest.mark.parametrize(
    ("temperature", "seed"), [(0.0, 0), (0.3, 0), (1.0, 7), (2.0, 2**32 + 5), (1.0, 2**63 - 1)]
)
def test_mels_are_those_of_the_network(voice, synthesizer, temperature, seed):
    generator = np.random.default_rng(seed)
    network = synthesizer.model.network
    clauses = [c for text in TEXTS[:4] for s in voice._reader(text, "en-us") for c in s]
    for speaker, clause in enumerate(clauses):
        ids = clause.phone_ids
        factors = generator.uniform(0.5, 2, (3, 1, len(ids))).astype("f")
        controls = dict(zip(FACTORS, factors, strict=True)) | voice._flow(temperature, seed)
        found = voice.mel(ids, speaker % 2, controls, generator)
        settings = {f"{name}_control": torch.from_numpy(controls[name]) for name in FACTORS}
        expected = infer(network, ids, speaker % 2, seed=seed, temperature=temperature, **settings)
        np.testing.assert_allclose(found, expected.mel.numpy(), rtol=0, atol=1e-4)


@pytest.mark.slow  # another graph than that of the other tests
def test_a_flow_of_two_steps_is_that_of_the_network(synthesizer):
    network = copy.deepcopy(synthesizer.model.network)
    network.config = replace(network.config, steps=2)
    graph = feed_forward_graphs(network)["acoustic"]
    N = 9
    inputs = {
        name: value[:, :N] if name in graph.lengths else value
        for name, value in graph.inputs.items()
    }
    inputs["phone_ids"] = torch.arange(10, 10 + N)[None]
    expected = graph.module(*inputs.values())[0].detach().numpy()
    found, _ = session_of(graph).run(None, {name: value.numpy() for name, value in inputs.items()})
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4)
    one_step = FeedForward(synthesizer.model.network, graph.module.arguments)(*inputs.values())
    assert np.abs(one_step[0].detach().numpy() - expected).max() > 0.01


@pytest.mark.parametrize(
    "settings", [{"speaker": "anna"}, {"speaker": "bert", "temperature": 1.2, "seed": 3}]
)
def test_texts_sound_as_with_the_synthesizer(voice, synthesizer, settings):
    for text in TEXTS[:4]:
        expected = synthesizer(text, **settings).wav
        np.testing.assert_allclose(voice(text, **settings), expected, rtol=0, atol=1e-4)


def test_seed_and_temperature_choose_the_speech(voice):
    settings = {}, {"seed": 1}, {"temperature": 0.0}, {"temperature": 0.3}
    plain, *others = (voice(TEXTS[0], speaker="anna", **changes) for changes in settings)
    assert [np.array_equal(plain, other) for other in others] == [False, False, True]
    for settings, message in (
        ({"temperature": 2.1}, "the temperature 2.1 is not from 0 to 2"),
        ({"temperature": float("nan")}, "the temperature nan is not from 0 to 2"),
        ({"seed": -1}, "the seed -1 is not from 0 to"),
        ({"seed": 2**63}, r"the seed 9223372036854775808 is not from 0 to 2\^63 - 1"),
    ):
        with pytest.raises(ValueError, match=message):
            voice(TEXTS[0], speaker="anna", **settings)


def test_the_inputs_of_the_flow_have_one_number(folder):
    session = onnxruntime.InferenceSession(folder / "acoustic.onnx")
    types = {tensor.name: (tensor.shape, tensor.type) for tensor in session.get_inputs()}
    assert types["temperature"] == ([1], "tensor(float)")
    assert types["seed"] == ([1], "tensor(int64)")
    assert json.loads((folder / "voice.json").read_text())["temperature"] == 0.3


@pytest.mark.parametrize(
    ("export_graph", "name"),
    [(export_piper, "en_US-flow-medium.onnx"), (export_sherpa, "model.onnx")],
)
def test_the_merged_graph_takes_the_temperature_from_the_noise_scale(
    opened, tmp_path, export_graph, name
):
    export_graph(opened, tmp_path / "out")
    session = onnxruntime.InferenceSession(tmp_path / "out" / name)
    ids = ids_of(opened, SPOKEN[1:])
    inputs = {"input": np.array([ids]), "input_lengths": np.array([len(ids)]), "sid": np.array([1])}
    for noise_scale, temperature in ((0.667, 0.3), (2 * 0.667, 0.6), (0.0, 0.0)):
        scales = np.array([noise_scale, 1.3, 0.8], np.float32)
        (found,) = session.run(["output"], inputs | {"scales": scales})
        expected = wav_of(opened, SPOKEN, 1.3, temperature=temperature)
        np.testing.assert_allclose(found[0, 0, 0], expected, rtol=0, atol=1e-3)


def test_the_published_piper_speaks_with_the_temperature_of_the_voice(opened, tmp_path):
    piper = pytest.importorskip("piper")
    from tests.models.programs.export.test_piper import phones_of

    export_piper(opened, tmp_path / "out")
    settings = json.loads((tmp_path / "out" / "en_US-flow-medium.onnx.json").read_text())
    assert settings["inference"]["noise_scale"] == 0.667
    voice = piper.PiperVoice.load(tmp_path / "out" / "en_US-flow-medium.onnx")
    for noise_scale, temperature in ((None, 0.3), (2 * 0.667, 0.6)):
        config = piper.SynthesisConfig(speaker_id=1, noise_scale=noise_scale, normalize_audio=False)
        [chunk] = voice.synthesize("Hello, voice of a church!", config)
        phones = ["<sil>", *phones_of(voice, opened.model.vocabulary, chunk.phonemes)]
        expected = wav_of(opened, phones, temperature=temperature).clip(-1, 1)
        np.testing.assert_allclose(chunk.audio_float_array, expected, rtol=0, atol=1e-3)


def test_the_published_sherpa_onnx_speaks_with_the_temperature_of_the_voice(opened, tmp_path):
    export_sherpa(opened, tmp_path / "out")
    found = voices.published_sherpa(tmp_path / "out").generate("hello", sid=1)
    np.testing.assert_allclose(np.array(found.samples), wav_of(opened, SPOKEN), rtol=0, atol=1e-3)
