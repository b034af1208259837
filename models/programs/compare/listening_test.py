"""Makes a blind listening test: a page with levelled copies, and its key outside of the page."""

import hashlib
import json
import math
import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Literal

import numpy as np
import soundfile

from preprocessors.audio_folder import SUFFIXES
from processors.audio.loudness import loudness
from processors.audio.streams import write_audio
from utils.config import build_complete
from utils.errors import InputError, listed
from utils.files import read_json, read_text, write_json, write_text
from utils.logging import get_logger

KEY = "key.json"
ANSWERS = {"preference": "012", "opinion": "12345"}  # 0: no preference
_PAGE = Path(__file__).with_name("page.html")
_LOUDNESS_LUFS = -23.0  # EBU R128; lower if a clip would exceed the peak
_PEAK_DB = -1.0  # of samples, re full scale


@dataclass(frozen=True)
class Key:
    """What the page does not tell."""

    id: str  # of the test, in all results
    kind: Literal["preference", "opinion"]
    systems: tuple[str, ...]
    # from number 1 on: name of the clip, then the systems in the order of the page, two or one
    trials: tuple[tuple[str, ...], ...]


def make_test(
    folders: Sequence[Path],
    out: Path,
    kind: Literal["preference", "opinion"],
    n_clips: int | None = None,
    seed: int = 0,
) -> Key:
    """Writes `out/page`, for listeners, and `out/key.json`. Equal inputs give equal files.

    Args:
        folders: Recordings or speech of a system each; clips with the same name are compared.
        out: New or empty.
        kind: "preference" between every two systems, or "opinion" of each alone.
        n_clips: Clips drawn at random; None: all.
        seed: Seed that draws the clips and orders the trials and the systems in each.

    Raises:
        InputError: If the folders share no name, or a clip is silent, not audio, or too short.
    """
    if out.exists() and any(out.iterdir()):
        raise InputError(f"{out} is not empty; choose a new folder")
    clips = {str(folder): _clips(folder) for folder in folders}
    if len(clips) < len(folders):
        raise InputError("two of the folders are the same; give different ones")
    names = sorted(set.intersection(*(set(files) for files in clips.values())))
    if (n := n_clips or len(names)) > len(names) or not names:
        raise InputError(
            f"{', '.join(clips)} have {len(names)} clips of the same name; expected at least"
            f" {n or 1}: names without suffix must be the same"
        )
    if others := sorted(set().union(*clips.values()) - set(names)):
        get_logger(__name__).warning("not in all folders, left out: %s", listed(others))
    trials = _trials(tuple(clips), names, kind, n, random.Random(seed))
    heard = {(system, name): clips[system][name] for name, *row in trials for system in row}
    gains = _gains(heard)
    for number, (name, *compared) in enumerate(trials, 1):
        for side, system in enumerate(compared, 1):
            wav, rate = _read(heard[system, name])
            path = out / "page" / f"{number:04}_{side}.wav"
            write_audio(path, [gains[system, name] * wav], rate)
    digest = hashlib.sha256(json.dumps((kind, [*clips], trials)).encode()).hexdigest()[:12]
    key = Key(digest, kind, tuple(clips), tuple(trials))
    test = json.dumps({"id": digest, "kind": kind, "n_trials": len(trials)})
    write_text(out / "page" / "index.html", read_text(_PAGE).replace("{{test}}", test))
    write_json(out / KEY, asdict(key))
    return key


def read_key(path: Path) -> Key:
    """Reads the key of a test."""
    return build_complete(Key, read_json(path), path)


def _clips(folder: Path) -> dict[str, Path]:
    """Lists the audio files of a folder by name without suffix."""
    clips: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() in SUFFIXES and not path.name.startswith("."):
            if other := clips.get(path.stem):
                raise InputError(f"{other} and {path} have the same name; remove one of them")
            clips[path.stem] = path
    return clips


def _trials(
    systems: Sequence[str], names: Sequence[str], kind: str, n_clips: int, rng: random.Random
) -> list[tuple[str, ...]]:
    """Draws clips and their order; each system of a pair comes first in half of its trials."""
    drawn = rng.sample(names, n_clips)
    trials: list[tuple[str, ...]] = []
    for compared in combinations(systems, 2 if kind == "preference" else 1):
        orders = [compared[:: (-1) ** n] for n in range(n_clips)]
        rng.shuffle(orders)
        trials += [(name, *order) for name, order in zip(drawn, orders, strict=True)]
    rng.shuffle(trials)
    return trials


def _read(path: Path) -> tuple[np.ndarray, int]:
    """Reads a clip (S,), the mean of its channels, and its rate."""
    try:
        samples, rate = soundfile.read(path, always_2d=True)
    except soundfile.LibsndfileError as error:
        raise InputError(f"{path}: not readable as audio ({error.error_string})") from error
    return samples.mean(axis=1), rate


def _gains(clips: dict[tuple[str, str], Path]) -> dict[tuple[str, str], float]:
    """Computes the factors that give all clips one loudness, with no peak above -1 dB."""
    levels, target = {}, _LOUDNESS_LUFS
    for key, path in clips.items():
        wav, rate = _read(path)
        levels[key], peak = loudness([wav], rate)
        if not math.isfinite(levels[key]):
            raise InputError(f"{path} is silent or shorter than 0.4 s; remove it")
        target = min(target, levels[key] + _PEAK_DB - 20 * math.log10(peak))
    return {key: 10 ** ((target - level) / 20) for key, level in levels.items()}
