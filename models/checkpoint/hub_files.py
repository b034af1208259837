"""Selects the files of a model in a repository on the Hugging Face Hub.

Repositories also hold older checkpoints, states of optimizers, logs and audio.
"""

import re
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from models.base.assets import AUDIO
from models.checkpoint.foreign import RESULTS, FileNames, importers, is_weights, newest
from utils.errors import InputError, listed
from utils.hub import resolve

# An experiment of Arion: published in its root, or as training left it.
_OWN_WEIGHTS = re.compile(r"(?P<folder>(checkpoints/step-\d{8,}/)?)model\.safetensors")
_SETTINGS = re.compile(r".+\.(json5?|ya?ml|txt|npy)|checkpoint|symbols\.dict|utt2spk")


def fetch(reference: str | Path, *, for_training: bool = False) -> Path:
    """Returns the local path of a model; downloads files on the Hub to its cache.

    Args:
        reference: A local path, or `org/name` or `org/name@revision` on the Hub.
        for_training: Whether to fetch the networks that only training needs; discriminators are
            large.

    Returns:
        The path of an experiment, or of the weights of another project.
    """
    selection = Selection([])

    def choose(names: Sequence[str]) -> list[str]:
        nonlocal selection
        selection = needed_files(names, for_training=for_training)
        return selection.files

    return resolve(reference, choose) / selection.weights


class Selection(NamedTuple):
    """The files of a repository that a model needs."""

    files: list[str]  # sorted
    weights: str = ""  # those of another project; empty: it is an experiment


def needed_files(names: Sequence[str], *, for_training: bool = False) -> Selection:
    """Selects the files of a repository that a model needs: newest checkpoint and settings."""
    if chosen := _own_files(names, for_training=for_training):
        return Selection(sorted(chosen))
    for importer in importers():
        if selection := _foreign_files(importer.FILES, names, for_training=for_training):
            return selection
    raise InputError(
        "there is no model in it: neither config.json, audio.json and model.safetensors, nor a "
        "checkpoint of a known project with its settings; it holds "
        f"{listed(sorted(names)) or 'nothing'}"
    )


def _own_files(names: Sequence[str], *, for_training: bool) -> set[str]:
    """The files of an experiment of Arion, without pickled ones; empty if it is none."""
    folders = [match["folder"] for name in names if (match := _OWN_WEIGHTS.fullmatch(name))]
    if not folders or not {"config.json", AUDIO} <= set(names):
        return set()
    folder = "" if "" in folders else max(folders, key=lambda name: (len(name), name))
    weights = "[^/]+" if for_training else "model"
    needed = re.compile(rf"[^/]+\.(json|txt)|{folder}([^/]+\.json|{weights}\.safetensors)")
    return {name for name in names if needed.fullmatch(name)}


def _foreign_files(
    kind: FileNames, names: Sequence[str], *, for_training: bool
) -> Selection | None:
    """The files of a checkpoint of another project; None if there is none of this kind."""
    paths = [path for path in map(PurePosixPath, names) if not RESULTS & {*path.parts[:-1]}]
    if not any(kind.settings.fullmatch(path.name) for path in paths):
        return None
    weights = newest(paths, kind)
    if weights is None:
        return None
    older = {path.parent for path in paths if is_weights(path, kind)} - set(weights.parents)
    chosen = {weights}
    chosen |= {p for p in paths if _SETTINGS.fullmatch(p.name) and p.parent not in older}
    if for_training:
        pattern = kind.discriminators.replace("{number}", weights.name.rpartition("_")[2])
        others = [path for path in paths if path.parent == weights.parent]
        chosen |= {path for path in others if re.fullmatch(pattern, path.name)}
    return Selection(sorted(map(str, chosen)), str(weights))
