"""Checkpoints of NVIDIA's DeepLearningExamples: one file with tensors, sizes and settings."""

import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from models.checkpoint.importers._files import several_models
from models.checkpoint.importers._settings import section
from models.checkpoint.tensors import named_tensors, read_weights
from processors.text.letters.nvidia import nvidia_vocabulary
from processors.text.symbols import PAD, UNNAMED, Vocabulary
from utils.errors import InputError

_AVERAGED, _LATEST = "ema_state_dict", "state_dict"
_FILE_STARTS = (b"PK\x03\x04", b"\x80")  # of what torch.save writes: zip, before 2020 a pickle
_HEAD = 1 << 22  # bytes; the names of all tensors are in fewer
_MODELS = {  # names of tensors that only this model has
    "FastPitch": r"pitch_predictor\.",
    "Tacotron 2": r"decoder\.attention_rnn\.",
    "WaveGlow": r"convinv\.|WN\.\d",
    "HiFi-GAN": r"conv_pre\.",
}
_FILES = {  # names of files of a model
    "FastPitch": re.compile(r"(?i)[^.]*fastpitch.*"),
    "Tacotron 2": re.compile(r"(?i)[^.]*tacotron_?2.*"),
    "WaveGlow": re.compile(r"(?i)[^.]*waveglow.*"),
}
_NUMBER = re.compile(r"(\d+)(\.\w+)?$")
_SYMBOL_SETS = ("nvidia_english", "nvidia_english_lowercase")  # by number of symbols
_MEL = {  # of LJSpeech in NVIDIA's recipes, by the keys of Arion and of `train_setup`
    "sample_rate": ("sampling_rate", 22050),
    "n_fft": ("filter_length", 1024),
    "win_size": ("win_length", 1024),
    "hop_size": ("hop_length", 256),
    "fmin": ("mel_fmin", 0.0),
    "fmax": ("mel_fmax", 8000.0),
}


@dataclass(frozen=True)
class NvidiaCheckpoint:
    """What one file holds."""

    path: Path
    model: str  # "FastPitch", "Tacotron 2" ...; "" if none of them
    weights: str  # the key of the tensors: those averaged over the updates, if there are any
    tensors: Mapping[str, object]  # by name, as in the file
    config: Mapping[str, object]  # sizes of the network
    setup: Mapping[str, object]  # settings of training; empty in files before 2022
    epoch: int | None
    step: int | None  # updates of training
    others: tuple[str, ...]  # keys of the rest

    def network(self) -> dict[str, Tensor]:
        """The tensors, without the prefix of parallel training.

        Raises:
            InputError: If one of them is no tensor.
        """
        return named_tensors(self.tensors, f"{self.path}: {self.weights}")

    def mel(self) -> dict[str, object]:
        """Keys of Arion's `preprocess` section; NVIDIA's for LJSpeech where the file has none."""
        known = {own: self.setup.get(name, usual) for own, (name, usual) in _MEL.items()}
        return {**known, "n_mel": self.config.get("n_mel_channels", 80), "mel_padding": "centre"}

    def text(self, n_rows: int) -> tuple[dict[str, object], Vocabulary]:
        """Arion's `preprocess.text` section, and the vocabulary.

        The embeddings of other sets than the two English ones keep their places under names that no
        text contains: such a model loads, and cannot read text.

        Args:
            n_rows: Rows of the symbol embedding.
        """
        sets = {name: nvidia_vocabulary(name) for name in _SYMBOL_SETS}
        fitting = [name for name, vocabulary in sets.items() if len(vocabulary) == n_rows]
        if not fitting:
            names = (f"{UNNAMED}{number}>" for number in range(1, n_rows))
            return {"phone_extractor": _SYMBOL_SETS[0], "p_arpabet": 0.0}, Vocabulary((PAD, *names))
        # before 2022, words were always in letters
        section = {"phone_extractor": fitting[0], "p_arpabet": self.setup.get("p_arpabet", 0.0)}
        return section, sets[fitting[0]]

    @property
    def unused(self) -> tuple[str, ...]:
        """A line for each other part of the file, with the reason why it is not used."""
        reasons = {
            _LATEST: f"the averaged weights ({_AVERAGED}) are used",
            _AVERAGED: f"holds no weights; {_LATEST} is used",
        }
        new = "training starts with a new one"
        return tuple(f"{name}: {reasons.get(name, new)}" for name in self.others)

    @property
    def age(self) -> str:
        """Its training, for the model card."""
        averaged = ", weights averaged over updates" if self.weights == _AVERAGED else ""
        return averaged if self.epoch is None else f", epoch {self.epoch}{averaged}"


def open_checkpoint(path: Path) -> NvidiaCheckpoint | None:
    """Reads a checkpoint; None if the file is of another kind. Tensors stay on disk until used.

    Args:
        path: Any file.

    Raises:
        InputError: If it cannot be read, or holds more than tensors and plain values.
    """
    if path.suffix != ".safetensors" and not head_of(path).startswith(_FILE_STARTS):
        return None
    saved = read_weights(path)
    if not isinstance(saved, Mapping):
        return None
    # tensors alone; NVIDIA's HiFi-GAN is in a section, and such a file is one of its authors
    if _model_of(saved) not in ("", "HiFi-GAN"):
        saved = {_LATEST: saved}
    if not isinstance(saved.get(_LATEST), Mapping):
        return None
    averaged = saved.get(_AVERAGED)
    weights = _AVERAGED if isinstance(averaged, Mapping) and averaged else _LATEST
    tensors = saved[weights]
    used = {weights, "config", "train_setup", "epoch", "iteration"}
    return NvidiaCheckpoint(
        path=path,
        model=_model_of(tensors),
        weights=weights,
        tensors=tensors,
        config=section(saved, "config"),
        setup=section(saved, "train_setup"),
        epoch=_whole(saved.get("epoch")),
        step=_whole(saved.get("iteration")),
        others=tuple(name for name in saved if name not in used and saved[name] is not None),
    )


def head_of(path: Path) -> bytes:
    """Reads the part of a file that names its tensors; nothing in it is unpickled.

    Args:
        path: Of any kind: torch.save in either format, or safetensors.

    Returns:
        Empty if it cannot be read.
    """
    try:
        if not zipfile.is_zipfile(path):
            with path.open("rb") as file:
                return file.read(_HEAD)
        with zipfile.ZipFile(path) as archive:
            pickles = [name for name in archive.namelist() if name.endswith("data.pkl")]
            if not pickles:
                return b""
            with archive.open(pickles[0]) as file:
                return file.read(_HEAD)
    except (OSError, zipfile.BadZipFile):
        return b""


def find_checkpoint(path: Path, name: re.Pattern[str], model: str) -> NvidiaCheckpoint | None:
    """Finds a checkpoint of a model: a file, or the one of the highest number in a folder.

    Args:
        path: A file of any name, or a folder.
        name: Pattern of the names of this model's files.
        model: As in `NvidiaCheckpoint.model`.

    Returns:
        None if there is no model of NVIDIA.

    Raises:
        InputError: If it is another model of NVIDIA, if a file of this name is broken, or if none
            of several is the newest.
    """
    file = _newest(path, name)
    try:
        found = None if file is None else open_checkpoint(file)
    except InputError:
        if file is not None and name.fullmatch(file.name):
            raise
        return None
    if found is None or not found.model:
        return None
    refuse_several(path, found.path, model)
    if found.model != model:
        raise wrong_model(found, model)
    return found


def refuse_several(path: Path, file: Path, model: str) -> None:
    """Refuses a folder that also holds another model of NVIDIA: which one is meant is unknown.

    Args:
        path: What the user named.
        file: The checkpoint found there.
        model: As in `NvidiaCheckpoint.model`.

    Raises:
        InputError: If there is such a file; it names all of them.
    """
    if not path.is_dir():
        return
    patterns = [pattern for name, pattern in _FILES.items() if name != model]
    others = [
        other.name
        for other in path.glob("*")
        if any(pattern.fullmatch(other.name) for pattern in patterns)
        and other.is_file()
        and head_of(other).startswith(_FILE_STARTS)
    ]
    if others:
        raise several_models(path, (file.name, *others))


def size_of(tensors: Mapping[str, Tensor], name: str, axis: int, path: Path) -> int:
    """Looks up one size of a tensor.

    Args:
        tensors: Those of the file.
        name: That of the tensor.
        axis: Which size; 0 is the first.
        path: The file, for messages.

    Raises:
        InputError: If there is no such tensor, or if it has fewer axes.
    """
    if name not in tensors:
        raise InputError(f"{path}: no tensor {name}; is it whole?")
    shape = tuple(tensors[name].shape)
    if len(shape) <= axis:
        raise InputError(
            f"{path}: {name} has the shape {shape}, expected at least {axis + 1} axes; is it whole?"
        )
    return shape[axis]


def _newest(path: Path, name: re.Pattern[str]) -> Path | None:
    if path.is_file():
        return path
    files = [f for f in path.glob("*") if name.fullmatch(f.name) and f.is_file()]
    files = [f for f in files if not (f.is_symlink() and f.resolve() in files)]  # "..._last.pt"
    numbers = {int(match[1]): file for file in files if (match := _NUMBER.search(file.name))}
    if len(numbers) < len(files) > 1:
        raise several_models(path, (file.name for file in files))
    return numbers[max(numbers)] if numbers else next(iter(files), None)


def wrong_model(found: NvidiaCheckpoint, expected: str) -> InputError:
    """Returns the error for a checkpoint of another model of NVIDIA.

    Args:
        found: The checkpoint.
        expected: The model that was looked for.
    """
    return InputError(f"{found.path}: a {found.model} of NVIDIA, not a {expected}")


def _model_of(tensors: Mapping[str, object]) -> str:
    for model, pattern in _MODELS.items():
        if any(re.match(r"(module\.)?" + f"({pattern})", str(name)) for name in tensors):
            return model
    return ""


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
