"""The vocoder that belongs to an acoustic model."""

import dataclasses
from pathlib import Path
from typing import Protocol, cast

from torch import Tensor

from models.checkpoint import load_model
from models.vocoder.griffin_lim import GriffinLim
from modules.mel import MelConfig
from utils.errors import InputError
from utils.logging import get_logger


class Vocoder(Protocol):
    """What turns a mel into sound."""

    def infer(self, mel: Tensor, mel_lengths: Tensor | None = None) -> Tensor:
        """Mel (B, M, T) to wav (B, T * hop)."""


def load_vocoder(
    reference: str | Path | None, mel: MelConfig, iterations: int, device: str
) -> Vocoder:
    """The vocoder of that name, or Griffin-Lim if there is none; says so in the latter case.

    Args:
        reference: Experiment, checkpoint or name on the Hub; None: Griffin-Lim.
        mel: What the acoustic model makes.
        iterations: Of Griffin-Lim.
        device: Where the vocoder runs.

    Raises:
        InputError: If it cannot be loaded, is no vocoder, or was made for another mel.
    """
    log = get_logger(__name__)
    if reference is None:
        log.info("no vocoder given: Griffin-Lim, %d iterations", iterations)
        return GriffinLim(mel, iterations).to(device)
    model = load_model(reference, device)
    if model.config.task != "vocoder":
        raise InputError(f"{reference} is an acoustic model; expected a vocoder")
    check_mel_contract(mel, model.mel, str(reference))
    return cast("Vocoder", model.network)


def check_mel_contract(acoustic: MelConfig, vocoder: MelConfig, name: str) -> None:
    """Compares the mel that a model makes with the one that a vocoder was trained on.

    Half a hop of shift (`padding`) is heard as next to nothing: it is allowed, and said.

    Raises:
        InputError: If anything else differs; the message gives both values of each.
    """
    ours, theirs = dataclasses.asdict(acoustic), dataclasses.asdict(vocoder)
    different = {key for key in ours if ours[key] != theirs[key]}
    if different == {"padding"}:
        get_logger(__name__).info(
            "mel padding: the acoustic model has %s, the vocoder %s; half a hop of shift, allowed",
            acoustic.padding,
            vocoder.padding,
        )
    elif different:
        listed = ", ".join(f"{key} {ours[key]} and {theirs[key]}" for key in sorted(different))
        raise InputError(
            f"the vocoder {name} was made for another mel than the acoustic model: {listed} "
            "(acoustic model and vocoder); use one trained on the same mel, or none (Griffin-Lim)"
        )
