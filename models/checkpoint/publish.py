"""Publishes an experiment: its files on the Hugging Face Hub, or in a folder of its own."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, NamedTuple

from safetensors.torch import save

from models.base.assets import ASSET_FILES
from models.base.result_files import SCORES
from models.checkpoint.folders import MANIFEST
from models.checkpoint.history import History
from models.checkpoint.loading import (
    CONFIG,
    RAW_WEIGHTS,
    WEIGHTS,
    LoadedModel,
    foreign_checkpoint,
    load_model,
)
from models.checkpoint.model_card import UNKNOWN, Card, card_text, licences_of, notes_in
from utils.errors import InputError
from utils.files import new_folder, read_json, sha256_of
from utils.hub_push import Target, push
from utils.logging import get_logger

CARD = "README.md"
_NETWORKS = (WEIGHTS, "discriminator.safetensors", "aligner.safetensors")
# A push removes these files of an earlier push unless it has them: they would be loaded, too.
_REPLACED = {*_NETWORKS, CONFIG, *ASSET_FILES, MANIFEST, CARD, SCORES}
_LICENCE = re.compile(r"[a-z0-9][a-z0-9.+-]*")


class Package(NamedTuple):
    """The files that are published."""

    files: Mapping[str, Path | bytes]  # by name: where the file is, or its content
    warnings: tuple[str, ...]  # for the user to read first

    def size_of(self, name: str) -> int:
        """Size of a file in bytes."""
        source = self.files[name]
        return len(source) if isinstance(source, bytes) else source.stat().st_size


def collect(
    experiment: Path,
    name: str,
    *,
    licence: str | None,
    with_discriminators: bool = False,
    half: bool = False,
) -> Package:
    """Collects the files of an experiment to publish: tensors and text, nothing pickled.

    Args:
        experiment: Its folder (the newest whole checkpoint is taken), or one checkpoint in it.
        name: `org/name` or the name of a folder, for the card.
        licence: Of the weights, an identifier of the Hub; None: unknown.
        with_discriminators: Whether to include the networks that only training needs.
        half: Whether to store the weights in 16 bits, for inference only.

    Raises:
        InputError: If it cannot be loaded, is of another project, or the licence is malformed.
    """
    if licence is not None and not _LICENCE.fullmatch(licence):
        raise InputError(
            f"--license {licence!r}: expected an identifier of the Hub, such as cc-by-4.0, mit, "
            "apache-2.0 or cc0-1.0"
        )
    model = _load(experiment)
    files: dict[str, Path | bytes] = {WEIGHTS: model.weights}
    if half:
        files[WEIGHTS] = _half(model)
    if with_discriminators:
        files |= _other_networks(model.folder)
    files[CONFIG] = _json(_published_config(model.home / CONFIG))
    files |= {name: model.home / name for name in ASSET_FILES if (model.home / name).is_file()}
    files[MANIFEST] = _json({name: _digest(source) for name, source in files.items()})
    history = History.load(model.home)
    card = Card(name, model.config, model.assets, history.at(model.step), licence or UNKNOWN)
    # scores are of the newest checkpoint, which stages 3 and 4 take by default
    is_newest = history.step in (None, model.step) or model.step is None
    places = (model.home / SCORES, model.home / "result" / SCORES)
    if is_newest and (path := next(filter(Path.is_file, places), None)) is not None:
        report = without_local_paths(read_json(path))
        files[SCORES] = _json(report)
        card = replace(card, scores=_listed(report, path))
    files[CARD] = card_text(card, notes_in(model.home / CARD)).encode()
    return Package(files, _warnings(model, licence))


def _load(experiment: Path) -> LoadedModel:
    """A model of Arion, fully loaded: damaged ones are not published."""
    if experiment.exists() and foreign_checkpoint(experiment) is not None:
        raise InputError(
            f"{experiment}: a checkpoint of another project; first import it by "
            "python -m bins.import_checkpoint"
        )
    return load_model(experiment)


def publish(package: Package, target: Target, *, dry_run: bool) -> None:
    """Lists the files of a package, and pushes them as one commit.

    Args:
        package: The files.
        target: Repository and branch.
        dry_run: Whether to list the files only.

    Raises:
        InputError: If the Hub cannot be reached or refuses.
    """
    log = get_logger(__name__)
    for name in package.files:
        log.info("%-26s %10.1f kB", name, package.size_of(name) / 1e3)
    for warning in package.warnings:
        log.warning("%s", warning)
    if dry_run:
        log.info("--dry_run: nothing was sent to %s", target)
    else:
        push(package.files, target, replaces=_REPLACED)


def write(package: Package, target: Path) -> None:
    """Writes a package into a folder, completely or not at all.

    Args:
        package: The files.
        target: Folder to make; empty or missing.

    Raises:
        InputError: If `target` is not empty, or cannot be written.
    """
    with new_folder(target) as folder:
        for name, source in package.files.items():
            content = source if isinstance(source, bytes) else source.read_bytes()
            (folder / name).write_bytes(content)
    for warning in package.warnings:
        get_logger(__name__).warning("%s", warning)
    size = sum(package.size_of(name) for name in package.files)
    get_logger(__name__).info("written: %s, %.2f MB", target, size / 1e6)


def without_local_paths(value: Any) -> Any:  # noqa: ANN401  (JSON)
    """Removes paths of this machine from JSON.

    Paths that are absolute, or begin with `~` or `..`, keep their last part only. The folders of
    the corpora, `dataset_path`, are removed.
    """
    if isinstance(value, dict):
        return {
            name: {} if name == "dataset_path" else without_local_paths(inner)
            for name, inner in value.items()
        }
    if isinstance(value, list):
        return [without_local_paths(inner) for inner in value]
    if isinstance(value, str) and _is_of_this_machine(value):
        return PurePosixPath(value.replace("\\", "/")).name
    return value


def _published_config(path: Path) -> Any:  # noqa: ANN401  (JSON)
    """A config without local paths, and without the choice of weights: one kind is published."""
    config = without_local_paths(read_json(path))
    config.get("inference", {}).pop("ema", None)
    return config


def _is_of_this_machine(text: str) -> bool:
    if len(text) == 1:  # a delimiter
        return False
    for path in (PurePosixPath(text), PureWindowsPath(text)):
        first, *more = path.parts or ("",)
        if path.is_absolute() or (more and (first == ".." or first.startswith("~"))):
            return True
    return False


def _half(model: LoadedModel) -> bytes:
    """The weights of the inference network in 16 bits, weight normalisation folded."""
    tensors = {name: tensor.contiguous() for name, tensor in model.network.state_dict().items()}
    short = {n: t.half() if t.is_floating_point() else t for n, t in tensors.items()}
    if large := [n for n, t in short.items() if not bool(t.isfinite().all())]:
        raise InputError(f"{model.folder}: {large[0]} holds numbers too large for 16 bits")
    return save(short)


def _other_networks(folder: Path) -> dict[str, Path | bytes]:
    files = sorted(folder.glob("*.safetensors"))
    networks = [path for path in files if path.name not in (WEIGHTS, RAW_WEIGHTS)]
    if not networks:
        raise InputError(f"{folder}: no networks for --with_discriminators in it")
    return {path.name: path for path in networks}


def _digest(source: Path | bytes) -> str:
    return hashlib.sha256(source).hexdigest() if isinstance(source, bytes) else sha256_of(source)


def _listed(report: Any, path: Path) -> tuple[str, ...]:  # noqa: ANN401  (JSON)
    """The scores of stage 4, one line each."""
    try:
        lines = tuple(_line(name, score) for name, score in report["scores"].items())
        return (*lines, f"vocoder {report['vocoder']}")
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(
            f"{path}: not scores of stage 4; run it again, or remove the file"
        ) from error


def _line(name: str, score: Mapping[str, Any]) -> str:
    unit = f" {score['unit']}" if score["unit"] else ""
    known = score["low"] is not None
    interval = f"{score['low']:.4g} to {score['high']:.4g}, " if known else ""
    return f"{name} {score['mean']:.4g}{unit} ({interval}{score['n']} utterances)"


def _warnings(model: LoadedModel, licence: str | None) -> tuple[str, ...]:
    found = []
    if licence is None:
        found.append("no --license: the card says that the licence of the weights is unknown")
    if unknown := [name for name, known in licences_of(model.config).items() if not known]:
        found.append(
            f"the licence of the recordings of {', '.join(unknown)} is unknown, and the card says "
            f"so; if you know it, set preprocess.corpus.{unknown[0]}.licence in "
            f"{model.home / 'config.json'}"
        )
    return tuple(found)


def _json(value: object) -> bytes:
    return (json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()
