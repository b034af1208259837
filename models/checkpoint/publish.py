"""An experiment on the Hugging Face Hub: what of it goes there, and how."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, NamedTuple, cast

from safetensors.torch import save

from models.base.assets import AUDIO, LEXICON, SPEAKERS, VOCABULARY
from models.base.result_files import SCORES
from models.checkpoint.history import History
from models.checkpoint.loading import WEIGHTS, LoadedModel, importer_of, load_model
from models.checkpoint.model_card import UNKNOWN, Card, card_text, licences_of, notes_in
from utils.errors import InputError
from utils.files import new_folder, read_json
from utils.hub_push import Target, push
from utils.logging import get_logger

CARD = "README.md"
_ASSETS = (AUDIO, VOCABULARY, "stats.json", SPEAKERS, LEXICON)
# What an earlier push may have left and this one does without: it would be loaded with the rest.
_OURS = {
    WEIGHTS,
    "discriminator.safetensors",
    "aligner.safetensors",
    "config.json",
    *_ASSETS,
    CARD,
    SCORES,
}
_LICENCE = re.compile(r"[a-z0-9][a-z0-9.+-]*")


class Package(NamedTuple):
    """What goes to the Hub.

    Attributes:
        files: By name: where the file is, or its content.
        warnings: What one should know before.
    """

    files: Mapping[str, Path | bytes]
    warnings: tuple[str, ...]

    def size_of(self, name: str) -> int:
        """Bytes."""
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
    """Gathers what is published of an experiment: tensors and text, nothing pickled.

    Args:
        experiment: Its folder (the newest whole checkpoint is taken), or one checkpoint in it.
        name: `org/name` or that of a folder, for the card.
        licence: Of the weights, an identifier of the Hub's; None: unknown.
        with_discriminators: Whether networks that only training needs go, too.
        half: Whether the weights are stored in 16 bits, for speaking only.

    Raises:
        InputError: If it does not load, is no experiment of ours, or the licence is malformed.
    """
    if licence is not None and not _LICENCE.fullmatch(licence):
        raise InputError(
            f"--license {licence!r}: expected an identifier of the Hub's, such as cc-by-4.0, mit, "
            "apache-2.0 or cc0-1.0"
        )
    model = _load(experiment)
    files: dict[str, Path | bytes] = {WEIGHTS: model.folder / WEIGHTS}
    if half:
        files[WEIGHTS] = _half(model)
    if with_discriminators:
        files |= _other_networks(model.folder)
    files["config.json"] = _json(without_local_paths(read_json(model.home / "config.json")))
    files |= {name: model.home / name for name in _ASSETS if (model.home / name).is_file()}
    card = Card(
        name,
        model.config,
        model.assets,
        History.load(model.home).at(model.step),
        licence or UNKNOWN,
    )
    if (scores := _scores_of(model.home)) is not None and _are_newest(model):
        files[SCORES] = _json(without_local_paths(read_json(scores)))
        card = replace(card, scores=_listed(scores))
    files[CARD] = card_text(card, notes_in(model.home / CARD)).encode()
    return Package(files, _warnings(model, licence))


def _load(experiment: Path) -> LoadedModel:
    """One of our models: what cannot be loaded is not published."""
    if experiment.exists() and importer_of(experiment) is not None:
        raise InputError(
            f"{experiment}: a checkpoint of another project; bring it into our form first, by "
            "python -m bins.import_checkpoint"
        )
    return load_model(experiment)


def publish(package: Package, target: Target, *, dry_run: bool) -> None:
    """Says what goes up, and sends it as one commit.

    Args:
        package: What to send.
        target: Where to.
        dry_run: Only say it.

    Raises:
        InputError: If the Hub cannot be reached or does not take it.
    """
    log = get_logger(__name__)
    for name in package.files:
        log.info("%-26s %10.1f kB", name, package.size_of(name) / 1e3)
    for warning in package.warnings:
        log.warning("%s", warning)
    if dry_run:
        log.info("--dry_run: nothing was sent to %s", target)
    else:
        push(package.files, target, replaces=_OURS)


def write(package: Package, target: Path) -> None:
    """Writes a package as a folder, all of it or nothing.

    Args:
        package: What to write.
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
    """JSON without places of this machine.

    Of paths that are absolute, or lead to a home or out of the current folder, the last part stays.
    The folders of the corpora, `dataset_path`, are left out altogether.
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


def _is_of_this_machine(text: str) -> bool:
    if len(text) == 1:  # a delimiter
        return False
    for path in (PurePosixPath(text), PureWindowsPath(text)):
        first, *more = path.parts or ("",)
        if path.is_absolute() or (more and (first == ".." or first.startswith("~"))):
            return True
    return False


def _half(model: LoadedModel) -> bytes:
    """The weights of the network that speaks, weight normalisation folded, in 16 bits.

    Raises:
        InputError: If a number is too large for 16 bits.
    """
    tensors = {name: tensor.contiguous() for name, tensor in model.network.state_dict().items()}
    short = {n: t.half() if t.is_floating_point() else t for n, t in tensors.items()}
    if large := [n for n, t in short.items() if not bool(t.isfinite().all())]:
        raise InputError(f"{model.folder}: {large[0]} holds numbers too large for 16 bits")
    return save(short)


def _other_networks(folder: Path) -> dict[str, Path | bytes]:
    networks = sorted(path for path in folder.glob("*.safetensors") if path.name != WEIGHTS)
    if not networks:
        raise InputError(f"{folder}: there is nothing for --with_discriminators in it")
    return {path.name: path for path in networks}


def _scores_of(home: Path) -> Path | None:
    """What stage 4 wrote; None if it did not run."""
    found = (path for path in (home / SCORES, home / "result" / SCORES) if path.is_file())
    return next(found, None)


def _are_newest(model: LoadedModel) -> bool:
    """Whether these are the weights that stages 3 and 4 take without being told others."""
    return History.load(model.home).step in (None, model.step) or model.step is None


def _listed(path: Path) -> tuple[str, ...]:
    """The scores that stage 4 wrote, one line each.

    Raises:
        InputError: If it wrote something else.
    """
    report = cast("dict[str, Any]", without_local_paths(read_json(path)))
    try:
        lines = tuple(_line(name, score) for name, score in report["scores"].items())
        return (*lines, f"vocoder {report['vocoder']}")
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{path}: not what stage 4 writes; run it again, or remove it") from error


def _line(name: str, score: Mapping[str, Any]) -> str:
    unit = f" {score['unit']}" if score["unit"] else ""
    known = score["low"] is not None
    interval = f"{score['low']:.4g} to {score['high']:.4g}, " if known else ""
    return f"{name} {score['mean']:.4g}{unit} ({interval}{score['n']} utterances)"


def _warnings(model: LoadedModel, licence: str | None) -> tuple[str, ...]:
    unknown = [name for name, known in licences_of(model.config).items() if not known]
    found = []
    if licence is None:
        found.append("no --license: the card says that the licence of the weights is unknown")
    if unknown:
        found.append(
            f"the licence of the recordings of {', '.join(unknown)} is unknown, and the card says "
            f"so; if you know it, set preprocess.corpus.{unknown[0]}.licence in "
            f"{model.home / 'config.json'}"
        )
    return tuple(found)


def _json(value: object) -> bytes:
    return (json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()
