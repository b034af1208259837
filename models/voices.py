"""Voices on this machine: the bundled one and those that recipes trained."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple, cast

from utils.errors import InputError, nearest
from utils.files import read_json, user_path
from utils.logging import get_logger

_ROOT = Path(__file__).parents[1]
BUNDLED = "choir"
FOLDERS = (_ROOT / "egs" / "_voices", _ROOT / "ckpts" / "tts")


class InstalledVoice(NamedTuple):
    """An experiment of an acoustic model."""

    name: str  # of its folder
    folder: Path
    licence: str  # of the weights, else of the recordings, or "unknown"
    languages: tuple[str, ...]  # espeak codes
    speakers: tuple[str, ...]
    speaker: str  # of several, where none is asked for; empty: one must be named

    @property
    def megabytes(self) -> float:
        """Size of its folder with all checkpoints."""
        return sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file()) / 1e6


def voices_in(folder: Path) -> list[InstalledVoice]:
    """Returns the voices in a folder that have a checkpoint, by name; warns of damaged ones."""
    voices = []
    for config in sorted(folder.glob("*/config.json")):
        try:
            tree, home = read_json(config), config.parent
            if not isinstance(tree, dict):
                raise InputError(f"{config}: expected an object with keys")
            weights = (*home.glob("model.safetensors"), *home.glob("checkpoints/step-*/"))
            if tree.get("task") != "tts" or not weights:
                continue
            path, inference = home / "speakers.json", tree.get("inference")
            speakers = cast("list[dict[str, Any]]", read_json(path) if path.is_file() else [])
            voice = InstalledVoice(
                home.name,
                home,
                licence_in(home / "history.json"),
                tuple(dict.fromkeys(str(speaker["language"]) for speaker in speakers)),
                tuple(str(speaker["name"]) for speaker in speakers),
                str(inference.get("speaker", "")) if isinstance(inference, dict) else "",
            )
            voices += [voice] if voice.speakers else []
        except InputError as error:
            get_logger(__name__).warning("voice %s left out: %s", config.parent.name, error)
    return voices


def installed_voices() -> list[InstalledVoice]:
    """Returns the bundled voice, then those that recipes trained."""
    return [voice for folder in FOLDERS for voice in voices_in(folder)]


def find_voice(name: str, installed: Iterable[InstalledVoice] | None = None) -> str | Path:
    """Finds a voice for `Synthesizer`."""
    if "/" in name:
        return name
    voices = installed_voices() if installed is None else installed
    folders = {voice.name: voice.folder for voice in voices}
    if name in folders:
        return folders[name]
    if not os.path.exists(user_path(name)):  # noqa: PTH110  (for names too long)
        raise InputError(
            f"no voice {name!r}{nearest(name, folders)} (installed: {', '.join(folders)}; or give"
            " the folder of an experiment, or org/name on the Hub)"
        )
    return name


def licence_in(history: Path) -> str:
    """Returns the licence of the weights; if it is unknown, those of the recordings."""
    match read_json(history) if history.is_file() else None:
        case {"licence": "unknown", "recordings_licences": [_, *_] as licences}:
            return f"{', '.join(map(str, licences))}, of the recordings"
        case {"licence": str(licence)}:
            return licence
    return "unknown"
