"""Whether this machine can compile networks."""

import os
import shutil
import sys

import torch
from torch.utils._triton import has_triton

from utils.errors import InputError


def require_compiler(key: str, device: torch.device) -> None:
    """Refuses to compile where `torch.compile` has no compiler for its kernels.

    Args:
        device: On which the graphs run.

    Raises:
        InputError: If there is none: g++ or what CXX names, clang++ on macOS, on a CPU; Triton on
            a GPU.
    """
    cxx = os.environ.get("CXX", "clang++" if sys.platform == "darwin" else "g++")
    if device.type == "cpu" and shutil.which(cxx) is None:
        raise InputError(f"{key}: no compiler {cxx}; install one, name it by CXX, or set off")
    if device.type == "cuda" and not has_triton():
        raise InputError(f"{key}: no Triton for this GPU; install it, or set off")
