"""Which files of a repository on the Hugging Face Hub a model needs.

Repositories hold more than that: older checkpoints, the states of optimizers, logs, audio.
"""

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from models.base.assets import AUDIO
from utils.errors import InputError
from utils.hub import resolve

# An experiment of ours: published in its root, or as training left it.
_OURS = re.compile(r"(?P<folder>(checkpoints/step-\d{8,}/)?)model\.safetensors")
_STEP = re.compile(r"(?:step-|^g_)(\d+)|^(\d+)\.pth\.tar$")
_EPOCH = re.compile(r"epoch-(\d+)")
_SETTINGS = re.compile(r".+\.(json5?|ya?ml|txt)|checkpoint|symbols\.dict|utt2spk")
_RESULTS = {"log", "logs", "result", "results"}
_SHOWN = 5  # file names in messages


class _Kind(NamedTuple):
    """File names of a kind of checkpoint of another project."""

    weights: re.Pattern[str]  # of the network that speaks
    discriminators: str  # pattern of those beside them; {number} as in the weights' name
    settings: re.Pattern[str]  # there is no model without


_KINDS = (
    _Kind(  # Amphion: a folder of accelerate, or one file with everything
        re.compile(r"model\.safetensors|pytorch_model\.bin|(?!optimizer|scheduler|training).+\.pt"),
        r"(model|pytorch_model)_\d+\.(safetensors|bin)",
        re.compile(r"args\.json"),
    ),
    _Kind(  # HiFi-GAN's authors: as training leaves it, or published under a name
        re.compile(r"g_\d{8,}|generator.*(?<!\.zip)"), r"do_{number}", re.compile(r"config\.json")
    ),
    _Kind(
        re.compile(r"\d+\.pth\.tar"), r"(?!)", re.compile(r".+\.ya?ml")
    ),  # ming024's FastSpeech 2
)


def fetch(reference: str | Path, *, for_training: bool = False) -> Path:
    """The local path of a model: as given, or where its files from the Hub are.

    Args:
        reference: A local path, or `org/name` or `org/name@revision` on the Hub.
        for_training: Whether to fetch networks that only training needs: discriminators are large.

    Raises:
        InputError: If there is no such model, or it cannot be fetched.
    """
    return resolve(reference, partial(needed_files, for_training=for_training))


def needed_files(names: Sequence[str], *, for_training: bool = False) -> list[str]:
    """The files of a repository that a model needs: its newest checkpoint and its settings.

    Args:
        names: All files of the repository.
        for_training: Whether discriminators belong to it.

    Raises:
        InputError: If there is nothing in it that looks like a model.
    """
    if chosen := _ours(names, for_training=for_training):
        return sorted(chosen)
    for kind in _KINDS:
        if chosen := _foreign(kind, names, for_training=for_training):
            return sorted(chosen)
    some = ", ".join(sorted(names)[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
    raise InputError(
        "there is no model in it: neither config.json, audio.json and model.safetensors, nor a "
        f"checkpoint of a known project with its settings; it holds {some or 'nothing'}"
    )


def _ours(names: Sequence[str], *, for_training: bool) -> set[str]:
    """An experiment of ours: nothing pickled is needed."""
    folders = [match["folder"] for name in names if (match := _OURS.fullmatch(name))]
    if not folders or not {"config.json", AUDIO} <= set(names):
        return set()
    folder = "" if "" in folders else max(folders, key=lambda name: (len(name), name))
    settings = {name for name in names if re.fullmatch(r"[^/]+\.(json|txt)", name)}
    beside = {name for name in names if re.fullmatch(rf"{folder}[^/]+\.(json|safetensors)", name)}
    speaks = f"{folder}model.safetensors"
    return settings | {
        name
        for name in beside
        if for_training or name == speaks or not name.endswith(".safetensors")
    }


def _foreign(kind: _Kind, names: Sequence[str], *, for_training: bool) -> set[str]:
    """A checkpoint of another project; empty if there is none of this kind."""
    paths = [path for path in map(PurePosixPath, names) if not _RESULTS & {*path.parts[:-1]}]
    weights = [path for path in paths if kind.weights.fullmatch(path.name)]
    if not weights or not any(kind.settings.fullmatch(path.name) for path in paths):
        return set()
    newest = _newest(weights)
    older = {path.parent for path in weights} - set(newest.parents)
    chosen = {newest, *(p for p in paths if _SETTINGS.fullmatch(p.name) and p.parent not in older)}
    if for_training:
        pattern = kind.discriminators.replace("{number}", newest.name.rpartition("_")[2])
        beside = [path for path in paths if path.parent == newest.parent]
        chosen |= {path for path in beside if re.fullmatch(pattern, path.name)}
    return {str(path) for path in chosen}


def _newest(weights: Sequence[PurePosixPath]) -> PurePosixPath:
    """The weights of the most updates, then of the latest epoch; safetensors before others.

    Raises:
        InputError: If there are several, and no name tells its updates.
    """
    places = {_place(path) for path in weights}
    if len(places) > 1 and all(_number(_STEP, place.name) < 0 for place in places):
        listed = ", ".join(sorted(map(str, places)))
        raise InputError(f"several models in it ({listed}); fetch it yourself and give one of them")
    return max(weights, key=_age)


def _age(path: PurePosixPath) -> tuple[int, int, bool, str]:
    name = _place(path).name
    return _number(_STEP, name), _number(_EPOCH, name), path.suffix == ".safetensors", name


def _place(path: PurePosixPath) -> PurePosixPath:
    """What is named after a checkpoint: the folder of accelerate's files, or the file itself."""
    return path.parent if path.name in ("model.safetensors", "pytorch_model.bin") else path


def _number(pattern: re.Pattern[str], name: str) -> int:
    match = pattern.search(name)
    return int(match[match.lastindex or 0]) if match else -1
