"""FastSpeech 2 of ming024 (github.com/ming024/FastSpeech2) and of projects that use its code.

In ming024's code the pitch control also scales energy, and the energy control has no effect; here
each scales its own quantity.

Symbols are characters first, then ARPAbet, pinyin if any, and silences; Amphion took them over
without the pinyin. English models use only ARPAbet and silences. The other rows keep their places
under names that no text contains, so that a model of Mandarin loads and cannot read text.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from models.base.assets import Speaker
from models.checkpoint.foreign import FileNames, ImportedModel, beside
from models.checkpoint.importers import _tables
from models.checkpoint.importers._tables import TensorNames
from models.checkpoint.tensors import named_tensors
from modules.layers.transformer import sinusoids
from processors.dataset.statistics import CorpusStats, SpeakerStats, Stat
from processors.text.symbols import ARPABET, NOISE, PAD, SHORT_PAUSE, SILENCE
from processors.text.voice_phones import Vocabulary
from utils.arrays import SafeGlobal, read_pickled
from utils.config_tree import read_yaml
from utils.errors import InputError
from utils.files import read_json

KIND = "FastSpeech 2 of ming024 (*.pth.tar, its yaml files and stats.json)"
FILES = FileNames(
    re.compile(r".+\.pth\.tar"), re.compile(r"^(\d+)\.pth\.tar$"), re.compile(r".+\.ya?ml")
)
_LEVELS = 2  # folders above the weights that may hold the settings
_LANGUAGES = {"en": "en-us", "zh": "cmn"}
_LEVEL_NAMES = {"phoneme_level": "phone", "frame_level": "frame"}
_PARTS, _QUANTITIES = ("encoder", "decoder"), ("pitch", "energy")
_REQUIRED = {f"model.{q}_level": f"preprocessing.{q}.feature" for q in _QUANTITIES} | (
    _tables.mel_keys(
        "preprocessing.",
        *("audio.sampling_rate", "stft.filter_length", "stft.win_length", "stft.hop_length"),
        *("mel.n_mel_channels", "mel.mel_fmin", "mel.mel_fmax"),
    )
)
_FIXED = {  # of its code: centred mels, as Tacotron 2's; pitch of WORLD from 71 to 800 Hz
    "preprocess.mel_padding": "centre",
    "preprocess.pitch_extractor": "pyworld",
    "preprocess.f0_min": 71.0,
    "preprocess.f0_max": 800.0,
}
_CHARACTERS = "-!'(),.:;? ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_SILENCES = (SHORT_PAUSE, NOISE, SILENCE)
_N_PINYIN = 209
_SPARE = "<unused>"  # their embeddings have one row more than symbols
_BLOCK = {
    "slf_attn.fc.": "attention.fc.",
    "slf_attn.w_{qkv}s.": "attention.{qkv}.",
    "slf_attn.layer_norm.": "attention_norm.",
    "pos_ffn.w_{m}.": "conv_{m}.",
    "pos_ffn.layer_norm.": "conv_norm.",
}
_PREDICTOR = {
    "predictor.conv_layer.conv1d_{n}.conv.": "predictor.conv_{n}.",
    "predictor.conv_layer.layer_norm_{n}.": "predictor.norm_{n}.",
    "predictor.linear_layer.": "predictor.linear.",
}
_ADAPTOR = {"variance_adaptor.duration_": "duration_", "variance_adaptor.{contour}_": "{contour}."}
NAMES = TensorNames(
    {
        "encoder.src_word_emb.": "phone_embedding.",
        **_tables.below({"{part}.layer_stack.{n}.": "{part}.layers.{n}."}, _BLOCK),
        "{part}.position_enc": "{part}.positions",
        "speaker_emb.": "speaker_embedding.",
        **_tables.below(_ADAPTOR, _PREDICTOR),
        "variance_adaptor.{contour}_bins": "{contour}.edges",
        "variance_adaptor.{contour}_embedding.": "{contour}.embedding.",
        "postnet.convolutions.{n}.0.conv.": "postnet.convs.{n}.",
        "postnet.convolutions.{n}.1.": "postnet.norms.{n}.",
    }
)
_SAME = (  # keys of `model` that are Arion's too
    *(f"transformer.{part}_{key}" for part in _PARTS for key in ("head", "hidden")),
    *(f"transformer.{part}_dropout" for part in _PARTS),
    *(f"transformer.conv_{key}_size" for key in ("filter", "kernel")),
    *(f"variance_predictor.{key}" for key in ("filter_size", "kernel_size", "dropout")),
    *(f"variance_embedding.{quantity}_quantization" for quantity in _QUANTITIES),
    "variance_embedding.n_bins",
)
_SETTINGS = {f"model.transformer.n_{p}_layers": f"model.transformer.{p}_layer" for p in _PARTS}
_SETTINGS |= {f"model.{key}": f"model.{key}" for key in _SAME}
_SYMBOLS, _SPEAKERS = "encoder.src_word_emb.weight", "speaker_emb.weight"
_LAST_BIAS = re.compile(r"encoder\.layers\.\d+\.conv_norm\.bias")
# what rebuilds a NumPy number, as which the learning rate is stored
_SCALAR = np.float64(0).__reduce__()[0]
_NUMPY_SCALARS: list[SafeGlobal] = [
    *((_SCALAR, f"numpy.{core}.multiarray.scalar") for core in ("core", "_core")),
    *(np.dtype, np.dtypes.Float64DType, np.dtypes.Float32DType, np.dtypes.Int64DType),
]
_TOLERANCE = 1e-6  # of sinusoids computed in any order and rounded to float32


def recognises(weights: Path) -> bool:
    """Returns whether it is a `*.pth.tar` with its yaml files."""
    if not FILES.weights.fullmatch(weights.name):
        return False
    return all(beside(weights, f"{name}.yaml", _LEVELS) for name in ("model", "preprocess"))


def read(weights: Path) -> ImportedModel:
    """Reads a checkpoint."""
    model_path, path = (beside(weights, f"{n}.yaml", _LEVELS) for n in ("model", "preprocess"))
    values = read_yaml(path)
    saved = read_pickled(weights, _NUMPY_SCALARS)
    tensors = named_tensors(_tables.value_at(saved, "model"), f"{weights}: model")
    stats_path = beside(weights, "stats.json", _LEVELS)
    stats = read_json(stats_path)
    pitch, energy = (_stat(stats, quantity, stats_path) for quantity in _QUANTITIES)
    dataset = str(values.get("dataset") or "unnamed")
    names = [dataset]
    if (n_speakers := n_speakers_in(tensors)) > 1:
        speakers_path = beside(weights, "speakers.json", _LEVELS)
        names = by_id(read_json(speakers_path), n_speakers, speakers_path)
    settings = _tables.required(values, _REQUIRED, path) | _FIXED | {"dataset": [dataset]}
    settings |= model_settings(read_yaml(model_path), model_path)
    for key in (f"model.{quantity}_level" for quantity in _QUANTITIES):
        settings[key] = _LEVEL_NAMES.get(str(settings[key]), settings[key])
    language = str(_tables.value_at(values, "preprocessing.text.language") or "en")
    speakers = [Speaker(name, _LANGUAGES.get(language, language)) for name in names]
    by_speaker = dict.fromkeys(speakers, SpeakerStats(pitch, pitch, energy, energy, 0.0))
    imported = assemble(tensors, weights, settings, by_speaker, path)
    tree, where = imported.tree, str(model_path)
    origins = {key: where if key[0] == "model" else name for key, name in tree.origins.items()}
    return replace(
        imported,
        tree=replace(tree, origins=origins),
        source=f"FastSpeech 2 of ming024 (github.com/ming024/FastSpeech2), {weights.name}",
        step=FILES.number_in(weights),
        unused=(*imported.unused, "optimizer: training starts with a new one"),
    )


def n_speakers_in(stored: Mapping[str, Tensor]) -> int:
    """Returns rows of the speaker embedding, 1 without one."""
    table = stored.get(_SPEAKERS)
    return 1 if table is None or table.ndim != 2 else len(table)


def assemble(
    stored: Mapping[str, Tensor],
    weights: Path,
    settings: Mapping[str, object],
    speakers: Mapping[Speaker, SpeakerStats],
    path: Path,
) -> ImportedModel:
    """Puts a checkpoint together; its source and step are added by the importer.

    Args:
        stored: Tensors by their names in the file `weights`.
        settings: By Arion's dotted keys: `model_settings`, mel, levels and pitch extraction.
        speakers: In the order of their ids.
        path: The file of the settings.
    """
    tensors, unused = translated(stored)
    uses_postnet = any(name.startswith("postnet.") for name in tensors)
    values: dict[str, object] = {**settings, "model.use_postnet": uses_postnet}
    for quantity, field in zip(_QUANTITIES, ("f0_phone", "energy_phone"), strict=True):
        stats: list[Stat] = [getattr(of_speaker, field) for of_speaker in speakers.values()]
        # Edges are in the units of the prediction. Those of kind "log" are in Hz here, which is
        # the same only for values that are not normalised.
        if any((stat.mean, stat.std) != (0, 1) for stat in stats):
            values[f"model.variance_embedding.{quantity}_quantization"] = "linear"
        tensors[f"{quantity}.norm.mean"] = torch.tensor([stat.mean for stat in stats])
        tensors[f"{quantity}.norm.std"] = torch.tensor([stat.std for stat in stats])
    fixed = {"model_type": "FastSpeech2", "preprocess.text.pauses": "sp"}
    return ImportedModel(
        tree=_tables.tree_of("tts", {**values, **fixed}, path),
        tensors=tensors,
        weights=weights,
        vocabulary=vocabulary_of(_tables.size_of(stored, _SYMBOLS, 0, weights), weights),
        speakers=tuple(speakers),
        stats=CorpusStats({speaker.name: stats for speaker, stats in speakers.items()}),
        unused=unused,
    )


def model_settings(values: object, path: Path) -> dict[str, object]:
    """Selects the settings of the model that the weights do not imply."""
    model = {"model": values}
    optional = _tables.existing(model, {"model.max_seq_len": "model.max_seq_len"})
    return optional | _tables.required(model, _SETTINGS, path)


def by_id(ids: object, n_speakers: int, path: Path) -> list[str]:
    """Returns names of speakers in the order of their ids, from the ids by name of a file."""
    by_name: dict[str, object] = ids if isinstance(ids, dict) else {}
    names = {number: name for name, number in by_name.items() if isinstance(number, int)}
    if sorted(names) != list(range(n_speakers)) or len(by_name) > n_speakers:
        expected = f"expected names with the ids 0 to {n_speakers - 1}"
        raise InputError(f"{path}: {expected}, found {str(ids)[:80]}")
    return [names[number] for number in range(n_speakers)]


def stat_of(numbers: object, path: Path, name: str) -> Stat:
    """Returns statistics of one quantity from the numbers in a file."""
    values = numbers if isinstance(numbers, list) else []
    if len(values) == 4 and all(isinstance(n, int | float) and math.isfinite(n) for n in values):
        mean, std, low, high = map(float, values)
        if std > 0:
            return Stat(mean, std, low, high)
    fault = f"{path}: {name}: mean, std, min and max are {numbers}"
    raise InputError(f"{fault}; expected finite numbers and std > 0")


def _stat(stats: object, quantity: str, path: Path) -> Stat:
    """Returns statistics in Hz or linear energy, from normalised min and max, then mean and std."""
    numbers = _tables.value_at(stats, quantity)
    turned = [*numbers[2:], *numbers[:2]] if isinstance(numbers, list) else numbers
    stat = stat_of(turned, path, quantity)
    low, high = (limit * stat.std + stat.mean for limit in (stat.min, stat.max))
    return replace(stat, min=low, max=high)


def vocabulary_of(n_rows: int, path: Path) -> Vocabulary:
    """Returns names of the rows of the phone embedding."""
    characters = [f"<character:{char}>" for char in _CHARACTERS.replace(" ", "␣")]
    for n_pinyin in (0, _N_PINYIN):
        pinyin = [f"<pinyin:{number}>" for number in range(n_pinyin)]
        symbols = (PAD, *characters, *sorted(ARPABET), *pinyin, *_SILENCES, _SPARE)
        if len(symbols) == n_rows:
            return Vocabulary(symbols)
    fault = f"{path}: {_SYMBOLS} has {n_rows} rows, one per symbol"
    raise InputError(f"{fault}; expected the symbols of 152 (Amphion) or of 361 (ming024)")


def translated(stored: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], tuple[str, ...]]:
    """Renames tensors, and returns also what was left out; a strict check finds others."""
    tensors = NAMES.renamed(stored)
    _tables.join_attention(tensors)
    computed = [f"{part}.positions" for part in _PARTS if _is_sinusoidal(tensors, part)]
    for name in computed:
        del tensors[name]
    biases = filter(_LAST_BIAS.fullmatch, tensors)
    last = max(biases, key=lambda name: (len(name), name), default="")
    vectors = tensors.get("speaker_embedding.weight", torch.empty(0))  # (speakers, H)
    if last and vectors.shape == (1, *tensors[last].shape):
        # the vector of an only speaker is added to what the encoder returns
        tensors[last] = tensors[last] + tensors.pop("speaker_embedding.weight")[0]
    return tensors, tuple(f"{name}: sinusoids, which are computed" for name in computed)


def _is_sinusoidal(tensors: Mapping[str, Tensor], part: str) -> bool:
    """Returns whether the positions, (1, L, H), have the values that Arion computes."""
    table = tensors.get(f"{part}.positions", torch.empty(0))
    if table.ndim != 3 or len(table) != 1:
        return False
    # the last row is never read: further positions are computed
    positions = table[0, :-1]
    return torch.allclose(positions, sinusoids(*positions.shape), rtol=0, atol=_TOLERANCE)
