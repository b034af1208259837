"""FastPitch 1.0 and 1.1 of NVIDIA (DeepLearningExamples/PyTorch/SpeechSynthesis/FastPitch).

A checkpoint is one file; nothing else is needed. Files of version 1.0 say nothing of the mel, which
is then that of NVIDIA's recipe for LJSpeech, and nothing of the symbols but their number.
"""

import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from models.base.assets import Assets, Speaker
from models.base.registry import config_of
from models.checkpoint.importers import ImportedModel, TrainingNetworks
from models.checkpoint.importers._files import HubFiles
from models.checkpoint.importers._names import TensorNames
from models.checkpoint.importers._nvidia import NvidiaCheckpoint, find_checkpoint, size_of
from models.checkpoint.importers._settings import required
from models.checkpoint.tensors import listed
from processors.dataset.statistics import CorpusStats, SpeakerStats, Stat
from utils.config import plain_tree
from utils.errors import InputError

KIND = "FastPitch of NVIDIA (one .pt file)"
_FILE = re.compile(r"(?i).*fastpitch.*\.(pt|pth)")
HUB_FILES = HubFiles(_FILE, _FILE)
_LJSPEECH_PITCH = 218.14, 67.24  # Hz; NVIDIA's code takes them if the stored deviation is 0
_SYMBOLS, _SPEAKERS = "encoder.word_emb.weight", "speaker_emb.weight"
_BLOCK = "{word}.layers.{n}."
_NAMES = TensorNames(
    (
        ("encoder.word_emb.", "phone_embedding."),
        ("speaker_emb.", "speaker_embedding."),
        ("proj.", "mel_linear."),
        (_BLOCK + "dec_attn.qkv_net.", _BLOCK + "attention.qkv."),
        (_BLOCK + "dec_attn.o_net.", _BLOCK + "attention.fc."),
        (_BLOCK + "dec_attn.layer_norm.", _BLOCK + "attention_norm."),
        (_BLOCK + "pos_ff.CoreNet.0.", _BLOCK + "conv_1."),
        (_BLOCK + "pos_ff.CoreNet.2.", _BLOCK + "conv_2."),
        (_BLOCK + "pos_ff.layer_norm.", _BLOCK + "conv_norm."),
        ("duration_predictor.layers.{n}.conv.", "duration_predictor.conv_{n+1}."),
        ("duration_predictor.layers.{n}.norm.", "duration_predictor.norm_{n+1}."),
        ("duration_predictor.fc.", "duration_predictor.linear."),
        *(
            (f"{contour}_{theirs}", f"{contour}.{own}")
            for contour in ("pitch", "energy")
            for theirs, own in (
                ("emb.", "embedding."),
                ("predictor.layers.{n}.conv.", "predictor.conv_{n+1}."),
                ("predictor.layers.{n}.norm.", "predictor.norm_{n+1}."),
                ("predictor.fc.", "predictor.linear."),
            )
        ),
    )
)
_LEFT_OUT = {  # tensors that are not used, and why
    r"(encoder|decoder)\.pos_emb\.inv_freq": "of the positions, which are computed",
    r"pitch_(mean|std)": "",  # are read
    r"attention\.": (
        "the aligner that learned the durations; that of Arion compares single symbols, this one"
        " also their neighbours. Training starts with a new one"
    ),
}


def recognises(path: Path) -> bool:
    """Whether it is such a file, or a folder with one whose name contains `FastPitch`.

    Raises:
        InputError: If it is another model of NVIDIA, or a file of this name is broken.
    """
    return find_checkpoint(path, _FILE, "FastPitch") is not None


def read(path: Path) -> ImportedModel:
    """Reads a checkpoint, or the newest one in a folder."""
    found = find_checkpoint(path, _FILE, "FastPitch")
    if found is None:
        raise InputError(f"{path}: no FastPitch of NVIDIA")
    stored = found.network()
    tensors = _translated(stored, found.path)
    text, vocabulary = found.text(size_of(stored, _SYMBOLS, 0, found.path))
    config = _config(found, stored, text)
    stats = _stats(stored, found.path)
    n_speakers = size_of(stored, _SPEAKERS, 0, found.path) if _SPEAKERS in stored else 1
    names = [f"speaker_{number}" for number in range(n_speakers)]
    tensors["pitch.norm.mean"] = torch.full((n_speakers,), stats.mean)
    tensors["pitch.norm.std"] = torch.full((n_speakers,), stats.std)
    none = Stat(0.0, 1.0, 0.0, 0.0, count=0)  # energy is not normalised
    speaker = SpeakerStats(stats, stats, none, none, seconds=0.0)
    assets = Assets(
        mel=config_of(plain_tree(config, found.path)).preprocess.mel,
        vocabulary=vocabulary,
        speakers=tuple(Speaker(name, "en-us") for name in names),
        stats=CorpusStats(dict.fromkeys(names, speaker)),
    )
    return ImportedModel(
        config=config,
        assets=assets,
        tensors=tensors,
        original_name=_NAMES.original,
        weights=found.path,
        described_by=found.path,
        source=f"FastPitch of NVIDIA (DeepLearningExamples), {found.path.name}{found.age}",
        unused=_unused(stored),
        step=found.step,
        training_networks=partial(TrainingNetworks, unused=found.unused),
    )


def _translated(stored: Mapping[str, Tensor], path: Path) -> dict[str, Tensor]:
    """The tensors of the network under Arion's names."""
    used = {name: t for name, t in stored.items() if _reason_for_leaving(name) is None}
    named = {name: _NAMES.own(name) for name in used}
    if foreign := sorted(name for name, own in named.items() if own is None):
        raise InputError(
            f"{path}: tensors that FastPitch does not have: {listed(foreign)}; it is of another "
            "architecture"
        )
    if missing := {_SYMBOLS, "pitch_emb.weight"} - used.keys():
        raise InputError(f"{path}: incomplete, without {listed(sorted(missing))}")
    return {own: used[name] for name, own in named.items() if own is not None}


def _reason_for_leaving(name: str) -> str | None:
    """Why a tensor is not one of Arion's network; None if it is."""
    return next((why for pattern, why in _LEFT_OUT.items() if re.match(pattern, name)), None)


def _config(
    found: NvidiaCheckpoint, stored: Mapping[str, Tensor], text: Mapping[str, object]
) -> dict[str, object]:
    return {
        "task": "tts",
        "model_type": "FastPitch",
        "dataset": ["unnamed"],
        "dataset_path": {},
        "log_dir": "ckpts/tts",
        # it learned the durations, or read those of a Tacotron 2: there is no aligner to repeat
        "preprocess": {**found.mel(), "aligner": "learned", "text": text},
        "model": {
            **_sizes(found, stored),
            "variant": "1.1" if "energy_emb.weight" in stored else "1.0",
            "energy": "log_mel",
            "speaker_emb_weight": found.config.get("speaker_emb_weight", 1.0),
        },
    }


def _sizes(found: NvidiaCheckpoint, stored: Mapping[str, Tensor]) -> dict[str, object]:
    """The sections of the model; version 1.0 has no keys for the kernels of embeddings."""
    where = f"{found.path}: config"
    sizes = required(found.config, where, "symbols_embedding_dim")
    model: dict[str, object] = {"hidden": sizes["symbols_embedding_dim"]}
    for own, name in (("encoder", "in_fft"), ("decoder", "out_fft")):
        keys = {
            "layers": f"{name}_n_layers",
            "heads": f"{name}_n_heads",
            "head_size": f"{name}_d_head",
            "filter_size": f"{name}_conv1d_filter_size",
            "kernel_size": f"{name}_conv1d_kernel_size",
            "dropout": f"p_{name}_dropout",
            "attention_dropout": f"p_{name}_dropatt",
        }
        model[own] = _section(found.config, where, keys)
    for own, name in (("duration", "dur"), ("pitch", "pitch"), ("energy", "energy")):
        if own != "energy" or "energy_emb.weight" in stored:
            keys = {
                "layers": f"{name}_predictor_n_layers",
                "filter_size": f"{name}_predictor_filter_size",
                "kernel_size": f"{name}_predictor_kernel_size",
                "dropout": f"p_{name}_predictor_dropout",
            }
            model[f"{own}_predictor"] = _section(found.config, where, keys)
    for contour in ("pitch", "energy"):
        weight = stored.get(f"{contour}_emb.weight")  # (H, 1, kernel)
        if weight is not None and weight.ndim == 3:
            model[f"{contour}_kernel_size"] = weight.shape[2]
    return model


def _section(
    values: Mapping[str, object], where: str, keys: Mapping[str, str]
) -> dict[str, object]:
    """Values that must exist, under Arion's names."""
    known = required(values, where, *keys.values())
    return {own: known[name] for own, name in keys.items()}


def _stats(stored: Mapping[str, Tensor], path: Path) -> Stat:
    """Mean and deviation of the pitch in Hz, of all speakers together; its range is not stored."""
    mean, std = _LJSPEECH_PITCH
    if stored.keys() & {"pitch_mean", "pitch_std"}:
        known = _number(stored, "pitch_mean", path), _number(stored, "pitch_std", path)
        if known[1] < 0:
            raise InputError(f"{path}: pitch_std is {known[1]:g}, expected 0 or more; is it whole?")
        if known[1] > 0:
            mean, std = known
    return Stat(mean, std, max(0.0, mean - 3 * std), mean + 3 * std)


def _number(stored: Mapping[str, Tensor], name: str, path: Path) -> float:
    """The first number of a tensor."""
    if name not in stored:
        raise InputError(f"{path}: incomplete, without {name}")
    if stored[name].numel() == 0:
        raise InputError(f"{path}: {name} is empty, expected one number; is it whole?")
    if not stored[name].isfinite().all():
        raise InputError(f"{path}: {name} holds infinity or NaN; is it whole?")
    return float(stored[name].flatten()[0])


def _unused(stored: Mapping[str, Tensor]) -> tuple[str, ...]:
    """A line for each group of tensors that the network does not use."""
    groups: dict[str, list[str]] = {}
    for name in stored:
        if why := _reason_for_leaving(name):
            groups.setdefault(why, []).append(name)
    return tuple(f"{listed(names)}: {why}" for why, names in groups.items())
