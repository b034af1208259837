"""Both networks of a voice as one graph, with the inputs of Piper's voices."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.compose import merge_models

from models.export.folder import ExportedVoice
from models.export.onnx_file import to_onnx
from models.export.weights import WeightType
from processors.text.nearest_phones import PhoneSet
from processors.text.symbols import FULL_STOP, PUNCTUATION_PAUSES, SILENCE
from utils.errors import InputError

N_DROPPED = 3  # ids 0, 1 and 2 are between phones and at both ends; those of phones follow
# the pause of a mark; other punctuation has none
PAUSE_OF_MARK = {",": "<,>", ";": "<,>", ":": "<,>", ".": FULL_STOP, "?": "<?>", "!": "<!>"}
_GRAPHS = ("acoustic", "vocoder")


def merged_graph(voice: ExportedVoice, weight_type: WeightType = "fp32") -> onnx.ModelProto:
    """The graph.

    Its inputs are `input` (1, N) ids, `input_lengths` (1,) which is not used, `scales` (3,) of
    which the second is the factor on durations, and with several speakers `sid` (1,); its output
    is (1, 1, 1, S). It starts the text with a silence and ends it with a full stop if it ends
    with no pause.

    Raises:
        InputError: If the voice takes more than one pass, or noise.
    """
    check_one_pass(voice)
    acoustic, vocoder = (to_onnx(voice.graphs[name], weight_type) for name in _GRAPHS)
    model: onnx.ModelProto = merge_models(
        acoustic, vocoder, [("mel", "mel")], prefix1="acoustic_", outputs=["wav"]
    )
    graph, several = model.graph, len(voice.model.speakers) > 1
    symbols = voice.model.assets.required_vocabulary().symbols
    constants: dict[str, Sequence[int]] = {
        "first": [N_DROPPED],  # of the ids that are kept
        "phone_of_id": [0] * N_DROPPED + [*range(len(symbols))],
        "is_open": [symbol not in PUNCTUATION_PAUSES for symbol in symbols],
        "silence": [symbols.index(SILENCE)],
        "full_stop": [symbols.index(FULL_STOP)],
        "last": [-1],
        "one": [1],
        "square": [1, 1],
        "row": [1, -1],
        "wav_shape": [1, 1, 1, -1],
    }
    graph.initializer.extend(
        numpy_helper.from_array(np.array(values, np.int64), f"merged_{name}")
        for name, values in constants.items()
    )
    graph.initializer.extend(
        numpy_helper.from_array(np.ones((1, 1), np.float32), f"acoustic_{name}")
        for name in ("pitch", "energy")
        if name in voice.graphs["acoustic"].inputs
    )
    before = [
        _node("Reshape", "ids", "input", "@last"),  # (N,)
        _node("GreaterOrEqual", "kept", "@ids", "@first"),
        _node("Compress", "kept_ids", "@ids", "@kept", axis=0),
        _node("Gather", "spoken", "@phone_of_id", "@kept_ids"),
        _node("Concat", "started", "@silence", "@spoken", axis=0),
        _node("Gather", "last_phone", "@started", "@last"),
        _node("Gather", "open", "@is_open", "@last_phone"),
        _node("Cast", "is_added", "@open", to=TensorProto.BOOL),
        _node("Compress", "added", "@full_stop", "@is_added", axis=0),
        _node("Concat", "phones", "@started", "@added", axis=0),
        helper.make_node("Reshape", ["merged_phones", "merged_row"], ["acoustic_phone_ids"]),
        _node("Gather", "length_scale", "scales", "@one"),
        helper.make_node(
            "Reshape", ["merged_length_scale", "merged_square"], ["acoustic_duration"]
        ),
    ]
    if several:
        before.append(helper.make_node("Identity", ["sid"], ["acoustic_speaker_id"]))
    else:
        zero = numpy_helper.from_array(np.zeros(1, np.int64), "acoustic_speaker_id")
        graph.initializer.append(zero)
    for node in reversed(before):
        graph.node.insert(0, node)
    graph.node.append(helper.make_node("Reshape", ["wav", "merged_wav_shape"], ["output"]))
    del graph.input[:], graph.output[:]
    shapes: dict[str, tuple[int, list[str | int | None]]] = {
        "input": (TensorProto.INT64, [1, "n_ids"]),
        "input_lengths": (TensorProto.INT64, [1]),
        "scales": (TensorProto.FLOAT, [3]),
        "sid": (TensorProto.INT64, [1]),
        "output": (TensorProto.FLOAT, [1, 1, 1, "n_samples"]),
    }
    tensors = {name: helper.make_tensor_value_info(name, *of) for name, of in shapes.items()}
    graph.output.append(tensors.pop("output"))
    graph.input.extend(info for name, info in tensors.items() if several or name != "sid")
    return model


def ids_of(voice: ExportedVoice, phones: Sequence[str]) -> list[int]:
    """The ids of phones in the merged graph; of others, those of the nearest that are trained.

    Empty if a phone has none near it.
    """
    trained = PhoneSet(voice.model.assets.known_phones)
    names = [trained.nearest(phone) for phone in phones]
    if not all(names):
        return []
    vocabulary = voice.model.assets.required_vocabulary()
    return [N_DROPPED + i for row in names for i in vocabulary.ids(row)]


def _node(kind: str, output: str, *inputs: str, **attributes: Any) -> onnx.NodeProto:  # noqa: ANN401
    """A node whose output, and inputs with an @, are tensors of this file."""
    names = [name.replace("@", "merged_") for name in inputs]
    return helper.make_node(kind, names, [f"merged_{output}"], **attributes)


def check_one_pass(voice: ExportedVoice) -> None:
    """Raises InputError if a voice takes more than one pass, or noise."""
    if set(voice.graphs) != set(_GRAPHS) or "noise" in voice.graphs["vocoder"].inputs:
        raise InputError(
            f"{voice.model.home}: this format needs one pass of an acoustic model and of a vocoder"
            " without noise: FastSpeech 2 or FastPitch, and FreeVGL, HiFi-GAN or griffin_lim"
        )
