"""Overrides of the configuration that a model came with."""

from collections.abc import Sequence
from dataclasses import replace

from config.schema import Config
from models.base.assets import LEXICON
from models.base.registry import config_of
from models.checkpoint.loading import LoadedModel
from utils.config_tree import overridden
from utils.errors import InputError


def with_overrides(model: LoadedModel, overrides: Sequence[str]) -> Config:
    """Applies overrides to the configuration that a model came with.

    The lexicon is the one kept with the model, unless an override names another.

    Raises:
        InputError: If an override is wrong.
    """
    config = config_of(overridden(model.tree, overrides)) if overrides else model.config
    check_overrides(model, config)
    text = config.preprocess.text
    if (
        model.assets.lexicon is None
        or text.lexicon_path != model.config.preprocess.text.lexicon_path
    ):
        return config
    text = replace(text, lexicon_path=str(model.home / LEXICON))
    return replace(config, preprocess=replace(config.preprocess, text=text))


def check_overrides(model: LoadedModel, config: Config) -> None:
    """Makes sure that overrides leave alone what the weights were trained with.

    Raises:
        InputError: If they change its network or its mel.
    """
    if config.model != model.config.model:
        raise InputError(
            f"--set changes the model section, but {model.folder} is trained; leave that out"
        )
    if different := model.config.preprocess.mel.differences(config.preprocess.mel):
        raise InputError(
            f"--set changes the mel that {model.folder} was trained on: {', '.join(different)};"
            " leave that out"
        )
