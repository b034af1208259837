"""Both networks of a voice as one graph, with the inputs of Piper's voices."""

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.compose import merge_models
from onnx.parser import parse_graph

from models.export.folder import ExportedVoice
from models.export.onnx_file import WeightType, to_onnx
from processors.text.nearest_phones import PhoneSet
from processors.text.symbols import FULL_STOP, PUNCTUATION_PAUSES, SILENCE
from utils.errors import InputError

N_DROPPED = 3  # ids 0, 1 and 2 are between phones and at both ends; those of phones follow
# the pause of a mark; other punctuation has none
PAUSE_OF_MARK = {",": "<,>", ";": "<,>", ":": "<,>", ".": FULL_STOP, "?": "<?>", "!": "<!>"}
_GRAPHS = ("acoustic", "vocoder")
_BEFORE = """
before (int64[1, n_ids] input, int64[1] input_lengths, float[3] scales{sid}) => (
  int64[1, n_phones] phone_ids, int64[1] speaker_id,
  float[1, 1] duration, float[1, 1] pitch, float[1, 1] energy
) {{
  row = Constant <value_ints = [-1]> ()
  ids = Reshape (input, row)
  first = Constant <value_ints = [{n_dropped}]> ()
  is_phone = GreaterOrEqual (ids, first)
  ids_of_phones = Compress <axis = 0> (ids, is_phone)
  spoken = Gather (phone_of_id, ids_of_phones)
  silence = Constant <value_ints = [{silence}]> ()
  started = Concat <axis = 0> (silence, spoken)
  last = Constant <value_ints = [-1]> ()
  last_phone = Gather (started, last)
  open_end = Gather (is_open, last_phone)
  is_added = Cast <to = 9> (open_end)
  full_stop = Constant <value_ints = [{full_stop}]> ()
  added = Compress <axis = 0> (full_stop, is_added)
  phones = Concat <axis = 0> (started, added)
  batch = Constant <value_ints = [0]> ()
  phone_ids = Unsqueeze (phones, batch)
  speaker_id = {speaker}
  length_scale = Constant <value_ints = [1]> ()
  durations = Gather (scales, length_scale)
  duration = Unsqueeze (durations, batch)
  neutral = Constant <value_floats = [1.0]> ()
  pitch = Unsqueeze (neutral, batch)
  energy = Unsqueeze (neutral, batch)
}}
"""
_AFTER = """
after (float[1, n] wav) => (float[1, 1, 1, n_samples] output) {
  axes = Constant <value_ints = [0, 1]> ()
  output = Unsqueeze (wav, axes)
}
"""


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
    networks = merge_models(
        *(acoustic, vocoder, [("mel", "mel")]),
        prefix1="acoustic_",
        outputs=["wav"],
    )
    inputs = [(name, f"acoustic_{name}") for name in voice.graphs["acoustic"].inputs]
    before, after = (
        _model(graph, like=acoustic) for graph in (_before(voice), parse_graph(_AFTER))
    )
    model = merge_models(before, networks, inputs, outputs=["wav"])
    return merge_models(model, after, [("wav", "wav")])


def _before(voice: ExportedVoice) -> onnx.GraphProto:
    """The inputs of the acoustic model from those of the whole."""
    symbols = voice.model.assets.required_vocabulary().symbols
    several = len(voice.model.speakers) > 1
    graph = parse_graph(
        _BEFORE.format(
            sid=", int64[1] sid" if several else "",
            speaker="Identity (sid)" if several else "Constant <value_ints = [0]> ()",
            n_dropped=N_DROPPED,
            silence=symbols.index(SILENCE),
            full_stop=symbols.index(FULL_STOP),
        )
    )
    tables: dict[str, Sequence[int]] = {
        "phone_of_id": [0] * N_DROPPED + [*range(len(symbols))],
        "is_open": [symbol not in PUNCTUATION_PAUSES for symbol in symbols],
    }
    graph.initializer.extend(
        numpy_helper.from_array(np.array(values, np.int64), name) for name, values in tables.items()
    )
    return graph


def _model(graph: onnx.GraphProto, like: onnx.ModelProto) -> onnx.ModelProto:
    return helper.make_model(graph, opset_imports=like.opset_import, ir_version=like.ir_version)


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


def check_one_pass(voice: ExportedVoice) -> None:
    """Raises InputError if a voice takes more than one pass, or noise."""
    if set(voice.graphs) != set(_GRAPHS) or "noise" in voice.graphs["vocoder"].inputs:
        raise InputError(
            f"{voice.model.home}: this format needs one pass of an acoustic model and of a vocoder"
            " without noise: FastSpeech 2 or FastPitch, and FreeVGL, HiFi-GAN or griffin_lim"
        )
