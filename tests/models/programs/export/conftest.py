"""Equal graphs are exported once for all files: PyTorch takes seconds for each."""

import onnx
import pytest

from models.base.graphs import Graph
from models.programs.export.onnx_file import to_onnx

EXPORTERS = ("models.programs.export.folder", "models.programs.export.piper_sherpa")


def content_of(graph: Graph) -> tuple[object, ...]:
    """The layers, their tensors, and the inputs and outputs."""
    module = graph.module
    tensors = {**dict(module.named_parameters()), **dict(module.named_buffers()), **graph.inputs}
    values = [(name, tensor.detach().numpy().tobytes()) for name, tensor in tensors.items()]
    return repr(module), tuple(values), graph.outputs, repr(graph.lengths)


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
