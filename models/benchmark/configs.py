"""Configurations to measure: those of the recipes, on generated data."""

from collections.abc import Sequence
from pathlib import Path

from config.schema import Config
from models.base.registry import load_config, model_names
from processors.dataset.generated.utterances import N_LJSPEECH
from utils.config import nearest
from utils.errors import InputError

EGS = Path(__file__).parents[2] / "egs"
_N_SMALL = 24  # generated utterances
_STACK = '{"layers": 1, "heads": 2, "head_size": 4, "filter_size": 16}'
# Networks that take a moment, to try the commands.
_SMALL = {
    "fastspeech2": (
        'model.transformer={"encoder_layer": 1, "encoder_hidden": 16, "decoder_layer": 1,'
        ' "decoder_hidden": 16, "conv_filter_size": 16, "conv_kernel_size": [3, 1]}',
        "model.variance_predictor.filter_size=16",
        "model.variance_embedding.n_bins=16",
    ),
    "fastpitch": (
        "model.hidden=16",
        f"model.encoder={_STACK}",
        f"model.decoder={_STACK}",
        *(f"model.{name}_predictor.filter_size=16" for name in ("duration", "pitch", "energy")),
        "train.gradient_accumulation_step=1",
    ),
    "tacotron2": (
        "model.encoder.hidden=16",
        'model.decoder={"prenet_size": 8, "attention_lstm_size": 16, "decoder_lstm_size": 16,'
        ' "attention_size": 8, "location_filters": 4, "location_kernel_size": 5,'
        ' "n_frames_per_step": 3}',
        "model.postnet.channels=16",
    ),
    "hifigan": (
        'model.generator={"resblock": "2", "upsample_rates": [16, 16],'
        ' "upsample_kernel_sizes": [16, 16], "upsample_initial_channel": 8,'
        ' "resblock_kernel_sizes": [3], "resblock_dilation_sizes": [[1]]}',
        'model.discriminator={"periods": [3], "period_channels": [2, 2, 2, 2, 2], "scales": 1,'
        ' "scale_channels": [4, 16, 16, 16, 16, 16, 16]}',
    ),
    "waveglow": ("model.flows=4", "model.channels=16", "model.layers=2"),
    "freevgl": ("model.channels=16", "model.layers=1", "model.iterations=2"),
}


def known_models() -> dict[str, str]:
    """The task of each model that can be trained, by its name."""
    names = {name: task for task in ("tts", "vocoder") for name in model_names(task)}
    return {name: task for name, task in names.items() if _recipe(task, name) is not None}


def check_model(model: str) -> None:
    """Refuses a model without a recipe.

    Args:
        model: Name, such as "fastspeech2".

    Raises:
        InputError: If it is unknown.
    """
    known = known_models()
    if model not in known:
        listed = ", ".join(known)
        raise InputError(f"no model {model!r}{nearest(model, known)} (known: {listed})")


def generated_config(model: str, overrides: Sequence[str] = (), *, small: bool = False) -> Config:
    """Reads the configuration of a model's recipe, for generated data.

    Args:
        model: Name, such as "fastspeech2".
        overrides: `key.path=value`.
        small: Use a tiny network and a few utterances.

    Raises:
        InputError: If the model is unknown, or a value is wrong.
    """
    check_model(model)
    path = _recipe(known_models()[model], model)
    if path is None:
        raise AssertionError(model)
    size = ("preprocess.n_mel=20", *_SMALL.get(model, ())) if small else ()
    n = _N_SMALL if small else N_LJSPEECH
    return load_config(path, [f"train.synthetic_utterances={n}", *size, *overrides])


def _recipe(task: str, model: str) -> Path | None:
    """The configuration of a model's recipe; None if it has none."""
    recipes = (folder for folder in (EGS / task).iterdir() if folder.name.lower() == model)
    return next((path for folder in recipes if (path := folder / "exp_config.json").exists()), None)
