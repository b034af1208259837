"""The tensors of FastSpeech 2 as Amphion and ming024 name them: one network, twice the same."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from models.checkpoint.importers._symbols import vocabulary_of
from models.checkpoint.tensors import listed
from modules.transformer import sinusoids
from processors.text.symbols import Vocabulary
from utils.errors import InputError

_BLOCK = r"(encoder|decoder)\.layer_stack\.(\d+)\."
_NAMES = (  # theirs and ours
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
_DIMENSIONS = (  # of what is looked at here, by their names; the rest is compared with the network
    (r"encoder\.src_word_emb\.weight|speaker_emb\.weight|.+\.w_[qkv]s\.weight", 2),
    (r"variance_adaptor\.(pitch|energy)_bins|.+\.w_[qkv]s\.bias|.+\.layer_norm\.bias", 1),
    (r"(encoder|decoder)\.position_enc", 3),
)
_EQUAL = 1e-6  # as sinusoids are, computed in any order and rounded to float32


@dataclass(frozen=True)
class Weights:
    """The tensors of a checkpoint under our names.

    Attributes:
        tensors: All but the statistics.
        path: Their file.
        max_seq_len: Positions in the tables; None without tables.
        stored_positions: Whether the tables are other than sinusoids, and so belong to them.
        n_speakers: Rows of the speaker embedding, 1 without one.
        unused: What was left out, with the reason.
    """

    tensors: dict[str, Tensor]
    path: Path
    max_seq_len: int | None
    stored_positions: bool
    n_speakers: int
    unused: tuple[str, ...]

    @property
    def vocabulary(self) -> Vocabulary:
        """Names of the embedding's rows.

        Raises:
            InputError: If there are others than known.
        """
        table = self.tensors.get("phone_embedding.weight")
        n_rows = 0 if table is None else len(table)
        vocabulary = vocabulary_of(n_rows)
        if vocabulary is None:
            raise InputError(
                f"{self.path}: encoder.src_word_emb.weight has {n_rows} rows, one per symbol; known"
                " are the symbols of 152 (Amphion) and of 361 (ming024)"
            )
        return vocabulary


def translate(tensors: Mapping[str, Tensor], path: Path) -> Weights:
    """Brings tensors to our names and forms.

    Raises:
        InputError: If there are tensors of another architecture, or some of one part are missing.
    """
    ours = {_our_name(name): tensor for name, tensor in tensors.items()}
    if foreign := sorted(name for name in tensors if _our_name(name) == ""):
        raise InputError(
            f"{path}: tensors that FastSpeech 2 has no place for: {listed(foreign)}; it is of "
            "another architecture"
        )
    _check_dimensions(tensors, path)
    _join_attention(ours, path)
    max_seq_len, stored = _take_positions(ours, path)
    n_speakers = _take_speakers(ours, path)
    _check_edges(ours, path)
    names = [name for name in tensors if name.endswith("position_enc")]
    reason = "sinusoids, which are computed here"
    unused = () if stored else tuple(f"{name}: {reason}" for name in names)
    return Weights(ours, path, max_seq_len, stored, n_speakers, unused)


def _our_name(name: str) -> str:
    """Our name of a tensor; "" if we have no such part."""
    for theirs, ours in _NAMES:
        if match := re.match(theirs, name):
            prefix, rest = match.expand(ours), name[match.end() :]
            return prefix + _in_predictor(rest) if prefix.endswith("predictor.") else prefix + rest
    return ""


def _in_predictor(name: str) -> str:
    for theirs, ours in _PREDICTOR_NAMES:
        if match := re.match(theirs, name):
            return match.expand(ours) + name[match.end() :]
    return name


def _check_dimensions(tensors: Mapping[str, Tensor], path: Path) -> None:
    for name, tensor in tensors.items():
        for pattern, dimensions in _DIMENSIONS:
            if re.fullmatch(pattern, name) and (tensor.ndim != dimensions or not tensor.numel()):
                raise InputError(
                    f"{path}: {name} has the shape {tuple(tensor.shape)}, expected {dimensions} "
                    "dimensions, and values; it is broken"
                )


def _join_attention(tensors: dict[str, Tensor], path: Path) -> None:
    """One map to queries, keys and values instead of three."""
    parts = re.compile(r"(.+\.attention)\.[qkv]\.(weight|bias)")
    for prefix, kind in dict.fromkeys(m.groups() for name in tensors if (m := parts.match(name))):
        names = [f"{prefix}.{part}.{kind}" for part in "qkv"]
        if missing := [name for name in names if name not in tensors]:
            raise InputError(f"{path}: an attention lacks its {listed(missing)}")
        if len(shapes := {tuple(tensors[name].shape) for name in names}) > 1:
            raise InputError(f"{path}: {', '.join(names)} are of different shapes: {shapes}")
        joined = torch.cat([tensors.pop(name) for name in names])  # (3 * H, H) or (3 * H,)
        tensors[f"{prefix}.qkv.{kind}"] = joined


def _take_positions(tensors: dict[str, Tensor], path: Path) -> tuple[int | None, bool]:
    """Number of positions, and whether they are stored; sinusoids are taken out.

    Their tables, (1, L + 1, H), have a row that is never read: longer inputs than L have theirs
    computed.
    """
    names = [f"{part}.positions" for part in ("encoder", "decoder")]
    tables = [tensors.pop(name).flatten(0, -2)[:-1] for name in names if name in tensors]
    if len(tables) == 1:
        raise InputError(f"{path}: it has the position_enc of the encoder or the decoder alone")
    if not tables:
        return None, False
    stored = not all(_are_sinusoids(table) for table in tables)
    if stored:
        tensors |= dict(zip(names, tables, strict=True))
    return len(tables[0]), stored


def _are_sinusoids(table: Tensor) -> bool:
    return torch.allclose(table, sinusoids(*table.shape), rtol=0, atol=_EQUAL)


def _take_speakers(tensors: dict[str, Tensor], path: Path) -> int:
    """The number of speakers; the vector of an only one is put into the encoder's last bias."""
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
            raise InputError(f"{path}: variance_adaptor.{name}_bins do not rise: it is broken")
