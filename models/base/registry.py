"""Models by name: the name of a model is that of its package or module in models/<task>."""

import pkgutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from config.schema import Config
from models.base.model import Model
from processors.extraction.fingerprint import derived_folder
from utils.config import build, lines_with_origins
from utils.config_tree import ConfigError, Tree, read_tree
from utils.errors import InputError, nearest
from utils.imports import load_definition


@dataclass(frozen=True)
class _ModelKey:
    """The two keys that select the model file."""

    task: Literal["tts", "vocoder"]
    model_type: str


def model_names(task: str) -> list[str]:
    """Returns the names of the models of a task, sorted: the packages and modules there."""
    folder = Path(__file__).parents[1] / task
    names = [module.name for module in pkgutil.iter_modules([str(folder)])]
    return sorted(name for name in names if not name.startswith("_"))


def find_model(task: str, name: str) -> Model[Any]:
    """Imports a model, whose name may have any case, and returns its definition.

    Raises:
        InputError: If there is none of that name (the message lists the known ones), or its file
            does not end with a valid `MODEL`.
    """
    names = model_names(task)
    if name.lower() not in names:
        known = f"{nearest(name, names)} (known: {', '.join(names)})"
        raise ConfigError(f"no model {name!r} in models/{task}{known}")
    return load_definition(f"models.{task}.{name.lower()}", "MODEL", Model)


def model_of(config: Config) -> Model[Any]:
    """Returns the definition of the model of an experiment."""
    return find_model(config.task, config.model_type)


def load_config(path: Path, overrides: Sequence[str] = (), task: str | None = None) -> Config:
    """Reads and checks an experiment's configuration, the model's section included.

    Args:
        path: `exp_config.json`, or the `config.json` of an experiment.
        overrides: `key.path=value`, as given to `--set`.
        task: The task that it must have; None: any.
    """
    tree = read_tree(path, overrides)
    config = config_of(tree)
    if task not in (None, config.task):
        found = f"{tree.origin(('task',))}: task is {config.task}, and this recipe is for {task}"
        raise ConfigError(f"{found}; use a recipe in egs/{config.task}, or another --config")
    return config


def config_lines(path: Path, overrides: Sequence[str] = ()) -> list[str]:
    """Lists every key of an experiment's configuration: `key.path = value  # origin`."""
    tree = read_tree(path, overrides)
    return lines_with_origins(config_of(tree), tree)


def config_of(tree: Tree) -> Config:
    """Checks the values of an experiment's configuration, the model's section included."""
    chosen = build(_ModelKey, tree.only("task", "model_type"))
    try:
        model = find_model(chosen.task, chosen.model_type)
    except InputError as error:
        raise ConfigError(f"{tree.origin(('model_type',))}: model_type: {error}") from error
    sections = {"model": model.config}
    config = build(Config, tree, sections, model.check_config)
    if not config.preprocess.processed_dir:
        folder = derived_folder(config.task, config.preprocess)
        config = replace(config, preprocess=replace(config.preprocess, processed_dir=folder))
    return config
