import numpy as np
import onnxruntime
import pytest
import torch
from torch import nn

from models.base.acoustic.graph import feed_forward_graphs
from models.base.graph import EXAMPLE_LENGTH, Graph, vocoder_graphs
from models.export.onnx_file import to_onnx
from models.tts.fastpitch import FastPitch
from modules.layers.transformer import FFTStack
from modules.mel import MelConfig
from modules.waveform.griffin_lim import GriffinLim
from modules.waveform.griffin_lim_graph import GriffinLimGraph
from tests.models.tts.batches import MEL as SMALL_MEL
from tests.models.tts.batches import N_PHONES, TWO_PITCHES
from tests.models.tts.test_fastpitch import SMALL, VERSION_1_0
from tests.modules.waveform.test_griffin_lim_graph import mel_of


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


@pytest.mark.parametrize("config", [VERSION_1_0, pytest.param(SMALL, marks=pytest.mark.slow)])
def test_fastpitch_computes_the_same_in_onnxruntime(config):
    torch.manual_seed(0)
    network = FastPitch(config, N_PHONES, SMALL_MEL, TWO_PITCHES).eval()
    nn.init.constant_(network.duration_predictor.linear.bias, 1.5)
    graph = feed_forward_graphs(network)["acoustic"]
    session = session_of(graph)
    for n_phones in (2, 30):
        inputs = {
            "phone_ids": torch.randint(1, N_PHONES, (1, n_phones)),
            "speaker_id": torch.tensor([1]),
        }
        factors = {name: 0.5 + torch.rand(1, n_phones) for name in graph.broadcast}
        found = session.run(["mel"], {k: v.numpy() for k, v in (inputs | factors).items()})
        expected = network.infer(
            inputs["phone_ids"],
            torch.tensor([n_phones]),
            speaker_ids=inputs["speaker_id"],
            **{f"{name}_control": factor for name, factor in factors.items()},
        )
        np.testing.assert_allclose(found[0], expected.mel.numpy(), rtol=0, atol=1e-4)


def test_stored_positions_are_used_where_there_are_enough():
    stack = FFTStack([], 4, max_length=5, stored_positions=True)
    nn.init.constant_(stack.positions, 7)
    inputs = {
        "frames": torch.zeros(1, EXAMPLE_LENGTH, 4),
        "mask": torch.ones(1, EXAMPLE_LENGTH, dtype=torch.bool),
    }
    session = session_of(Graph(stack, inputs, ("sum",), {key: {1: "n_frames"} for key in inputs}))
    for n_frames in (1, 5, 6):
        frames, mask = (tensor[:, :n_frames] for tensor in inputs.values())
        (found,) = session.run(None, {"frames": frames.numpy(), "mask": mask.numpy()})
        np.testing.assert_allclose(found, stack(frames, mask).numpy(), rtol=0, atol=1e-6)
