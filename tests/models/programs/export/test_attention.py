from types import SimpleNamespace

import numpy as np
import pytest
import torch

from models.base.graphs import Graph
from models.programs.export.attention import decode
from models.tts.tacotron2 import MODEL
from tests.models.programs.export.test_onnx_file import session_of
from tests.models.tts.batches import N_PHONES
from tests.models.tts.test_tacotron2 import GROUPS, SMALL, network_of
from utils.seed import derived_seed

IDS = torch.randint(1, N_PHONES, (1, 9), generator=torch.Generator().manual_seed(1))


class DrawnAsPrenetMasks:
    """Gives the numbers that `PrenetMasks` draws, step by step."""

    def __init__(self, seed: int) -> None:
        seed = derived_seed("prenet", seed, *IDS[0].tolist())
        self._generator = torch.Generator().manual_seed(seed)
        self._steps: list[np.ndarray] = []

    def random(self, shape: list[int], _dtype: type) -> np.ndarray:
        if not self._steps:
            self._steps = [*torch.rand((64, *shape), generator=self._generator).numpy()]
        return self._steps.pop(0)


class ModuleSession:
    """A graph in PyTorch with the interface of onnxruntime."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    @torch.no_grad()
    def _outputs(self, inputs):
        outputs = self._graph.module(*(inputs[name] for name in self._graph.inputs))
        outputs = (outputs,) if isinstance(outputs, torch.Tensor) else outputs
        return dict(zip(self._graph.outputs, outputs, strict=True))

    def _described(self, tensors):
        for name, tensor in tensors.items():
            lengths = self._graph.lengths.get(name, {})
            shape = [lengths.get(i, size) for i, size in enumerate(tensor.shape)]
            yield SimpleNamespace(name=name, shape=shape)

    def get_inputs(self):
        return self._described(self._graph.inputs)

    def get_outputs(self):
        return self._described(self._outputs(self._graph.inputs))

    def run(self, names, inputs):
        made = self._outputs({name: torch.from_numpy(array) for name, array in inputs.items()})
        return [made[name].numpy() for name in names or made]


ONNX = pytest.param(session_of, SMALL, 2, -15.0, 1, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    ("session", "config", "n_speakers", "gate_bias", "n_lengths"),
    [(ModuleSession, GROUPS, 1, -3.0, 3), (ModuleSession, SMALL, 2, -15.0, 1), ONNX],
)
def test_the_loop_decodes_as_the_network(
    session, config, n_speakers, gate_bias, n_lengths, monkeypatch
):
    network, ids = network_of(config, n_speakers).eval(), IDS
    network.decoder.gate_linear.weight.data.normal_(0, 5)  # the end depends on the noise
    network.decoder.gate_linear.bias.data.fill_(gate_bias)
    graphs = {name: session(graph) for name, graph in MODEL.graphs(network).items()}
    speakers = torch.tensor([n_speakers - 1])
    inputs = {"phone_ids": ids.numpy(), "speaker_id": speakers.numpy()}
    lengths = set()
    for seed in range(8):
        expected = network.infer(ids, torch.tensor([9]), speaker_ids=speakers, seed=seed)
        found = decode(graphs, inputs, DrawnAsPrenetMasks(seed))
        np.testing.assert_allclose(found, expected.mel.numpy(), rtol=0, atol=1e-4)
        lengths.add(found.shape[2])
    assert len(lengths) >= n_lengths
    monkeypatch.setattr("models.programs.export.attention.MAX_STEPS", 1)
    assert decode(graphs, inputs, np.random.default_rng(0)).shape[2] == network.frames_per_step
