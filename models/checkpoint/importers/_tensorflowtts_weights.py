"""Weights of TensorFlowTTS's FastSpeech 2 (`.h5` of Keras): their names, and the tensors of ours.

The file holds `<layer>/tf_fast_speech2/<layer>/.../kernel:0`; Graphcore's `<layer>/<layer>/...`.
The numbers of layers without a name (`dense_2`, `sequential_1`) depend on what was built before. So
a tensor is known by the end of its name.

The network computes normalised mels in log10; ours in nats. The last map of the decoder and of the
postnet therefore take up the scale of each band, and the postnet reads its mel less the mean.
"""

import math
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from models.checkpoint.tensors import listed, named_tensors
from utils.errors import InputError

_BLOCK = r"(encoder|decoder)/layer_\._(\d+)/"
_VARIANCE = r"(duration|f0|energy)_predictor/"
_NAMES = (  # ends of stored names, and the names in Arion
    (r"embeddings/charactor_embeddings/weight", "phone_embedding.weight"),
    (r"embeddings/position_embeddings/embeddings", "encoder.positions"),
    (r"decoder/position_embeddings/embeddings", "decoder.positions"),
    (_BLOCK + r"attention/self/(query|key|value)/(\w+)", r"\1.layers.\2.attention.\3.\4"),
    (_BLOCK + r"attention/output/dense/(\w+)", r"\1.layers.\2.attention.fc.\3"),
    (_BLOCK + r"attention/output/LayerNorm/(\w+)", r"\1.layers.\2.attention_norm.\3"),
    (_BLOCK + r"intermediate/conv1d_([12])/(\w+)", r"\1.layers.\2.conv_\3.\4"),
    (_BLOCK + r"output/LayerNorm/(\w+)", r"\1.layers.\2.conv_norm.\3"),
    (_VARIANCE + r"(?:sequential(?:_\d+)?/)?conv_\._(\d+)/(\w+)", r"\1.predictor.conv_\2.\3"),
    (_VARIANCE + r"(?:sequential(?:_\d+)?/)?LayerNorm_\._(\d+)/(\w+)", r"\1.predictor.norm_\2.\3"),
    (_VARIANCE + r"dense(?:_\d+)?/(\w+)", r"\1.predictor.linear.\2"),
    (r"(f0|energy)_embeddings/(\w+)", r"\1.embedding.\2"),
    (r"mel_before/(\w+)", r"mel_linear.\1"),
    (r"postnet/conv_\._(\d+)/(\w+)", r"postnet.convs.\1.\2"),
    (r"postnet/batch_norm_\._(\d+)/(\w+)", r"postnet.norms.\1.\2"),
)
_ENDS = {  # what Keras calls the parameters of a layer
    "kernel": "weight",
    "gamma": "weight",
    "beta": "bias",
    "moving_mean": "running_mean",
    "moving_variance": "running_var",
}
_AXES = (  # of the arrays whose names end so; all others have one
    (r"(conv_\._\d+|conv1d_\d|(f0|energy)_embeddings)/kernel", 3),
    (r"(kernel|\w+_embeddings/(weight|embeddings))", 2),
)
_NEEDED = (  # their shapes are the sizes of the network
    "phone_embedding.weight",
    "encoder.positions",
    "encoder.layers.0.conv_1.weight",
    "encoder.layers.0.conv_2.weight",
    "duration_predictor.conv_1.weight",
    "pitch.embedding.weight",
    "mel_linear.weight",
    "mel_linear.bias",
)
_SPEAKERS = re.compile(r"speaker_(embeddings|fc)/")
_PROJECTION = "project_compatible_decoder/"
_EPS, _OWN_EPS = 1e-3, 1e-5  # of batch normalisation in Keras and here
_SIGNATURE = b"\x89HDF\r\n\x1a\n"


def is_hdf5(path: Path) -> bool:
    """Whether a file is in the format of `.h5` files."""
    try:
        with path.open("rb") as file:
            return file.read(len(_SIGNATURE)) == _SIGNATURE
    except OSError:
        return False


def read_hdf5(path: Path) -> dict[str, Tensor]:
    """Reads all arrays of a `.h5` file under their paths in it.

    Raises:
        InputError: If h5py is missing, or the file is damaged.
    """
    try:
        import h5py  # not at the top: few models need it
    except ImportError as error:
        raise InputError(
            f"{path}: reading it needs h5py: pip install -e '.[tensorflowtts]'"
        ) from error
    arrays: dict[str, Tensor] = {}

    def collect(name: str, item: object) -> None:
        if isinstance(item, h5py.Dataset) and item.dtype.kind == "f":
            arrays[name] = torch.from_numpy(np.asarray(item[()], dtype=np.float32))

    try:
        with h5py.File(path, "r") as file:
            file.visititems(collect)
    except (OSError, RuntimeError, ValueError, KeyError) as error:
        raise InputError(f"{path}: not a complete .h5 file: {error}") from error
    return named_tensors(arrays, str(path))


def translate(
    stored: Mapping[str, Tensor], mean: Tensor, scale: Tensor, path: Path
) -> dict[str, Tensor]:
    """Converts tensors to Arion's names, layouts and units.

    Args:
        stored: By the names in the file.
        mean: Of each band in training, log10, (M,).
        scale: Standard deviations, likewise.
        path: The file, for messages.

    Raises:
        InputError: If they are of another architecture, of several speakers, or incomplete.
    """
    _check(stored, path)
    own: dict[str, Tensor] = {}
    for name, tensor in stored.items():
        key = own_name(name)
        if key in own:
            raise InputError(f"{path}: {name} is in it twice; is it of one model?")
        own[key] = _in_torch_layout(tensor) if name.endswith("/kernel:0") else tensor
    _require(own, _NEEDED, path)
    _join_attention(own, path)
    for part in ("encoder", "decoder"):
        if f"{part}.positions" in own:
            own[f"{part}.positions"] = own[f"{part}.positions"][1:]  # row 0 is of padding
    _to_nats(own, mean * math.log(10), scale * math.log(10), path)
    return own


def own_name(name: str) -> str:
    """Arion's name of a tensor; "" if FastSpeech 2 has no such part."""
    for pattern, own in _NAMES:
        if match := re.search(rf"(?:^|/){pattern}:0$", name):
            layer, _, end = match.expand(own).rpartition(".")
            layer = re.sub(r"^f0\.", "pitch.", layer)
            layer = layer.replace("duration.predictor", "duration_predictor")
            numbered = re.sub(
                r"(?<=predictor\.)(conv|norm)_(\d+)", lambda m: f"{m[1]}_{int(m[2]) + 1}", layer
            )
            return f"{numbered}.{_ENDS.get(end, end)}"
    return ""


def _check(stored: Mapping[str, Tensor], path: Path) -> None:
    if any(_SPEAKERS.search(name) for name in stored):
        raise InputError(
            f"{path}: it has several speakers; TensorFlowTTS adds them in five places of the"
            " network, and Arion in one: only voices of one speaker can be used"
        )
    if any(_PROJECTION in name for name in stored):
        raise InputError(f"{path}: encoder_hidden_size and decoder_hidden_size must be equal")
    if foreign := sorted(name for name in stored if not own_name(name)):
        raise InputError(
            f"{path}: tensors that FastSpeech 2 does not have: {listed(foreign)}; it is of another "
            "architecture"
        )
    if misshapen := sorted(name for name, t in stored.items() if t.ndim != _n_axes(name)):
        raise InputError(
            f"{path}: arrays with another number of axes than in FastSpeech 2: {listed(misshapen)};"
            " it is damaged, or of another architecture"
        )


def _n_axes(name: str) -> int:
    return next((n for end, n in _AXES if re.search(rf"(?:^|/){end}:0$", name)), 1)


def _in_torch_layout(kernel: Tensor) -> Tensor:
    """(in, out) or (K, in, out) -> (out, in) or (out, in, K)."""
    return kernel.permute(*reversed(range(kernel.ndim)))


def _require(own: Mapping[str, Tensor], names: tuple[str, ...], path: Path) -> None:
    if missing := [name for name in names if name not in own]:
        raise InputError(f"{path}: incomplete, without {listed(missing)}")


def _join_attention(own: dict[str, Tensor], path: Path) -> None:
    """Joins queries, keys and values, which are one map here."""
    for first in [name for name in own if ".attention.query." in name]:
        names = [first.replace("query", part) for part in ("query", "key", "value")]
        _require(own, tuple(names), path)
        parts = [own.pop(name) for name in names]
        if len({part.shape for part in parts}) > 1:
            shapes = ", ".join(f"{n} {tuple(p.shape)}" for n, p in zip(names, parts, strict=True))
            raise InputError(f"{path}: the shapes of {shapes} differ; it is damaged")
        own[first.replace("query", "qkv")] = torch.cat(parts)


def _to_nats(own: dict[str, Tensor], mean: Tensor, scale: Tensor, path: Path) -> None:
    """Gives the mel maps the mean and scale of each band, (M,) each."""
    last = max(
        (int(name.split(".")[2]) for name in own if name.startswith("postnet.convs.")), default=-1
    )
    final = f"postnet.norms.{last}"
    first = "postnet.convs.0.weight"
    _require(own, (first, f"{final}.weight", f"{final}.bias"), path)
    mel_linear = {"mel_linear.weight": 0, "mel_linear.bias": 0}
    postnet = {first: 1, f"{final}.weight": 0, f"{final}.bias": 0}
    _check_bands(own, mel_linear | postnet, len(mean), path)
    own["mel_linear.weight"] = own["mel_linear.weight"] * scale[:, None]
    own["mel_linear.bias"] = own["mel_linear.bias"] * scale + mean
    own["postnet.centre"] = mean
    own[first] = own[first] / scale[:, None]
    for end in ("weight", "bias"):
        own[f"{final}.{end}"] = own[f"{final}.{end}"] * scale
    for number in range(last + 1):
        name = f"postnet.norms.{number}"
        _require(own, (f"{name}.running_var",), path)
        own[f"{name}.running_var"] = own[f"{name}.running_var"] + (_EPS - _OWN_EPS)
        own[f"{name}.num_batches_tracked"] = torch.tensor(0)


def _check_bands(
    own: Mapping[str, Tensor], axes: Mapping[str, int], n_mels: int, path: Path
) -> None:
    """Compares the axes of tensors that are the bands of the mel with its statistics."""
    sizes = {name: own[name].shape[axis] for name, axis in axes.items()}
    if wrong := [f"{name} has {size}" for name, size in sizes.items() if size != n_mels]:
        raise InputError(
            f"{path}: {', '.join(wrong)} mel bands, and stats.npy {n_mels}; copy the stats.npy of"
            " the dump that it was trained on"
        )
