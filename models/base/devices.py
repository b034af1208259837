"""The device of networks, its compiler, and the precision that "auto" leaves to the machine."""

import os
import shutil
import sys
from typing import Literal

import torch
from torch.utils._triton import has_triton

from config.schema import AcousticChoice, AcousticPrecision, Config, VocoderChoice, VocoderPrecision
from models.base.registry import model_of
from utils.errors import InputError
from utils.logging import get_logger


def resolved_device(name: str | torch.device = "auto") -> str:
    """Returns the name of a device.

    Args:
        name: PyTorch's name; "auto": the GPU if there is one, otherwise the CPU.

    Raises:
        InputError: If PyTorch does not know it, or it is a GPU that this machine lacks.
    """
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, TypeError, AssertionError) as error:
        known = "'auto', 'cpu', 'cuda' or, of several GPUs, 'cuda:1'"
        reason = str(error).splitlines()[0]
        raise InputError(f"device {name!r}: {reason}; expected {known}") from error
    return str(device)


def require_compiler(key: str, device: torch.device) -> None:
    """Refuses to compile where `torch.compile` lacks a compiler: C++ on a CPU, Triton on a GPU."""
    cxx = os.environ.get("CXX", "clang++" if sys.platform == "darwin" else "g++")
    if device.type == "cpu" and shutil.which(cxx) is None:
        raise InputError(f"{key}: no compiler {cxx}; install one, name it by CXX, or set off")
    if device.type == "cuda" and not has_triton():
        raise InputError(f"{key}: no Triton for this GPU; install it, or set off")


def chosen_precision(
    asked: AcousticChoice | VocoderChoice, config: Config, device: str | torch.device
) -> AcousticPrecision | VocoderPrecision:
    """Returns the precision that a model computes in; logs one that "auto" chooses, except fp32.

    "auto" is the model's `cpu_precision` on a CPU with instructions for bfloat16, otherwise "fp32".
    """
    if asked != "auto":
        return asked
    chosen = model_of(config).cpu_precision if has_bfloat16(device) else "fp32"
    if chosen != "fp32":
        message = "%s computes in %s on this CPU; inference.%s_precision=fp32 chooses fp32"
        key = "acoustic" if config.task == "tts" else "vocoder"
        get_logger(__name__).info(message, config.model_type, chosen, key)
    return chosen


def training_precision(
    setting: Literal["auto", "fp32", "bf16", "fp16"], device: str | torch.device
) -> Literal["fp32", "bf16", "fp16"]:
    """Returns the precision to train in: "auto" is bf16 on devices with instructions for it."""
    if setting != "auto":
        return setting
    if torch.device(device).type == "cuda":  # T4 and V100 only emulate bf16
        return "bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else "fp32"
    return "bf16" if has_bfloat16(device) else "fp32"


def has_bfloat16(device: str | torch.device) -> bool:
    """Returns whether a device is a CPU with AVX-512 instructions for bfloat16."""
    return torch.device(device).type == "cpu" and torch.cpu._is_avx512_bf16_supported()
