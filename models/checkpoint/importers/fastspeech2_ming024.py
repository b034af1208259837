"""FastSpeech 2 of ming024 (github.com/ming024/FastSpeech2) and of projects that use its code.

A checkpoint is `<step>.pth.tar`. Its settings are in model.yaml, preprocess.yaml, stats.json and,
for several speakers, speakers.json. In ming024's code the pitch control also scales energy, and the
energy control has no effect; here each scales its own quantity.

Symbols are characters first, then ARPAbet, pinyin if any, and silences; Amphion took them over
without the pinyin. English models use only ARPAbet and silences. The other rows keep their places
under names that no text contains, so that a model of Mandarin loads and cannot read text.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from models.base.assets import Speaker
from models.checkpoint.foreign import FileNames, ImportedModel, beside
from models.checkpoint.importers._tables import (
    TensorNames,
    below,
    existing,
    join,
    read_yaml,
    required,
    tree_of,
    value_at,
)
from models.checkpoint.tensors import named_tensors
from modules.layers.transformer import sinusoids
from processors.dataset.statistics import CorpusStats, SpeakerStats, Stat
from processors.text.symbols import ARPABET, NOISE, PAD, SHORT_PAUSE, SILENCE, Vocabulary
from utils.arrays import SafeGlobal, read_pickled
from utils.errors import InputError
from utils.files import read_json

KIND = "FastSpeech 2 of ming024 (*.pth.tar, its yaml files and stats.json)"
FILES = FileNames(
    re.compile(r".+\.pth\.tar"), re.compile(r"^(\d+)\.pth\.tar$"), re.compile(r".+\.ya?ml")
)
_LEVELS = 2  # folders above the weights that may hold the settings
_LANGUAGES = {"en": "en-us", "zh": "cmn"}
_LEVEL_NAMES = {"phoneme_level": "phone", "frame_level": "frame"}
_MEL = {
    "preprocess.sample_rate": "preprocessing.audio.sampling_rate",
    "preprocess.n_fft": "preprocessing.stft.filter_length",
    "preprocess.hop_length": "preprocessing.stft.hop_length",
    "preprocess.win_length": "preprocessing.stft.win_length",
    "preprocess.n_mels": "preprocessing.mel.n_mel_channels",
    "preprocess.f_min": "preprocessing.mel.mel_fmin",
    "preprocess.f_max": "preprocessing.mel.mel_fmax",
}
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
_PREDICTORS = {
    "variance_adaptor.duration_predictor.": "duration_predictor.",
    "variance_adaptor.{contour}_predictor.": "{contour}.predictor.",
}
_PREDICTOR_LAYERS = {
    "conv_layer.conv1d_{n}.conv.": "conv_{n}.",
    "conv_layer.layer_norm_{n}.": "norm_{n}.",
    "linear_layer.": "linear.",
}
NAMES = TensorNames(
    {
        "encoder.src_word_emb.": "phone_embedding.",
        **below({"{part}.layer_stack.{n}.": "{part}.layers.{n}."}, _BLOCK),
        "{part}.position_enc": "{part}.positions",
        "speaker_emb.": "speaker_embedding.",
        **below(_PREDICTORS, _PREDICTOR_LAYERS),
        "variance_adaptor.{contour}_bins": "{contour}.edges",
        "variance_adaptor.{contour}_embedding.": "{contour}.embedding.",
        "postnet.convolutions.{n}.0.conv.": "postnet.convs.{n}.",
        "postnet.convolutions.{n}.1.": "postnet.norms.{n}.",
    }
)
_PARTS, _QUANTITIES = ("encoder", "decoder"), ("pitch", "energy")
_SETTINGS = (  # of `model`; the keys of these projects that are Arion's too
    *(f"transformer.{part}_{key}" for part in _PARTS for key in ("head", "hidden")),
    *(f"transformer.{part}_dropout" for part in _PARTS),
    *(f"transformer.conv_{key}_size" for key in ("filter", "kernel")),
    *(f"variance_predictor.{key}" for key in ("filter_size", "kernel_size", "dropout")),
    *(f"variance_embedding.{quantity}_quantization" for quantity in _QUANTITIES),
    "variance_embedding.n_bins",
)
_DEPTHS = {f"model.transformer.n_{p}_layers": f"model.transformer.{p}_layer" for p in _PARTS}
_TOLERANCE = 1e-6  # of sinusoids computed in any order and rounded to float32


def recognises(weights: Path) -> bool:
    """Whether it is a `*.pth.tar` with its yaml files."""
    if not FILES.weights.fullmatch(weights.name):
        return False
    return all(beside(weights, f"{name}.yaml", _LEVELS) for name in ("model", "preprocess"))


def read(weights: Path) -> ImportedModel:
    """Reads a checkpoint."""
    model_path, path = (beside(weights, f"{n}.yaml", _LEVELS) for n in ("model", "preprocess"))
    values = read_yaml(path)
    saved = read_pickled(weights, _numpy_scalars())
    if not isinstance(saved, Mapping) or "model" not in saved:
        raise InputError(
            f"{weights}: expected 'model' and 'optimizer' in it, as ming024's code saves"
        )
    translated = translate(named_tensors(saved["model"], f"{weights}: model"), weights)
    stats_path = beside(weights, "stats.json", _LEVELS)
    stats = read_json(stats_path)
    contours = Contours(*(_stat(stats, quantity, stats_path) for quantity in Contours._fields))
    dataset = values.get("dataset")
    names = [str(dataset or "speaker")]
    if translated.n_speakers > 1:
        speakers_path = beside(weights, "speakers.json", _LEVELS)
        names = by_id(read_json(speakers_path), translated.n_speakers, speakers_path)
    settings = {
        **required(values, _MEL, path),
        **model_settings(read_yaml(model_path), model_path),
        **_FIXED,
        "dataset": [str(dataset or "unnamed")],
        **{f"model.{q}_level": _level(values, q, path) for q in Contours._fields},
    }
    language = str(value_at(values, "preprocessing.text.language") or "en")
    imported = assemble(
        translated,
        settings,
        dict.fromkeys(names, contours),
        path,
        _LANGUAGES.get(language, language),
    )
    tree, where = imported.tree, str(model_path)
    origins = {key: where if key[0] == "model" else name for key, name in tree.origins.items()}
    return replace(
        imported,
        tree=replace(tree, origins=origins),
        source=f"FastSpeech 2 of ming024 (github.com/ming024/FastSpeech2), {weights.name}",
        step=FILES.number_in(weights),
        unused=(*imported.unused, "optimizer: training starts with a new one"),
    )


class Contours(NamedTuple):
    """Statistics of pitch (Hz) and energy of one speaker."""

    pitch: Stat
    energy: Stat


@dataclass(frozen=True)
class Weights:
    """The tensors of a checkpoint under Arion's names."""

    path: Path  # their file
    tensors: dict[str, Tensor]  # all but the statistics of pitch and energy
    n_positions: int | None  # rows of the tables of positions; None without tables
    n_speakers: int  # rows of the speaker embedding, 1 without one
    unused: tuple[str, ...]  # tensors that were left out, with the reason

    def vocabulary(self) -> Vocabulary:
        """Names of the rows of the phone embedding."""
        table = self.tensors.get("phone_embedding.weight", torch.empty(0))
        n_rows = len(table) if table.ndim else 0
        for n_pinyin in (0, _N_PINYIN):
            symbols = _symbols(n_pinyin)
            if len(symbols) == n_rows:
                return Vocabulary(symbols)
        raise InputError(
            f"{self.path}: encoder.src_word_emb.weight has {n_rows} rows, one per symbol; expected "
            "the symbols of 152 (Amphion) or of 361 (ming024)"
        )


def translate(stored: Mapping[str, Tensor], path: Path) -> Weights:
    """Converts tensors to Arion's names and shapes; others are left for the strict check."""
    tensors = NAMES.renamed(stored)
    for name in [name for name in tensors if ".attention.q." in name]:
        parts = [name.replace(".q.", f".{part}.") for part in "qkv"]
        join(tensors, parts, name.replace(".q.", ".qkv."))
    n_positions, computed = _take_positions(tensors)
    return Weights(path, tensors, n_positions, _take_speakers(tensors), computed)


def assemble(
    weights: Weights,
    settings: Mapping[str, object],
    speakers: Mapping[str, Contours],
    path: Path,
    language: str = "en-us",
) -> ImportedModel:
    """Puts a checkpoint together; its source and step are added by the importer.

    Args:
        settings: By Arion's dotted keys: `model_settings`, mel, levels and pitch extraction.
        speakers: By name, in the order of their ids.
    """
    quantization, norms = {}, {}
    for quantity in Contours._fields:
        stats: list[Stat] = [getattr(contours, quantity) for contours in speakers.values()]
        # Edges are in the units of the prediction. Those of kind "log" are in Hz here, which is
        # the same only for values that are not normalised.
        if any((stat.mean, stat.std) != (0, 1) for stat in stats):
            quantization[f"model.variance_embedding.{quantity}_quantization"] = "linear"
        norms[f"{quantity}.norm.mean"] = torch.tensor([stat.mean for stat in stats])
        norms[f"{quantity}.norm.std"] = torch.tensor([stat.std for stat in stats])
    positions = {} if weights.n_positions is None else {"model.max_seq_len": weights.n_positions}
    fixed = {
        "model_type": "FastSpeech2",
        "preprocess.text.pauses": "sp",
        "model.use_postnet": any(name.startswith("postnet.") for name in weights.tensors),
        "model.stored_positions": any(name.endswith(".positions") for name in weights.tensors),
    }
    return ImportedModel(
        tree=tree_of("tts", {**settings, **fixed, **quantization, **positions}, path),
        tensors=weights.tensors | norms,
        weights=weights.path,
        vocabulary=weights.vocabulary(),
        speakers=tuple(Speaker(name, language) for name in speakers),
        # one kind of statistics serves for phones and frames
        stats=CorpusStats({n: SpeakerStats(p, p, e, e, 0.0) for n, (p, e) in speakers.items()}),
        unused=weights.unused,
    )


def model_settings(values: object, path: Path) -> dict[str, object]:
    """Selects the settings of the model that the weights do not imply."""
    model = {"model": values}
    optional = existing(model, {"model.max_seq_len": "model.max_seq_len"})
    same = {f"model.{key}": f"model.{key}" for key in _SETTINGS}
    return optional | required(model, _DEPTHS | same, path)


def by_id(ids: object, n_speakers: int, path: Path) -> list[str]:
    """Names of speakers in the order of their ids, from the ids by name of a file."""
    by_name: dict[str, object] = ids if isinstance(ids, dict) else {}
    names = {number: name for name, number in by_name.items() if isinstance(number, int)}
    if sorted(names) != list(range(n_speakers)) or len(by_name) > n_speakers:
        raise InputError(
            f"{path}: expected names with the ids 0 to {n_speakers - 1}, found {str(ids)[:80]}"
        )
    return [names[number] for number in range(n_speakers)]


def stat_of(numbers: object, path: Path, name: str) -> Stat:
    """Statistics of one quantity from the numbers in a file."""
    if (
        isinstance(numbers, list)
        and len(numbers) == 4
        and all(isinstance(number, int | float) for number in numbers)
        and torch.tensor(numbers, dtype=torch.float64).isfinite().all()
        and numbers[1] > 0
    ):
        mean, std, low, high = map(float, numbers)
        return Stat(mean, std, low, high)
    raise InputError(
        f"{path}: {name}: mean, std, min and max are {numbers}; expected finite numbers and std > 0"
    )


def _numpy_scalars() -> list[SafeGlobal]:
    """Functions and types that rebuild a NumPy number, as which the learning rate is stored."""
    scalar = np.float64(0).__reduce__()[0]
    names = [f"numpy.{core}.multiarray.scalar" for core in ("core", "_core")]
    types = (np.dtypes.Float64DType, np.dtypes.Float32DType, np.dtypes.Int64DType)
    return [*((scalar, name) for name in names), np.dtype, *types]


def _stat(stats: object, quantity: str, path: Path) -> Stat:
    """Statistics in Hz or linear energy; min and max are normalised in the file."""
    numbers = value_at(stats, quantity)
    if not isinstance(numbers, list) or len(numbers) != 4:
        raise InputError(f"{path}: {quantity}: expected [min, max, mean, std], found {numbers}")
    low, high, mean, std = numbers
    stat = stat_of([mean, std, low, high], path, quantity)
    return Stat(stat.mean, stat.std, stat.min * std + mean, stat.max * std + mean)


def _level(values: Mapping[str, object], quantity: str, path: Path) -> str:
    name = value_at(values, key := f"preprocessing.{quantity}.feature")
    if name not in _LEVEL_NAMES:
        expected = ", ".join(_LEVEL_NAMES)
        raise InputError(f"{path}: {key} is {name!r}, expected one of {expected}")
    return _LEVEL_NAMES[name]


def _symbols(n_pinyin: int) -> tuple[str, ...]:
    characters = [f"<character:{char}>" for char in _CHARACTERS.replace(" ", "␣")]
    pinyin = [f"<pinyin:{number}>" for number in range(n_pinyin)]
    return (PAD, *characters, *sorted(ARPABET), *pinyin, *_SILENCES, _SPARE)


def _take_positions(tensors: dict[str, Tensor]) -> tuple[int | None, tuple[str, ...]]:
    """Removes tables of sinusoids; gives the number of positions and what was removed."""
    names = [f"{part}.positions" for part in ("encoder", "decoder")]
    # The last row of a table, (1, L + 1, H), is never read: further positions are computed.
    stored = {n: tensors[n] for n in names if n in tensors and tensors[n].ndim == 3}
    tables = {n: table[0, :-1] for n, table in stored.items() if len(table)}
    tensors |= tables
    sinusoidal = [
        torch.allclose(table, sinusoids(*table.shape), rtol=0, atol=_TOLERANCE)
        for table in tables.values()
    ]
    n_positions = max(map(len, tables.values()), default=None)
    if not all(sinusoidal):
        return n_positions, ()
    for name in tables:
        del tensors[name]
    return n_positions, tuple(f"{name}: sinusoids, which are computed" for name in tables)


def _take_speakers(tensors: dict[str, Tensor]) -> int:
    """The number of speakers; a single one's vector is added to the encoder's last bias."""
    table = tensors.get("speaker_embedding.weight")  # (n_speakers, H)
    if table is None or table.ndim != 2 or len(table) != 1:
        return 1 if table is None or table.ndim != 2 else len(table)
    matches = [re.match(r"encoder\.layers\.(\d+)\.conv_norm\.bias", name) for name in tensors]
    last = max((int(match[1]) for match in matches if match), default=0)
    bias = tensors.get(name := f"encoder.layers.{last}.conv_norm.bias")  # (H,)
    if bias is not None and bias.shape == table[0].shape:
        tensors[name] = bias + tensors.pop("speaker_embedding.weight")[0]
    return 1
