"""One voice, vocoder and runner; equal graphs are exported once: PyTorch takes seconds for each."""

import onnx
import pytest

from models.base.graphs import Graph
from models.programs.export.folder import export_voice, open_voice
from models.programs.export.onnx_file import to_onnx
from tests.models.programs.export.voices import RATES, SPEAKERS, runner_in
from tests.models.synthesizer.test_synthesizer import make_voice
from tests.models.synthesizer.test_vocoders import make_vocoder

EXPORTERS = ("models.programs.export.folder", "models.programs.export.piper_sherpa")


def content_of(graph: Graph) -> tuple[object, ...]:
    """The layers, their tensors, and the inputs and outputs."""
    module = graph.module
    tensors = {**dict(module.named_parameters()), **dict(module.named_buffers()), **graph.inputs}
    values = [(name, tensor.detach().numpy().tobytes()) for name, tensor in tensors.items()]
    return repr(module), tuple(values), graph.outputs, repr(graph.lengths)


@pytest.fixture(scope="session")
def home(tmp_path_factory):
    """An untrained voice of two speakers."""
    return make_voice(tmp_path_factory.mktemp("voice") / "two", *SPEAKERS)


@pytest.fixture(scope="session")
def vocoder(tmp_path_factory):
    return make_vocoder(tmp_path_factory.mktemp("vocoder") / "vocoder", rates=RATES)


@pytest.fixture(scope="module")
def folder(synthesizer, tmp_path_factory):
    """The exported voice of a module's synthesizer."""
    target = tmp_path_factory.mktemp("exported") / "two"
    export_voice(open_voice(synthesizer.model.home, synthesizer.vocoder_name), target)
    return target


@pytest.fixture(scope="module")
def voice(folder):
    return runner_in(folder).Voice(folder, threads=1)


@pytest.fixture(autouse=True, scope="package")
def _exported_once():
    files = {}

    def exported(graph, weight_type):
        key = content_of(graph), weight_type
        if key not in files:
            files[key] = to_onnx(graph, weight_type).SerializeToString()
        return onnx.load_from_string(files[key])

    with pytest.MonkeyPatch.context() as monkeypatch:
        for module in EXPORTERS:
            monkeypatch.setattr(f"{module}.to_onnx", exported)
        yield
