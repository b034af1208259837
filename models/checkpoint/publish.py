"""Models as folders: experiments on the Hub or exported, checkpoints of other projects imported."""

import re
import shutil
from dataclasses import replace
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any, Literal

import torch
from safetensors.torch import save

from models.base.assets import ASSET_FILES
from models.base.results import SCORES
from models.checkpoint import history, loading
from models.checkpoint.folders import MANIFEST, write_manifest
from models.checkpoint.foreign import fetch, kinds
from models.checkpoint.loading import CONFIG, WEIGHTS, TrainedModel, load_model
from models.checkpoint.tensors import in_8_bits, in_16_bits, not_finite
from modules.layers.normalisation import adapt_weight_norm
from utils.config import to_plain
from utils.errors import InputError
from utils.files import new_folder, read_json, write_json
from utils.hub import Repository, check_target, push
from utils.logging import get_logger

CARD = "README.md"
# A push removes these files of an earlier push unless it has them: they would be loaded, too.
_REPLACED = {WEIGHTS, "discriminator.safetensors", "aligner.safetensors", CONFIG, *ASSET_FILES}
_REPLACED |= {MANIFEST, CARD, history.HISTORY, SCORES}
_CONTIGUOUS = torch.contiguous_format
_LICENCE = re.compile(r"[a-z0-9][a-z0-9.+-]*")
# beginnings of paths of this machine, on POSIX and Windows; "/" alone is a delimiter
_LOCAL = re.compile(r"/.|(~[^/\\]*|\.\.|[A-Za-z]:|\\)[/\\]")


def export_experiment(
    experiment: Path,
    target: Path,
    name: str,
    *,
    licence: str | None,
    with_discriminators: bool = False,
    weights: Literal["fp16", "int8"] | None = None,
) -> None:
    """Writes the files of an experiment to publish: tensors and text, nothing pickled.

    Args:
        experiment: A folder, whose newest whole checkpoint is taken, or one checkpoint in it.
        target: Folder to make, completely or not at all; empty or missing.
        name: `org/name` or the name of a folder, for the card.
        licence: Identifier of the Hub for the licence of the weights; None: unknown.
        weights: How they are stored, with weight normalisation folded; None: the file is copied.
    """
    if licence is not None and not _LICENCE.fullmatch(licence):
        known = "such as cc-by-4.0, mit, apache-2.0 or cc0-1.0"
        raise InputError(f"--license {licence!r}: expected an identifier of the Hub, {known}")
    if experiment.exists() and not loading.is_experiment(experiment):
        remedy = "first import a checkpoint of another project by python -m bins.import_checkpoint"
        raise InputError(f"{experiment}: not an experiment; {remedy}")
    log = get_logger(__name__)
    model = load_model(experiment)  # damaged ones are not published
    with new_folder(target) as folder:
        if weights is None:
            shutil.copyfile(model.weights, folder / WEIGHTS)
        else:
            (folder / WEIGHTS).write_bytes(_packed(model, weights))
        copied = [model.home / name for name in ASSET_FILES]
        if with_discriminators:
            tensors = sorted(model.folder.glob("*.safetensors"))
            networks = [path for path in tensors if path.name not in (WEIGHTS, loading.RAW_WEIGHTS)]
            if not networks:
                raise InputError(f"{model.folder}: no networks for --with_discriminators in it")
            copied += networks
        for path in filter(Path.is_file, copied):
            shutil.copyfile(path, folder / path.name)
        config = without_local_paths(read_json(model.home / CONFIG))
        config.get("inference", {}).pop("ema", None)  # one kind of weights is published
        write_json(folder / CONFIG, config)
        write_manifest(folder, sorted(path.name for path in folder.iterdir()))
        past = history.History.load(model.home)
        published = replace(past.at(model.step), licence=licence or past.licence)
        # scores are of the newest checkpoint, which stages 3 and 4 take by default
        is_newest = past.step in (None, model.step) or model.step is None
        scores = _write_scores(folder, model.home) if is_newest else ()
        card = history.Card(name, model.config, model.assets, published, scores)
        history.write_card(folder, card, notes_from=model.home)
        for path in sorted(folder.iterdir()):
            log.info("%-26s %10.1f kB", path.name, path.stat().st_size / 1e3)
    if card.history.licence == history.UNKNOWN:
        log.warning("no --license: the card says that the licence of the weights is unknown")
    licences = history.licences_of(model.config, past)
    for name in (name for name, text in licences.items() if not text):
        key = f"preprocess.corpus.{name}.licence"
        fault = "unknown licence of the recordings of %s: set %s in %s"
        log.warning(fault, name, key, model.home / CONFIG)


def publish(
    experiment: Path,
    target: Repository,
    *,
    licence: str | None,
    with_discriminators: bool = False,
    dry_run: bool = False,
) -> None:
    """Pushes the files that `export` writes as one commit."""
    check_target(target)
    with TemporaryDirectory() as temporary:
        folder = Path(temporary) / "files"
        export_experiment(
            experiment,
            folder,
            target.name,
            licence=licence,
            with_discriminators=with_discriminators,
        )
        if dry_run:
            get_logger(__name__).info("--dry_run: nothing was sent to %s", target)
        else:
            push(folder, target, replaces=_REPLACED)


def _write_scores(folder: Path, home: Path) -> tuple[str, ...]:
    """Writes the scores of a model to a folder, and returns a line for each; () if it has none."""
    path = next(filter(Path.is_file, (home / SCORES, home / "result" / SCORES)), None)
    if path is None:
        return ()
    report = without_local_paths(read_json(path))
    write_json(folder / SCORES, report)
    try:
        lines = [
            f"{metric} {score['mean']:.4g} {score['unit']}".strip() + f" ({score['n']} utterances)"
            for metric, score in report["scores"].items()
        ]
        return (*lines, f"vocoder {report['vocoder']}")
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        fault = f"{path}: not as stage 4 writes it ({error!r})"
        raise InputError(f"{fault}; run stage 4 again, or remove the file") from error


def without_local_paths(value: Any) -> Any:  # noqa: ANN401  (JSON)
    """Removes `dataset_path` from JSON, and all but the last part of paths of this machine."""
    if isinstance(value, dict):
        return {n: without_local_paths(v) if n != "dataset_path" else {} for n, v in value.items()}
    if isinstance(value, list):
        return [without_local_paths(inner) for inner in value]
    if isinstance(value, str) and _LOCAL.match(value):
        return PurePosixPath(value.replace("\\", "/")).name
    return value


def _packed(model: TrainedModel, weights: Literal["fp16", "int8"]) -> bytes:
    """Returns the weights of the inference network in 16 or 8 bits, weight normalisation folded."""
    tensors = {name: tensor.contiguous() for name, tensor in model.network.state_dict().items()}
    packed = in_8_bits(tensors) if weights == "int8" else in_16_bits(tensors)
    if large := not_finite(packed):
        raise InputError(f"{model.folder}: {large[0]} holds numbers too large for 16 bits")
    return save(packed)


def convert_to_experiment(source: str, target: Path) -> None:
    """Writes a checkpoint of another project as an experiment; logs its used and unused tensors."""
    log = get_logger(__name__)
    with new_folder(target) as folder:
        path = fetch(source, for_training=True)
        checkpoint = loading.foreign_checkpoint(path)
        if checkpoint is None:
            fault = f"{source}: no checkpoint of another project that can be read"
            raise InputError(f"{fault}; these can: {kinds()}")
        config = load_model(path).config  # also checks that the weights fit it
        weights, importer = checkpoint
        imported = importer.read(weights)
        others = imported.training_networks()
        log.info("found: %s: %s", importer.KIND, imported.weights)
        networks = {loading.INFERENCE_NETWORK: imported.tensors, **others.tensors}
        for name, tensors in networks.items():
            current = adapt_weight_norm(tensors, ())  # under the current names
            copies = {n: t.detach().clone(memory_format=_CONTIGUOUS) for n, t in current.items()}
            # not by save_file, which makes files that only their owner can read
            (folder / f"{name}.safetensors").write_bytes(save(copies))
            log.info("used: %d tensors in %s.safetensors", len(tensors), name)
        unused = (*imported.unused, *others.unused)
        for line in unused:
            log.info("not used: %s", line)
        write_json(folder / "config.json", to_plain(config))
        imported.assets.save(folder)
        write_manifest(folder, sorted(path.name for path in folder.iterdir()))
        source, step = imported.source, imported.step
        past = history.History(imported_from=source, not_imported=unused, step=step)
        card = history.Card(target.resolve().name, config, imported.assets, past)
        history.write_card(folder, card)
    log.info("written: %s", target)
