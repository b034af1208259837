"""A recording, and outputs and gradients of a layer, to compare implementations."""

from pathlib import Path

import soundfile
import torch

RECORDINGS = Path(__file__).parents[2] / "egs" / "_demo" / "LJSpeech-mini" / "wavs"


def recording(n_samples: int | None = None) -> torch.Tensor:
    """Speech at 22050 Hz, (1, S)."""
    wav, _ = soundfile.read(RECORDINGS / "LJ001-0002.flac", dtype="float32")
    return torch.from_numpy(wav[:n_samples])[None]


def results(layer, signal):
    """The output of a layer, and the gradients of signal, weight and bias."""
    signal = signal.clone().requires_grad_()
    result = layer(signal)
    weights = torch.linspace(-1, 1, result.numel(), dtype=result.dtype).view_as(result)
    return result, *torch.autograd.grad(
        (result * weights).sum(), (signal, layer.weight, layer.bias)
    )
