"""The configuration of a model in synthesis, and the fingerprint of what it synthesises.

By the fingerprint, stage 3 skips files of the same model and settings.
"""

import functools
import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import torch

from config.schema import Config
from models.base.assets import LEXICON
from models.base.devices import has_bfloat16
from models.base.registry import config_of
from models.checkpoint.loading import TrainedModel
from models.checkpoint.tensors import weights_digest
from utils.config import to_plain
from utils.config_tree import overridden
from utils.errors import InputError
from utils.files import sha256_of, source_digest, user_path

_ROOT = Path(__file__).parents[2]
# Folders whose code and data change the sound.
_SOURCES = (
    "models/base",
    "models/synthesizer",
    "models/tts",
    "models/vocoder",
    "modules",
    "processors/audio",
    "processors/text",
)


def fingerprint(*facts: object) -> str:
    """Computes a digest of values that JSON can hold."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:32]


def model_facts(model: TrainedModel, config: Config, device: str) -> list[object]:
    """Lists what a model's output depends on, except its input, a speaker included.

    The type of the device counts: random numbers and rounding differ between CPU and GPU, and with
    "auto" precision between CPUs.
    """
    preprocess, lexicon = config.preprocess, user_path(config.preprocess.text.lexicon_path)
    content = sha256_of(lexicon) if lexicon.is_file() else ""
    text = replace(preprocess.text, lexicon_path=content)  # the experiment may be moved
    sections = (config.model, replace(preprocess, text=text), replace(config.inference, speaker=""))
    stats = None if model.assets.stats is None else model.assets.stats.to_plain()
    return [
        weights_digest(model.network),
        *(to_plain(section) for section in sections),
        [asdict(model.mel), model.speakers, stats],
        [_code_digest(), torch.__version__, device, has_bfloat16(device)],
    ]


def source_files() -> list[Path]:
    """Returns the code and the lexicons that change the sound."""
    files = (file for folder in _SOURCES for file in (_ROOT / folder).rglob("*.*"))
    return [file for file in files if file.suffix in (".py", ".txt", ".npz")]


@functools.cache
def _code_digest() -> str:
    return source_digest(_ROOT, source_files())


def with_overrides(model: TrainedModel, overrides: Sequence[str]) -> Config:
    """Applies overrides; the lexicon is the one kept with the model, unless they name another."""
    config = config_of(overridden(model.tree, overrides)) if overrides else model.config
    check_overrides(model, config)
    text = config.preprocess.text
    names_another = text.lexicon_path != model.config.preprocess.text.lexicon_path
    if model.assets.lexicon is None or names_another:
        return config
    text = replace(text, lexicon_path=str(model.home / LEXICON))
    return replace(config, preprocess=replace(config.preprocess, text=text))


def check_overrides(model: TrainedModel, config: Config) -> None:
    """Makes sure that overrides leave alone what the weights were trained with."""
    if config.model != model.config.model:
        raise InputError(
            f"--set changes the model section, but {model.folder} is trained; leave that out"
        )
    if different := model.config.preprocess.mel.differences(config.preprocess.mel):
        raise InputError(
            f"--set changes the mel that {model.folder} was trained on: {', '.join(different)};"
            " leave that out"
        )
