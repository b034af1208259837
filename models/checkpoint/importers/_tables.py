"""Tables of other projects: settings by Arion's keys, and tensors by Arion's names.

A table of settings gives the key in the file by Arion's key, both dotted: {"train.adam.lr":
"learning_rate"}. Missing values have no defaults.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from modules.mel import MelConfig
from processors.dataset.statistics import Stat
from utils.config_tree import Tree, plain_tree
from utils.errors import InputError

NameTable = Mapping[str, str]
LJSPEECH = MelConfig(22050, 1024, 1024, 256, 80, 0.0, 8000.0)  # of many recipes

_MISSING = object()
_MEL = ("sample_rate", "n_fft", "win_length", "hop_length", "n_mels", "f_min", "f_max")
_NUMBER, _WORD = re.compile(r"\\{([a-z])\\}"), re.compile(r"\\{([a-z]{2,})\\}")  # escaped places


def value_at(values: object, key: str, missing: object = None) -> Any:  # noqa: ANN401  (JSON)
    """Looks up a dotted key; `missing` if it is missing."""
    for name in key.split("."):
        values = values.get(name, missing) if isinstance(values, Mapping) else missing
    return values


def existing(values: object, table: NameTable) -> dict[str, object]:
    """Selects the settings that exist, by Arion's keys."""
    selected = {ours: value_at(values, key, _MISSING) for ours, key in table.items()}
    return {ours: value for ours, value in selected.items() if value is not _MISSING}


def required(values: object, table: NameTable, path: Path) -> dict[str, object]:
    """Selects settings by Arion's keys."""
    selected = existing(values, table)
    if missing := [key for ours, key in table.items() if ours not in selected]:
        fault = f"{path}: {', '.join(missing)} is missing"
        raise InputError(f"{fault}; expected the settings that the weights were trained with")
    return selected


def mel_keys(section: str, *keys: str) -> dict[str, str]:
    """Returns the table of a mel: rate, n_fft, window, hop, bands, lowest and highest frequency."""
    return {f"preprocess.{ours}": section + key for ours, key in zip(_MEL, keys, strict=True)}


def mel_settings(mel: MelConfig) -> dict[str, object]:
    """Returns the settings of a mel that is not in the checkpoint."""
    settings = {f"preprocess.{key}": getattr(mel, key) for key in (*_MEL, "log_floor")}
    return settings | {"preprocess.mel_padding": mel.padding}


def tree_of(task: str, settings: Mapping[str, object], path: Path) -> Tree:
    """Builds the tree of an ordinary config.json.

    Args:
        task: "tts" or "vocoder".
        settings: Values by dotted key; `preprocess.f_max` may be None for half of the sample rate.
    """
    general = {"task": task, "dataset": ["unnamed"], "dataset_path": {}, "log_dir": f"ckpts/{task}"}
    # vocoders share the output of stage 1 with recipes
    seconds = {"preprocess.max_seconds": 600.0} if task == "vocoder" else {}
    settings = {**general, **seconds, **settings}
    rate = settings["preprocess.sample_rate"]
    if settings["preprocess.f_max"] is None and isinstance(rate, int | float):
        settings["preprocess.f_max"] = rate / 2
    values: dict[str, Any] = {}
    for key, value in settings.items():
        *sections, last = key.split(".")
        section = values
        for name in sections:
            section = section.setdefault(name, {})
        section[last] = value
    return plain_tree(values, path)


class TensorNames:
    """Beginnings of Arion's names by those of the other project; the first that fits is used.

    A beginning may have places: numbers such as `{n}`, and words in lower case such as `{part}`,
    which have several letters. `{n+1}` is one more than `{n}` of the other project.
    """

    def __init__(self, rows: NameTable) -> None:
        self._rows: list[tuple[re.Pattern[str], str]] = []
        for theirs, ours in rows.items():
            pattern = _NUMBER.sub(r"(?P<\1>[0-9]+)", re.escape(theirs))
            self._rows.append((re.compile(_WORD.sub(r"(?P<\1>[a-z]+)", pattern)), ours))

    def translated(self, name: str) -> str | None:
        """Returns Arion's name of a tensor of the other project; None if no row fits."""
        for pattern, beginning in self._rows:
            if match := pattern.match(name):
                places = match.groupdict()
                numbers = {n: int(text) for n, text in places.items() if len(n) == 1}
                places |= {f"{n}+1": str(number + 1) for n, number in numbers.items()}
                return beginning.format_map(places) + name[match.end() :]
        return None

    def renamed(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Renames tensors of the other project; those that no row fits keep their names."""
        return {self.translated(name) or name: tensor for name, tensor in tensors.items()}


def below(places: NameTable, rows: NameTable) -> dict[str, str]:
    """Returns the rows of `TensorNames` below each of several places, which several layers have."""
    return {a + theirs: b + ours for a, b in places.items() for theirs, ours in rows.items()}


def join_attention(tensors: dict[str, Tensor], parts: Sequence[str] = "qkv") -> None:
    """Joins queries, keys and values, called `parts`, of each attention layer."""
    first = f".attention.{parts[0]}."
    for name in [name for name in tensors if first in name]:
        theirs = [name.replace(first, f".attention.{part}.") for part in parts]
        join(tensors, theirs, name.replace(first, ".attention.qkv."))


def join(tensors: dict[str, Tensor], names: Sequence[str], target: str) -> None:
    """Replaces tensors by one, their rows one after another.

    Nothing is changed if one is missing or their shapes differ: the network then refuses them.
    """
    parts = [tensors[name] for name in names if name in tensors]
    if len(parts) == len(names) and len({part.shape for part in parts}) == 1 and parts[0].ndim:
        for name in names:
            del tensors[name]
        tensors[target] = torch.cat(parts)


def size_of(tensors: Mapping[str, Tensor], name: str, axis: int, path: Path) -> int:
    """Looks up one size of a tensor."""
    shape = tuple(tensors[name].shape) if name in tensors else None
    if shape is None or len(shape) <= axis:
        what = "missing" if shape is None else f"of the shape {shape}"
        raise InputError(f"{path}: the tensor {name} is {what}; is the file whole?")
    return shape[axis]


def stat_without_range(mean: float, std: float) -> Stat:
    """Returns statistics of a quantity, 0 or more, whose range is not stored: three deviations."""
    return Stat(mean, std, max(0.0, mean - 3 * std), mean + 3 * std)
