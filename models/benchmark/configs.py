"""Configurations to measure: those of the recipes, on generated data."""

from collections.abc import Sequence
from pathlib import Path

from config.schema import Config
from models.base.registry import load_config, model_names
from processors.dataset.generated import N_LJSPEECH
from utils.errors import InputError, nearest

ROOT = Path(__file__).parents[2]


def known_models() -> dict[str, str]:
    """The task of each model that has a recipe, by its name."""
    names = {name: task for task in ("tts", "vocoder") for name in model_names(task)}
    return {name: task for name, task in names.items() if _recipes(name)}


def generated_config(model: str, overrides: Sequence[str] = (), *, small: bool = False) -> Config:
    """Reads the configuration of a model's recipe, for generated data.

    Args:
        small: Read `config/tiny/<model>.json` where there is one: a tiny network, few utterances.

    Raises:
        InputError: If the model is unknown, or a value is wrong.
    """
    names = known_models()
    if model not in names:
        listed = ", ".join(names)
        raise InputError(f"no model {model!r}{nearest(model, names)} (known: {listed})")
    tiny = ROOT / "config" / "tiny" / f"{model}.json"
    if small and tiny.exists():
        return load_config(tiny, overrides)
    return load_config(_recipes(model)[0], [f"train.synthetic_utterances={N_LJSPEECH}", *overrides])


def _recipes(model: str) -> list[Path]:
    paths = (ROOT / "egs").glob("*/*/exp_config.json")
    return [path for path in paths if path.parent.name.lower() == model]
