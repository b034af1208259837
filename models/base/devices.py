"""The device of networks in inference."""

import torch

from utils.errors import InputError


def resolved_device(name: str | torch.device = "auto") -> str:
    """Returns the name of a device.

    Args:
        name: As PyTorch names it; "auto": the GPU if there is one, otherwise the CPU.

    Raises:
        InputError: If PyTorch does not know it, or it is a GPU that this machine lacks.
    """
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError) as error:
        raise InputError(
            f"device is {name!r}; expected 'auto', 'cpu', 'cuda' or, of several GPUs, 'cuda:1'"
        ) from error
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise InputError(f"device {name!r}: {str(error).splitlines()[0]}") from error
    return str(device)
