"""Checkpoints of NVIDIA's DeepLearningExamples: one file with tensors, sizes and settings."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import cast

from torch import Tensor

from models.checkpoint.foreign import FileNames, ImportedModel
from models.checkpoint.importers import _tables
from models.checkpoint.tensors import named_tensors, read_weights
from processors.text.voice_phones import Vocabulary, nvidia_vocabulary
from utils.errors import InputError

_AVERAGED, _LATEST = "ema_state_dict", "state_dict"
_READ = ("config", "train_setup", "epoch", "iteration")  # other parts that are used
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
_SETUP = {ours: f"train_setup.{key}" for ours, key in MEL.items()} | {
    "preprocess.n_mels": "config.n_mel_channels"
}


def file_names(model: str) -> FileNames:
    """Returns names of the files of a model; no other file is needed."""
    weights = re.compile(rf"(?i)[^.]*{model}[^.]*(\.(pt|pth|safetensors))?")
    return FileNames(weights, re.compile(r"_(\d+)(?:\.\w+)?$"), weights)


@dataclass(frozen=True)
class NvidiaCheckpoint:
    """What one file holds."""

    path: Path
    model: str  # "FastPitch", "Tacotron 2" or "WaveGlow"
    parts: Mapping[str, object]  # of the file; empty sizes and settings in some files before 2022
    weights: str  # the part that is used: those averaged over the updates, if there are any
    tensors: dict[str, Tensor]  # of that part, without the prefix of parallel training

    def size(self, name: str, axis: int = 0) -> int:
        """Looks up one size of a tensor, as `size_of`."""
        return _tables.size_of(self.tensors, name, axis, self.path)

    def imported(
        self, settings: Mapping[str, object], tensors: dict[str, Tensor], path: Path | None = None
    ) -> ImportedModel:
        """Puts a model together; `path` is the file of the settings, if it is another one."""
        mel = _tables.mel_settings(_tables.LJSPEECH) | _tables.existing(self.parts, _SETUP)
        task = "vocoder" if self.model == "WaveGlow" else "tts"
        step, epoch = (self.parts.get(name) for name in ("iteration", "epoch"))
        after = f", epoch {epoch}" if isinstance(epoch, int) else ""
        used = (self.weights, *_READ)
        return ImportedModel(
            tree=_tables.tree_of(task, {**mel, **settings}, path or self.path),
            tensors=tensors,
            weights=self.path,
            source=f"{self.model} of NVIDIA, {self.path.name}, {self.weights}{after}",
            step=step if isinstance(step, int) else None,
            unused=tuple(n for n, p in self.parts.items() if p is not None and n not in used),
        )

    def text(self, symbols: str) -> tuple[dict[str, object], Vocabulary]:
        """Returns Arion's settings of the text, and the vocabulary, by the embeddings."""
        name, vocabulary = symbol_set(self.size(symbols), _SYMBOL_SETS, self.path)
        # before 2022: letters alone
        share = _tables.value_at(self.parts, "train_setup.p_arpabet", 0.0)
        settings = {"preprocess.text.phone_extractor": name, "preprocess.text.p_arpabet": share}
        return settings, vocabulary


def symbol_set(n_symbols: int, names: Sequence[str], path: Path) -> tuple[str, Vocabulary]:
    """Returns the set with this number of symbols, and its vocabulary."""
    sets = {name: nvidia_vocabulary(name) for name in names}
    for name, vocabulary in sets.items():
        if len(vocabulary) == n_symbols:
            return name, vocabulary
    expected = " or ".join(f"{len(vocabulary)} of {name}" for name, vocabulary in sets.items())
    raise InputError(f"{path}: it has {n_symbols} symbols, expected the {expected}")


def holds(weights: Path, model: str, names: FileNames) -> bool:
    """Returns whether a file holds a model of NVIDIA."""
    try:
        return _model_in(weights, weights.stat().st_mtime_ns) == model
    except InputError:
        if names.weights.fullmatch(weights.name):
            raise
        return False


@lru_cache(maxsize=1)  # all importers ask about the same file
def _model_in(path: Path, changed_ns: int) -> str:
    saved = read_weights(path)
    return _model_of(saved) or _model_of(_tables.value_at(saved, _LATEST))


def open_checkpoint(path: Path) -> NvidiaCheckpoint:
    """Reads a checkpoint. Tensors stay on disk until used."""
    saved = cast("Mapping[str, object]", read_weights(path))  # `holds` has accepted it
    parts = {_LATEST: saved} if _model_of(saved) else saved
    weights = _AVERAGED if parts.get(_AVERAGED) else _LATEST
    tensors = named_tensors(parts[weights], f"{path}: {weights}")
    return NvidiaCheckpoint(path, _model_of(parts[_LATEST]), parts, weights, tensors)


def _model_of(tensors: object) -> str:
    for model, pattern in _MODELS.items():
        beginning = re.compile(rf"(module\.)?({pattern})")
        if isinstance(tensors, Mapping) and any(beginning.match(str(name)) for name in tensors):
            return model
    return ""
