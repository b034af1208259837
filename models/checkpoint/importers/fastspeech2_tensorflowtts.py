"""FastSpeech 2 of TensorFlowTTS (github.com/TensorSpeech/TensorFlowTTS) and of Graphcore.

A checkpoint is one `.h5`. Next to it are the yaml file of its training and, from the dump that it
was trained on, `stats.npy`, `stats_f0.npy` and `stats_energy.npy`. A voice with other symbols than
the 149 of LJ Speech loads, and cannot read text. TensorFlowTTS leaves the dropout of pitch and
energy on in synthesis; here it is off, and the same text gives the same speech.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np
import torch
from torch import Tensor

from models.base.assets import Assets, Speaker
from models.base.registry import config_of
from models.checkpoint.importers import ImportedModel
from models.checkpoint.importers._files import HubFiles, first_file, several_models
from models.checkpoint.importers._settings import read_yaml, required, section
from models.checkpoint.importers._tensorflowtts_weights import is_hdf5, read_hdf5, translate
from processors.dataset.statistics import CorpusStats, SpeakerStats, Stat
from processors.text.letters.nvidia import nvidia_vocabulary
from processors.text.symbols import PAD, UNNAMED, Vocabulary
from utils.arrays import read_array
from utils.config import plain_tree
from utils.errors import InputError

KIND = "FastSpeech 2 of TensorFlowTTS (*.h5, its yaml file and stats*.npy)"
HUB_FILES = HubFiles(re.compile(r".+\.h5"), re.compile(r".+\.ya?ml"))
_SYMBOLS = "tensorflowtts_english"
_NUMBER = re.compile(r"(\d+)(k?)\.h5$")
_PARAMS = "fastspeech2_params"
_CONTOURS = {"pitch": "f0", "energy": "energy"}  # their names in files, by Arion's names
_MEL = {  # of TensorFlowTTS's recipe for LJ Speech, by the keys of Arion
    "sample_rate": 22050,
    "n_fft": 1024,
    "win_size": 1024,
    "hop_size": 256,
    "fmin": 80.0,
    "fmax": 7600.0,
    "mel_padding": "centre",
    "log_floor": 1e-10,
    "pitch_extractor": "pyworld",
}
_NEEDED = (  # settings that the tensors do not imply
    "encoder_num_attention_heads",
    "decoder_num_attention_heads",
    "encoder_hidden_act",
    "decoder_hidden_act",
    "hidden_dropout_prob",
    "attention_probs_dropout_prob",
    "variant_predictor_dropout_rate",
)


class _Files(NamedTuple):
    """A checkpoint and the settings of its training."""

    weights: Path
    settings: Path

    def statistics(self, name: str) -> tuple[Tensor, Tensor]:
        """Mean and scale in a file of the dump, (K,) each.

        Raises:
            InputError: If it is missing, or holds something else.
        """
        folder = self.weights.parent
        path = folder / name
        if not path.is_file():
            raise InputError(
                f"{self.weights}: no {name} in its folder; copy stats.npy, stats_f0.npy and "
                f"stats_energy.npy of the dump that it was trained on to {folder}"
            )
        values = torch.from_numpy(np.asarray(read_array(path), dtype=np.float32))
        rows = values.reshape(2, -1) if values.numel() and values.numel() % 2 == 0 else values
        if rows.ndim != 2 or not rows.isfinite().all() or not (rows[1] > 0).all():
            raise InputError(
                f"{path}: shape {tuple(values.shape)}; expected a row of means and one of positive "
                "standard deviations"
            )
        return rows[0], rows[1]


def recognises(path: Path) -> bool:
    """Whether it is a `*.h5`, or a folder with one."""
    return _locate(path) is not None


def read(path: Path) -> ImportedModel:
    """Reads a checkpoint, or the newest one in a folder."""
    files = cast("_Files", _locate(path))  # it was recognised
    params = section(read_yaml(files.settings), _PARAMS)
    tensors = translate(
        read_hdf5(files.weights), *files.statistics("stats.npy"), path=files.weights
    )
    stats = {own: files.statistics(f"stats_{name}.npy") for own, name in _CONTOURS.items()}
    for name, (mean, std) in stats.items():
        tensors |= {f"{name}.norm.mean": mean, f"{name}.norm.std": std}
    vocabulary, reads_text = _vocabulary(len(tensors["phone_embedding.weight"]))
    config = _config(params, tensors, files.settings)
    pitch, energy = (_stat(*stats[name]) for name in _CONTOURS)
    speaker = SpeakerStats(pitch, pitch, energy, energy, 0.0)
    return ImportedModel(
        config=config,
        assets=Assets(
            mel=config_of(plain_tree(config, files.settings)).preprocess.mel,
            vocabulary=vocabulary,
            speakers=(Speaker("speaker", "en-us"),),
            stats=CorpusStats({"speaker": speaker}),
        ),
        tensors=tensors,
        weights=files.weights,
        described_by=files.settings,
        source=f"FastSpeech 2 of TensorFlowTTS, {files.weights.name}",
        unused=() if reads_text else ("names of the symbols: it cannot read text",),
        step=_step(files.weights),
    )


def _locate(path: Path) -> _Files | None:
    weights = _newest(path)
    if weights is None:
        return None
    names = sorted((*weights.parent.glob("*.yml"), *weights.parent.glob("*.yaml")))
    settings = first_file(file for file in names if _PARAMS in read_yaml(file))
    if settings is None:
        raise InputError(
            f"{weights}: no yaml file with {_PARAMS} in its folder; copy that of its training there"
        )
    return _Files(weights, settings)


def _newest(path: Path) -> Path | None:
    if path.is_file():
        return path if is_hdf5(path) else None
    files = sorted(file for file in path.glob("*.h5") if is_hdf5(file))
    if len(files) > 1 and len({_step(file) for file in files} - {None}) < len(files):
        raise several_models(path, (file.name for file in files))
    return max(files, key=lambda file: _step(file) or 0, default=None)


def _step(path: Path) -> int | None:
    """Updates in a name such as model-150000.h5 or fastspeech2-150k.h5."""
    match = _NUMBER.search(path.name)
    return int(match[1]) * (1000 if match[2] else 1) if match else None


def _vocabulary(n_rows: int) -> tuple[Vocabulary, bool]:
    """Names of the symbols, and whether they are known; other sets keep their places."""
    known = nvidia_vocabulary(_SYMBOLS)
    if len(known) == n_rows:
        return known, True
    return Vocabulary((PAD, *(f"{UNNAMED}{number}>" for number in range(1, n_rows)))), False


def _stat(mean: Tensor, std: Tensor) -> Stat:
    """Statistics of frames; their range is not stored."""
    centre, spread = float(mean[0]), float(std[0])
    return Stat(centre, spread, max(0.0, centre - 3 * spread), centre + 3 * spread)


def _config(
    params: Mapping[str, object], tensors: Mapping[str, Tensor], path: Path
) -> dict[str, object]:
    return {
        "task": "tts",
        "model_type": "FastSpeech2",
        "dataset": ["unnamed"],
        "dataset_path": {},
        "log_dir": "ckpts/tts",
        "preprocess": {
            **_MEL,
            "n_mel": len(tensors["mel_linear.bias"]),
            "aligner": "imported",  # its durations came from a Tacotron 2 or an aligner
            "text": {"phone_extractor": _SYMBOLS, "p_arpabet": 0.0},
        },
        "model": _model(params, tensors, path),
    }


def _model(
    params: Mapping[str, object], tensors: Mapping[str, Tensor], path: Path
) -> dict[str, object]:
    """The `model` section: sizes are those of the tensors."""
    known = required(params, f"{path}: {_PARAMS}", *_NEEDED)
    if known["encoder_hidden_act"] != known["decoder_hidden_act"]:
        raise InputError(f"{path}: encoder_hidden_act and decoder_hidden_act must be equal")
    _, hidden = tensors["phone_embedding.weight"].shape
    blocks = {
        part: len({name.split(".")[2] for name in tensors if name.startswith(f"{part}.layers.")})
        for part in ("encoder", "decoder")
    }
    first, second = (tensors[f"encoder.layers.0.conv_{n}.weight"] for n in (1, 2))
    predictor = tensors["duration_predictor.conv_1.weight"]
    return {
        "transformer": {
            **{f"{part}_layer": number for part, number in blocks.items()},
            **{f"{part}_hidden": hidden for part in blocks},
            **{f"{part}_head": known[f"{part}_num_attention_heads"] for part in blocks},
            **{f"{part}_dropout": known["hidden_dropout_prob"] for part in blocks},
            "conv_filter_size": len(first),
            "conv_kernel_size": [first.shape[2], second.shape[2]],
            "attention_dropout": known["attention_probs_dropout_prob"],
            "activation": known["encoder_hidden_act"],
        },
        "variance_predictor": {
            "filter_size": len(predictor),
            "kernel_size": predictor.shape[2],
            "dropout": known["variant_predictor_dropout_rate"],
        },
        "variance_embedding": {
            "kind": "convolution",
            "kernel_size": tensors["pitch.embedding.weight"].shape[2],
        },
        "centred_postnet": True,
        "stored_positions": True,
        "max_seq_len": len(tensors["encoder.positions"]),
    }
