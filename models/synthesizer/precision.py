"""The precision of synthesis where "auto" leaves it to the machine."""

import torch

from config.schema import AcousticChoice, AcousticPrecision, Config, VocoderChoice, VocoderPrecision
from models.base.registry import model_of
from utils.logging import get_logger


def chosen_precision(
    asked: AcousticChoice | VocoderChoice, config: Config, device: str | torch.device
) -> AcousticPrecision | VocoderPrecision:
    """Returns the precision that a model computes in; logs one that "auto" chooses, except fp32.

    Args:
        asked: `inference.acoustic_precision` or `inference.vocoder_precision`; "auto": the model's
            `cpu_precision` on a CPU with instructions for bfloat16, otherwise "fp32".
        config: Of the model.
        device: Where it runs.
    """
    if asked != "auto":
        return asked
    chosen = model_of(config).cpu_precision if has_bfloat16(device) else "fp32"
    if chosen != "fp32":
        key = "acoustic" if config.task == "tts" else "vocoder"
        get_logger(__name__).info(
            "%s computes in %s on this CPU; inference.%s_precision=fp32 chooses fp32",
            config.model_type,
            chosen,
            key,
        )
    return chosen


def has_bfloat16(device: str | torch.device) -> bool:
    """Whether a device is a CPU with instructions for bfloat16."""
    return torch.device(device).type == "cpu" and torch.cpu._is_avx512_bf16_supported()
