"""Weights of FastSpeech 2 as Amphion and ming024 store them: the same network and tensor names.

Amphion took over ming024's symbols without the pinyin: characters first, then ARPAbet, pinyin if
any, and silences. English models use only ARPAbet and silences. The other rows keep their places
under names that no text contains, so that a model of Mandarin loads and cannot read text.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from models.checkpoint.tensors import listed
from modules.transformer import sinusoids
from processors.text.symbols import ARPABET, NOISE, PAD, SHORT_PAUSE, SILENCE, Vocabulary
from utils.errors import InputError

_CHARACTERS = "-!'(),.:;? ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_SILENCES = (SHORT_PAUSE, NOISE, SILENCE)
_N_PINYIN = 209
_SPARE = "<unused>"  # their embeddings have one row more than symbols
_BLOCK = r"(encoder|decoder)\.layer_stack\.(\d+)\."
_NAMES = (  # patterns of stored names, and the names in Arion
    (r"encoder\.src_word_emb\.", "phone_embedding."),
    (_BLOCK + r"slf_attn\.w_([qkv])s\.", r"\1.layers.\2.attention.\3."),
    (_BLOCK + r"slf_attn\.fc\.", r"\1.layers.\2.attention.fc."),
    (_BLOCK + r"slf_attn\.layer_norm\.", r"\1.layers.\2.attention_norm."),
    (_BLOCK + r"pos_ffn\.w_([12])\.", r"\1.layers.\2.conv_\3."),
    (_BLOCK + r"pos_ffn\.layer_norm\.", r"\1.layers.\2.conv_norm."),
    (r"(encoder|decoder)\.position_enc", r"\1.positions"),
    (r"speaker_emb\.", "speaker_embedding."),
    (r"variance_adaptor\.(pitch|energy)_predictor\.", r"\1.predictor."),
    (r"variance_adaptor\.duration_predictor\.", "duration_predictor."),
    (r"variance_adaptor\.(pitch|energy)_bins", r"\1.edges"),
    (r"variance_adaptor\.(pitch|energy)_embedding\.", r"\1.embedding."),
    (r"mel_linear\.", "mel_linear."),
    (r"postnet\.convolutions\.(\d+)\.0\.conv\.", r"postnet.convs.\1."),
    (r"postnet\.convolutions\.(\d+)\.1\.", r"postnet.norms.\1."),
)
_PREDICTOR_NAMES = (
    (r"conv_layer\.conv1d_([12])\.conv\.", r"conv_\1."),
    (r"conv_layer\.layer_norm_([12])\.", r"norm_\1."),
    (r"linear_layer\.", "linear."),
)
_DIMENSIONS = (  # of tensors that are changed here, by their names; the network checks the others
    (r"encoder\.src_word_emb\.weight|speaker_emb\.weight|.+\.w_[qkv]s\.weight", 2),
    (r"variance_adaptor\.(pitch|energy)_bins|.+\.w_[qkv]s\.bias|.+\.layer_norm\.bias", 1),
    (r"(encoder|decoder)\.position_enc", 3),
)
_TOLERANCE = 1e-6  # of sinusoids computed in any order and rounded to float32


@dataclass(frozen=True)
class Weights:
    """The tensors of a checkpoint under Arion's names."""

    tensors: dict[str, Tensor]  # all but the statistics of pitch and energy
    path: Path  # their file
    max_seq_len: int | None  # rows of the tables of positions; None without tables
    stored_positions: bool  # whether the tables are learnt, and not sinusoids
    n_speakers: int  # rows of the speaker embedding, 1 without one
    unused: tuple[str, ...]  # tensors that were left out, with the reason


def vocabulary_of(weights: Weights) -> Vocabulary:
    """Names of the rows of the phone embedding.

    Raises:
        InputError: If the number of rows is unknown.
    """
    table = weights.tensors.get("phone_embedding.weight")
    n_rows = 0 if table is None else len(table)
    for n_pinyin in (0, _N_PINYIN):
        symbols = _symbols(n_pinyin)
        if len(symbols) == n_rows:
            return Vocabulary(symbols)
    raise InputError(
        f"{weights.path}: encoder.src_word_emb.weight has {n_rows} rows, one per symbol; expected "
        "the symbols of 152 (Amphion) or of 361 (ming024)"
    )


def _symbols(n_pinyin: int) -> tuple[str, ...]:
    characters = [f"<character:{char}>" for char in _CHARACTERS.replace(" ", "␣")]
    pinyin = [f"<pinyin:{number}>" for number in range(n_pinyin)]
    return (PAD, *characters, *sorted(ARPABET), *pinyin, *_SILENCES, _SPARE)


def translate(tensors: Mapping[str, Tensor], path: Path) -> Weights:
    """Converts tensors to Arion's names and shapes.

    Args:
        tensors: By the names in the file.
        path: Their file, for messages.

    Raises:
        InputError: If they are of another architecture, or incomplete.
    """
    if foreign := sorted(name for name in tensors if _own_name(name) == ""):
        raise InputError(
            f"{path}: tensors that FastSpeech 2 does not have: {listed(foreign)}; it is of another "
            "architecture"
        )
    _check_dimensions(tensors, path)
    own = {_own_name(name): tensor for name, tensor in tensors.items()}
    _join_attention(own, path)
    max_seq_len, stored = _take_positions(own, path)
    n_speakers = _take_speakers(own, path)
    _check_edges(own, path)
    tables = [] if stored else [name for name in tensors if name.endswith("position_enc")]
    unused = tuple(f"{name}: sinusoids, which are computed" for name in tables)
    return Weights(own, path, max_seq_len, stored, n_speakers, unused)


def _own_name(name: str) -> str:
    """Arion's name of a tensor; "" if FastSpeech 2 has no such part."""
    for pattern, own in _NAMES:
        if match := re.match(pattern, name):
            prefix, rest = match.expand(own), name[match.end() :]
            return prefix + _in_predictor(rest) if prefix.endswith("predictor.") else prefix + rest
    return ""


def _in_predictor(name: str) -> str:
    for pattern, own in _PREDICTOR_NAMES:
        if match := re.match(pattern, name):
            return match.expand(own) + name[match.end() :]
    return name


def _check_dimensions(tensors: Mapping[str, Tensor], path: Path) -> None:
    for name, tensor in tensors.items():
        for pattern, dimensions in _DIMENSIONS:
            if re.fullmatch(pattern, name) and (tensor.ndim != dimensions or not tensor.numel()):
                raise InputError(
                    f"{path}: {name} has the shape {tuple(tensor.shape)}, expected {dimensions} "
                    "dimensions and at least one value; the file is damaged"
                )


def _join_attention(tensors: dict[str, Tensor], path: Path) -> None:
    """Joins the projections to queries, keys and values into one."""
    parts = re.compile(r"(.+\.attention)\.[qkv]\.(weight|bias)")
    for prefix, kind in dict.fromkeys(m.groups() for name in tensors if (m := parts.match(name))):
        names = [f"{prefix}.{part}.{kind}" for part in "qkv"]
        if missing := [name for name in names if name not in tensors]:
            raise InputError(
                f"{path}: tensors of an attention layer are missing: {listed(missing)}"
            )
        if len(shapes := {tuple(tensors[name].shape) for name in names}) > 1:
            raise InputError(f"{path}: {', '.join(names)} are of different shapes: {shapes}")
        joined = torch.cat([tensors.pop(name) for name in names])  # (3 * H, H) or (3 * H,)
        tensors[f"{prefix}.qkv.{kind}"] = joined


def _take_positions(tensors: dict[str, Tensor], path: Path) -> tuple[int | None, bool]:
    """Removes sinusoids; gives the number of positions, and whether the tables are learnt."""
    names = [f"{part}.positions" for part in ("encoder", "decoder")]
    # The last row of a table, (1, L + 1, H), is never read: further positions are computed.
    tables = [tensors.pop(name).flatten(0, -2)[:-1] for name in names if name in tensors]
    if len(tables) == 1:
        raise InputError(f"{path}: only one of encoder and decoder has a position_enc")
    if not tables:
        return None, False
    sines = (sinusoids(*table.shape) for table in tables)
    same = (
        torch.allclose(*pair, rtol=0, atol=_TOLERANCE) for pair in zip(tables, sines, strict=True)
    )
    stored = not all(same)
    if stored:
        tensors |= dict(zip(names, tables, strict=True))
    return len(tables[0]), stored


def _take_speakers(tensors: dict[str, Tensor], path: Path) -> int:
    """The number of speakers; a single one's vector is added to the encoder's last bias."""
    table = tensors.get("speaker_embedding.weight")  # (n_speakers, H)
    if table is None or len(table) > 1:
        return 1 if table is None else len(table)
    del tensors["speaker_embedding.weight"]
    numbers = (re.match(r"encoder\.layers\.(\d+)\.conv_norm\.bias", name) for name in tensors)
    last = max((int(match[1]) for match in numbers if match), default=0)
    bias = tensors.get(name := f"encoder.layers.{last}.conv_norm.bias")  # (H,)
    if bias is None or bias.shape != table[0].shape:
        raise InputError(f"{path}: speaker_emb.weight does not fit the last layer of the encoder")
    tensors[name] = bias + table[0]
    return 1


def _check_edges(tensors: Mapping[str, Tensor], path: Path) -> None:
    for name in ("pitch", "energy"):
        edges = tensors.get(f"{name}.edges")
        if edges is not None and not (edges.diff() >= 0).all():
            raise InputError(
                f"{path}: variance_adaptor.{name}_bins do not rise; the file is damaged"
            )
