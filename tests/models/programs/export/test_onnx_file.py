import copy
import logging
from dataclasses import replace
from functools import partial
from unittest import mock

import numpy as np
import onnxruntime
import pytest
import torch
from onnx import numpy_helper
from torch import nn

from models.base.graphs import EXAMPLE_LENGTH, Graph, feed_forward_graphs, vocoder_graphs
from models.programs.export import onnx_file
from models.programs.export.onnx_file import to_onnx
from models.tts.fastpitch import FastPitch
from models.vocoder.vocos import MODEL as VOCOS
from models.vocoder.waveglow import WaveGlowGraph, waveglow_graphs
from models.vocoder.waveglow.network import WaveGlow
from modules.layers.transformer import FFTStack
from modules.mel import MelConfig
from modules.waveform.griffin_lim import GriffinLim
from modules.waveform.griffin_lim_graph import GriffinLimGraph
from tests.models.programs.export.voices import infer
from tests.models.tts.batches import MEL as SMALL_MEL
from tests.models.tts.batches import N_PHONES, TWO_PITCHES
from tests.models.tts.test_fastpitch import SMALL, VERSION_1_0
from tests.models.vocoder.small_hifigan import MEL as SAME_MEL
from tests.models.vocoder.small_vocos import CENTRE as VOCOS_MEL
from tests.models.vocoder.small_vocos import make_network as make_vocos
from tests.models.vocoder.small_waveglow import SIZES, make_mel, make_network
from tests.modules.waveform.test_griffin_lim_graph import mel_of
from utils.errors import InputError


def session_of(graph: Graph) -> onnxruntime.InferenceSession:
    model = to_onnx(graph).SerializeToString()
    return onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])


@pytest.mark.slow
def test_griffin_lim_sounds_the_same_in_onnxruntime():
    vocoder, mel = GriffinLim(MelConfig(), iterations=3), mel_of(MelConfig())
    session = session_of(vocoder_graphs(GriffinLimGraph(vocoder), 80)["vocoder"])
    for n_frames in (1, 144, 290):
        part = mel[..., :n_frames]
        (found,) = session.run(["wav"], {"mel": part.numpy()})
        np.testing.assert_allclose(found, vocoder.infer(part).numpy(), rtol=0, atol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("config", [VERSION_1_0, SMALL])
def test_fastpitch_computes_the_same_in_onnxruntime(config):
    torch.manual_seed(0)
    network = FastPitch(config, N_PHONES, SMALL_MEL, TWO_PITCHES).eval()
    nn.init.constant_(network.duration_predictor.linear.bias, 1.5)
    graph = feed_forward_graphs(network)["acoustic"]
    session = session_of(graph)
    for n_phones in (2, 30):
        ids = torch.randint(1, N_PHONES, (1, n_phones))
        factors = {name: 0.5 + torch.rand(1, n_phones) for name in graph.broadcast}
        inputs = {"phone_ids": ids, "speaker_id": torch.tensor([1]), **factors}
        found = session.run(["mel"], {name: value.numpy() for name, value in inputs.items()})
        controls = {f"{name}_control": factor for name, factor in factors.items()}
        expected = infer(network, ids[0].tolist(), **controls)
        np.testing.assert_allclose(found[0], expected.mel.numpy(), rtol=0, atol=1e-4)


def test_stored_positions_are_used_where_there_are_enough():
    stack = FFTStack([], 4, max_length=5, stored_positions=True)
    nn.init.constant_(stack.positions, 7)
    mask = torch.ones(1, EXAMPLE_LENGTH, dtype=torch.bool)
    inputs = {"frames": torch.zeros(1, EXAMPLE_LENGTH, 4), "mask": mask}
    session = session_of(Graph(stack, inputs, ("sum",), {key: {1: "n_frames"} for key in inputs}))
    for n_frames in (1, 5, 6):
        frames, mask = (tensor[:, :n_frames] for tensor in inputs.values())
        (found,) = session.run(None, {"frames": frames.numpy(), "mask": mask.numpy()})
        np.testing.assert_allclose(found, stack(frames, mask).numpy(), rtol=0, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("mel", [VOCOS_MEL, SAME_MEL], ids=["center", "same"])
def test_vocos_computes_the_same_in_onnxruntime(mel):
    network = make_vocos(mel)
    session = session_of(VOCOS.graphs(network)["vocoder"])
    for n_frames in (1, 70):
        part = torch.randn(1, mel.n_mels, n_frames)
        (found,) = session.run(["wav"], {"mel": part.numpy()})
        np.testing.assert_allclose(found, network.infer(part).numpy(), rtol=0, atol=1e-4)


def with_noise(network: WaveGlow, mel: torch.Tensor) -> dict[str, torch.Tensor]:
    """The inputs of the graph for the noise that the network draws."""
    noise = network.noise(0, 0, mel) / network.config.sigma  # (1, G, L)
    return {"mel": mel, "noise": noise.mT.reshape(1, mel.shape[2], -1)}


def test_the_graph_of_waveglow_computes_the_same():
    network = make_network(replace(SIZES, denoiser_strength=0.1))
    graph, mel = WaveGlowGraph(network.for_inference()), make_mel(70)
    found = graph(**with_noise(network, mel))
    torch.testing.assert_close(found, network.infer(mel), rtol=0, atol=1e-5)


@pytest.mark.slow
def test_waveglow_computes_the_same_in_onnxruntime():
    network = make_network(replace(SIZES, denoiser_strength=0.1))
    session = session_of(waveglow_graphs(network)["vocoder"])
    for n_frames in (1, 70):
        mel = make_mel(n_frames)
        inputs = {name: tensor.numpy() for name, tensor in with_noise(network, mel).items()}
        (found,) = session.run(["wav"], inputs)
        np.testing.assert_allclose(found, network.infer(mel).numpy(), rtol=0, atol=1e-4)


def test_the_denoiser_of_the_graph_is_that_of_the_network():
    network = make_network(replace(SIZES, denoiser_strength=0.1)).for_inference()
    graph = WaveGlowGraph(network)
    for n_samples in (64, 4480):
        wav = 0.3 * torch.randn(n_samples, generator=torch.Generator().manual_seed(0))
        expected = network.denoiser(wav[None], network._removed_spectrum())[0]
        found = graph._denoised(wav, graph.removed)
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


def test_the_level_of_pytorchs_log_is_as_before(caplog):
    caplog.set_level(logging.INFO, "torch.onnx")
    to_onnx(Graph(nn.ReLU(), {"signal": torch.zeros(1, 4)}, ("positive",), {}))
    assert logging.getLogger("torch.onnx").level == logging.INFO


class Convolutions(nn.Module):
    """Both kinds of convolution: they have output channels in different dimensions."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.down = nn.Conv1d(4, 64, 5, padding=2)
        self.up = nn.ConvTranspose1d(64, 4, 8, stride=4)

    def forward(self, signal: torch.Tensor) -> torch.Tensor:
        return self.up(self.down(signal))


@pytest.fixture(scope="module")
def exported():
    """A graph, what PyTorch makes of it, and how its weights are stored in fewer bits."""
    module = Convolutions().eval()
    with torch.no_grad():  # channels of very different sizes
        module.down.weight *= torch.logspace(-3, 1, 64)[:, None, None]
        module.up.weight *= torch.logspace(-3, 1, 4)[:, None]
    graph = Graph(module, {"signal": torch.randn(1, 4, 50)}, ("wav",), {"signal": {2: "n"}})
    with mock.patch.object(onnx_file, "_shrink_weights") as shrink:
        model = to_onnx(graph, "fp16")
    _, parameters, kind = shrink.call_args.args
    assert kind == "fp16"
    return graph, model, partial(onnx_file._shrink_weights, parameters=parameters)


@pytest.mark.parametrize(("kind", "bytes_each", "error"), [("fp16", 2, 1e-3), ("int8", 1, 1e-2)])
def test_weights_take_fewer_bits_and_compute_nearly_the_same(exported, kind, bytes_each, error):
    graph, model, shrink = exported[0], copy.deepcopy(exported[1]), exported[2]
    shrink(model, weight_type=kind)
    sizes = {t.name: numpy_helper.to_array(t).nbytes for t in model.graph.initializer}
    assert sizes[f"module.down.weight_{kind}"] == 4 * 64 * 5 * bytes_each
    assert sizes[f"module.up.weight_{kind}"] == 4 * 64 * 8 * bytes_each
    assert sizes["module.down.bias"] == 4 * 64
    session = onnxruntime.InferenceSession(model.SerializeToString())
    (found,) = session.run(None, {"signal": graph.inputs["signal"].numpy()})
    expected = graph.module(graph.inputs["signal"]).detach().numpy()
    loudness = np.abs(expected).mean(axis=2, keepdims=True)  # of each channel
    assert (np.abs(found - expected) / loudness).mean() < error
    assert not np.array_equal(found, expected)


def test_a_weight_too_large_for_16_bits_is_named(exported):
    model, shrink = copy.deepcopy(exported[1]), exported[2]
    (tensor,) = (t for t in model.graph.initializer if t.name == "module.down.weight")
    tensor.CopyFrom(numpy_helper.from_array(np.full((64, 4, 5), 1e5, np.float32), tensor.name))
    with pytest.raises(InputError, match=r"module\.down\.weight holds numbers too large"):
        shrink(model, weight_type="fp16")
