"""FastSpeech 2 of TensorFlowTTS (github.com/TensorSpeech/TensorFlowTTS) and of Graphcore.

TensorFlowTTS leaves the dropout of pitch and energy on in synthesis; here it is off.

The network computes normalised mels in log10; ours in nats. The last map of the decoder and of the
postnet therefore take up the scale of each band, and the postnet reads its mel less the mean.
"""

import math
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from models.base.assets import Speaker
from models.checkpoint.foreign import FileNames, ImportedModel, beside
from models.checkpoint.importers import _tables
from models.checkpoint.importers._nvidia import symbol_set
from models.checkpoint.importers._tables import TensorNames
from models.checkpoint.tensors import named_tensors
from processors.dataset.statistics import CorpusStats, SpeakerStats
from processors.tensorflowtts.layout import DEFINITION, SYMBOL_SET
from utils.arrays import read_array
from utils.config_tree import read_yaml
from utils.errors import InputError

KIND = "FastSpeech 2 of TensorFlowTTS (*.h5, its yaml file and stats*.npy)"
FILES = FileNames(re.compile(r".+\.h5"), re.compile(r"(\d+k?)\.h5$"), re.compile(r".+\.ya?ml"))
_PARAMS = "fastspeech2_params"
_FIXED = {  # the mel of TensorFlowTTS's recipe for LJ Speech, and its network
    "model_type": "FastSpeech2",
    **_tables.mel_settings(DEFINITION),
    "preprocess.pitch_extractor": "pyworld",
    "preprocess.aligner": "imported",  # its durations came from a Tacotron 2 or an aligner
    "preprocess.text.phone_extractor": SYMBOL_SET,
    "preprocess.text.p_arpabet": 0.0,
    "model.variance_embedding.kind": "convolution",
    "model.centred_postnet": True,
    "model.stored_positions": True,
}
_SETTINGS = _tables.below(  # that the tensors do not imply
    {"model.": f"{_PARAMS}."},
    {
        "transformer.encoder_head": "encoder_num_attention_heads",
        "transformer.decoder_head": "decoder_num_attention_heads",
        "transformer.activation": "encoder_hidden_act",
        "transformer.encoder_dropout": "hidden_dropout_prob",
        "transformer.decoder_dropout": "hidden_dropout_prob",
        "transformer.attention_dropout": "attention_probs_dropout_prob",
        "variance_predictor.dropout": "variant_predictor_dropout_rate",
    },
)
_SIZES = {  # Arion's keys, and the tensor and its axis
    "preprocess.n_mels": ("mel_linear.weight", 0),
    "model.transformer.encoder_hidden": ("phone_embedding.weight", 1),
    "model.transformer.decoder_hidden": ("mel_linear.weight", 1),
    "model.transformer.conv_filter_size": ("encoder.layers.0.conv_1.weight", 0),
    "model.variance_predictor.filter_size": ("duration_predictor.conv_1.weight", 0),
    "model.variance_predictor.kernel_size": ("duration_predictor.conv_1.weight", 2),
    "model.variance_embedding.kernel_size": ("pitch.embedding.weight", 2),
    "model.max_seq_len": ("encoder.positions", 0),
}
_BLOCK = {
    "attention/self/{qkv}/": "attention.{qkv}.",
    "attention/output/dense/": "attention.fc.",
    "attention/output/LayerNorm/": "attention_norm.",
    "intermediate/conv1d_{m}/": "conv_{m}.",
    "output/LayerNorm/": "conv_norm.",
}
_QUANTITIES = {"duration_": "duration_", "f0_": "pitch.", "energy_": "energy."}
_PREDICTOR = {
    "predictor/conv_._{n}/": "predictor.conv_{n+1}.",
    "predictor/LayerNorm_._{n}/": "predictor.norm_{n+1}.",
    "predictor/dense/": "predictor.linear.",
    "embeddings/": "embedding.",
}
_NAMES = TensorNames(  # without the numbers of layers
    {
        "charactor_embeddings/": "phone_embedding.",
        "embeddings/position_embeddings/embeddings:0": "encoder.positions",
        "decoder/position_embeddings/embeddings:0": "decoder.positions",
        **_tables.below({"{part}/layer_._{n}/": "{part}.layers.{n}."}, _BLOCK),
        **_tables.below(_QUANTITIES, _PREDICTOR),
        "mel_before/": "mel_linear.",
        "postnet/conv_._{n}/": "postnet.convs.{n}.",
        "postnet/batch_norm_._{n}/": "postnet.norms.{n}.",
    }
)
# depend on what was built before
_NUMBERS = re.compile(r"/sequential(_\d+)?(?=/)|(?<=/dense)_\d+(?=/)")
_ENDS = {  # what Keras calls the parameters of a layer
    "kernel": "weight",
    "gamma": "weight",
    "beta": "bias",
    "moving_mean": "running_mean",
    "moving_variance": "running_var",
}
_EPS, _OUR_EPS = 1e-3, 1e-5  # of batch normalisation in Keras and here


def recognises(weights: Path) -> bool:
    """Returns whether it is a `.h5` with its yaml file."""
    return bool(FILES.weights.fullmatch(weights.name) and _settings_of(weights))


def read(weights: Path) -> ImportedModel:
    """Reads a checkpoint."""
    path = _settings_of(weights)
    values = read_yaml(path)
    keys = (f"{_PARAMS}.{part}_hidden_act" for part in ("encoder", "decoder"))
    encoder, decoder = (_tables.value_at(values, key) for key in keys)
    if encoder != decoder:
        raise InputError(f"{path}: encoder_hidden_act and decoder_hidden_act must be equal")
    settings = _FIXED | _tables.required(values, _SETTINGS, path)
    mel, *contours = (_statistics(weights, name) for name in ("stats", "stats_f0", "stats_energy"))
    tensors = _translated(_read_hdf5(weights), *mel, path=weights)
    for contour, (mean, std) in zip(("pitch", "energy"), contours, strict=True):
        tensors[f"{contour}.norm.mean"], tensors[f"{contour}.norm.std"] = mean, std
    n_symbols = _tables.size_of(tensors, "phone_embedding.weight", 0, weights)
    _, vocabulary = symbol_set(n_symbols, [SYMBOL_SET], weights)
    pitch, energy = (
        _tables.stat_without_range(float(mean[0]), float(std[0])) for mean, std in contours
    )
    return ImportedModel(
        tree=_tables.tree_of("tts", settings | _sizes(tensors, weights), path),
        tensors=tensors,
        weights=weights,
        source=f"FastSpeech 2 of TensorFlowTTS, {weights.name}",
        vocabulary=vocabulary,
        speakers=(Speaker("speaker", "en-us"),),
        stats=CorpusStats({"speaker": SpeakerStats(pitch, pitch, energy, energy, 0.0)}),
        step=FILES.number_in(weights),
    )


def translated_name(name: str) -> str:
    """Returns Arion's name of a tensor; the same if FastSpeech 2 has no such part.

    The file holds `<layer>/tf_fast_speech2/<layer>/.../kernel:0`, Graphcore's
    `<layer>/<layer>/...`, so that a tensor is known by the end of its name.
    """
    parts = _NUMBERS.sub("", name).split("/")
    for start in reversed(range(len(parts))):
        if ours := _NAMES.translated("/".join(parts[start:])):
            layer, _, end = ours.removesuffix(":0").rpartition(".")
            return f"{layer}.{_ENDS.get(end, end)}"
    return name


def _settings_of(weights: Path) -> Path:
    """Returns the yaml file of its training, of any name."""
    names = sorted((*weights.parent.glob("*.yml"), *weights.parent.glob("*.yaml")))
    path = next((file for file in names if _PARAMS in read_yaml(file)), None)
    if path is None:
        fault = f"{weights}: no yaml file with {_PARAMS} in its folder"
        raise InputError(f"{fault}; copy that of its training there")
    return path


def _sizes(tensors: Mapping[str, Tensor], path: Path) -> dict[str, object]:
    size = partial(_tables.size_of, tensors, path=path)
    kernels = [size(f"encoder.layers.0.conv_{n}.weight", 2) for n in (1, 2)]
    sizes: dict[str, object] = {key: size(name, axis) for key, (name, axis) in _SIZES.items()}
    for part in ("encoder", "decoder"):
        blocks = {name.split(".")[2] for name in tensors if name.startswith(f"{part}.layers.")}
        sizes[f"model.transformer.n_{part}_layers"] = len(blocks)
    return {**sizes, "model.transformer.conv_kernel_size": kernels}


def _statistics(weights: Path, name: str) -> tuple[Tensor, Tensor]:
    """Returns the mean and scale in a file of the dump, (K,) each."""
    path = beside(weights, f"{name}.npy")
    values = torch.from_numpy(np.asarray(read_array(path), dtype=np.float32))
    rows = values.reshape(2, -1) if values.numel() and values.numel() % 2 == 0 else values
    if rows.ndim != 2 or not rows.isfinite().all() or not (rows[1] > 0).all():
        expected = "expected a row of means and one of positive standard deviations"
        raise InputError(f"{path}: shape {tuple(values.shape)}; {expected}")
    return rows[0], rows[1]


def _read_hdf5(path: Path) -> dict[str, Tensor]:
    """Returns all arrays of a `.h5` file under their paths in it."""
    try:
        import h5py  # not at the top: few models need it
    except ImportError as error:
        remedy = "pip install -e '.[tensorflowtts]'"
        raise InputError(f"{path}: reading it needs h5py: {remedy}") from error
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


def _translated(
    stored: Mapping[str, Tensor], mean: Tensor, scale: Tensor, path: Path
) -> dict[str, Tensor]:
    """Converts tensors to Arion's names, layouts and units: `mean` and `scale` in log10, (M,)."""
    tensors = {}
    for name, tensor in stored.items():
        axes = tuple(range(tensor.ndim))
        if name.endswith("/kernel:0"):
            axes = axes[::-1]  # (in, out) or (K, in, out) -> (out, in) or (out, in, K)
        tensors[translated_name(name)] = tensor.permute(axes)
    if len(tensors) < len(stored):
        raise InputError(f"{path}: tensors are in it twice; is it of one model?")
    _tables.join_attention(tensors, ("query", "key", "value"))
    for name in ("encoder.positions", "decoder.positions"):
        if name in tensors and tensors[name].ndim:
            tensors[name] = tensors[name][1:]  # row 0 is of padding
    # the mel maps get the mean and scale of each band in nats
    mean, scale = mean * math.log(10), scale * math.log(10)
    n_norms = sum(name.startswith("postnet.norms.") for name in tensors) // 4
    first, last = "postnet.convs.0.weight", f"postnet.norms.{n_norms - 1}"
    bands = {"mel_linear.weight": 0, "mel_linear.bias": 0, first: 1}
    bands |= {f"{last}.weight": 0, f"{last}.bias": 0}
    for name, axis in bands.items():
        if (n_bands := _tables.size_of(tensors, name, axis, path)) != len(mean):
            fault = f"{path}: {name} has {n_bands} mel bands, and stats.npy {len(mean)}"
            raise InputError(f"{fault}; copy the stats.npy of the dump that it was trained on")
        factor = 1 / scale if name == first else scale
        tensors[name] = (tensors[name].movedim(axis, -1) * factor).movedim(-1, axis)
    tensors["mel_linear.bias"] = tensors["mel_linear.bias"] + mean
    tensors["postnet.centre"] = mean
    for name in [name for name in tensors if name.endswith(".running_var")]:
        tensors[name] = tensors[name] + (_EPS - _OUR_EPS)
        tensors[name.replace("running_var", "num_batches_tracked")] = torch.tensor(0)
    return tensors
