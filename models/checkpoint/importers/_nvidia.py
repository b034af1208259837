"""Checkpoints of NVIDIA's DeepLearningExamples: one file with tensors, sizes and settings."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from torch import Tensor

from models.checkpoint.foreign import FileNames, ImportedModel
from models.checkpoint.importers._tables import size_of, tree_of
from models.checkpoint.tensors import named_tensors, read_weights
from processors.text.symbols import PAD, UNNAMED, Vocabulary, nvidia_vocabulary
from utils.errors import InputError

_AVERAGED, _LATEST = "ema_state_dict", "state_dict"
_MODELS = {  # names of tensors that only this model has
    "FastPitch": r"pitch_predictor\.",
    "Tacotron 2": r"decoder\.attention_rnn\.",
    "WaveGlow": r"convinv\.|WN\.\d",
}
_SYMBOL_SETS = ("nvidia_english", "nvidia_english_lowercase")  # of different sizes
MEL = {  # by the keys of NVIDIA's code
    "preprocess.sample_rate": "sampling_rate",
    "preprocess.n_fft": "filter_length",
    "preprocess.win_length": "win_length",
    "preprocess.hop_length": "hop_length",
    "preprocess.f_min": "mel_fmin",
    "preprocess.f_max": "mel_fmax",
}
_LJSPEECH = dict(zip(MEL, (22050, 1024, 1024, 256, 0.0, 8000.0), strict=True))


def file_names(model: str) -> FileNames:
    """Names of the files of a model; no other file is needed."""
    weights = re.compile(rf"(?i)[^.]*{model}[^.]*(\.(pt|pth|safetensors))?")
    return FileNames(weights, re.compile(r"_(\d+)(?:\.\w+)?$"), weights)


@dataclass(frozen=True)
class NvidiaCheckpoint:
    """What one file holds."""

    path: Path
    model: str  # "FastPitch", "Tacotron 2" or "WaveGlow"
    tensors: dict[str, Tensor]  # without the prefix of parallel training
    averaged: bool  # whether the tensors are those averaged over the updates
    config: Mapping[str, object]  # sizes of the network
    setup: Mapping[str, object]  # settings of training; empty in files before 2022
    epoch: int | None
    step: int | None  # updates of training
    unused: tuple[str, ...]  # a line for each other part of the file, with the reason

    def size(self, name: str, axis: int = 0) -> int:
        """Looks up one size of a tensor, as `size_of`."""
        return size_of(self.tensors, name, axis, self.path)

    def imported(self, settings: Mapping[str, object], tensors: dict[str, Tensor]) -> ImportedModel:
        """Puts a model together."""
        mel = {ours: self.setup.get(key, _LJSPEECH[ours]) for ours, key in MEL.items()}
        mel["preprocess.n_mels"] = self.config.get("n_mel_channels", 80)
        mel["preprocess.mel_padding"] = "centre"
        epoch = "" if self.epoch is None else f", epoch {self.epoch}"
        averaged = ", weights averaged over updates" if self.averaged else ""
        task = "vocoder" if self.model == "WaveGlow" else "tts"
        return ImportedModel(
            tree=tree_of(task, {**mel, **settings}, self.path),
            tensors=tensors,
            weights=self.path,
            source=f"{self.model} of NVIDIA, {self.path.name}{epoch}{averaged}",
            step=self.step,
            unused=self.unused,
        )

    def text(self, symbols: str) -> tuple[dict[str, object], Vocabulary]:
        """Arion's settings of the text, and the vocabulary.

        The embeddings of other sets than the two English ones keep their places under names that no
        text contains: such a model loads, and cannot read text.
        """
        n_rows = self.size(symbols)
        sets = {name: nvidia_vocabulary(name) for name in _SYMBOL_SETS}
        name = next((name for name in sets if len(sets[name]) == n_rows), None)
        # before 2022, words were always in letters
        p_arpabet = self.setup.get("p_arpabet", 0.0) if name else 0.0
        settings = {
            "preprocess.text.phone_extractor": name or _SYMBOL_SETS[0],
            "preprocess.text.p_arpabet": p_arpabet,
        }
        return settings, sets[name] if name else unnamed_symbols(n_rows)


def unnamed_symbols(n_rows: int) -> Vocabulary:
    """Symbols of an unknown set, under names that no text contains."""
    return Vocabulary((PAD, *(f"{UNNAMED}{number}>" for number in range(1, n_rows))))


def holds(weights: Path, model: str, names: FileNames) -> bool:
    """Whether a file holds a model of NVIDIA."""
    try:
        return _model_in(weights, weights.stat().st_mtime_ns) == model
    except InputError:
        if names.weights.fullmatch(weights.name):
            raise
        return False


@lru_cache(maxsize=1)  # all importers ask about the same file
def _model_in(path: Path, changed_ns: int) -> str:
    saved = _saved(path)
    return _model_of(saved) or _model_of(saved.get(_LATEST))


def open_checkpoint(path: Path) -> NvidiaCheckpoint:
    """Reads a checkpoint. Tensors stay on disk until used."""
    saved = _saved(path)
    if _model_of(saved):  # tensors alone
        saved = {_LATEST: saved}
    averaged = bool(isinstance(saved.get(_AVERAGED), Mapping) and saved[_AVERAGED])
    weights = _AVERAGED if averaged else _LATEST
    reasons = {
        _LATEST: f"the averaged weights ({_AVERAGED}) are used",
        _AVERAGED: f"holds no weights; {_LATEST} is used",
    }
    new = "training starts with a new one"
    parts = ("config", "train_setup", "epoch", "iteration")
    config, setup, epoch, step = map(saved.get, parts)
    others = [n for n in saved if n not in (weights, *parts) and saved[n] is not None]
    return NvidiaCheckpoint(
        path=path,
        model=_model_of(saved[_LATEST]),
        tensors=named_tensors(saved[weights], f"{path}: {weights}"),
        averaged=averaged,
        config=config if isinstance(config, Mapping) else {},
        setup=setup if isinstance(setup, Mapping) else {},
        epoch=epoch if isinstance(epoch, int) else None,
        step=step if isinstance(step, int) else None,
        unused=tuple(f"{name}: {reasons.get(name, new)}" for name in others),
    )


def _saved(path: Path) -> Mapping[str, object]:
    saved = read_weights(path)
    return saved if isinstance(saved, Mapping) else {}


def _model_of(tensors: object) -> str:
    for model, pattern in _MODELS.items():
        beginning = re.compile(rf"(module\.)?({pattern})")
        if isinstance(tensors, Mapping) and any(beginning.match(str(name)) for name in tensors):
            return model
    return ""
