"""A Vocos of some thousand weights, and the published computation in a few lines."""

from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from models.vocoder.vocos import Vocos
from models.vocoder.vocos.config import VocosConfig
from modules.mel import MelConfig
from tests.models.vocoder.small_hifigan import MEL

CENTRE = replace(MEL, padding="centre")
SMALL = VocosConfig(channels=8, expanded=12, n_layers=2)


def make_network(mel: MelConfig = CENTRE) -> Vocos:
    """The same random weights each time, of a size at which every layer counts."""
    torch.manual_seed(0)
    network = Vocos(SMALL, mel).eval()
    for weight in network.parameters():
        nn.init.normal_(weight, std=0.3)
    return network


def plain_wav(
    weights: dict[str, Tensor], mel: Tensor, n_fft: int, hop: int, padding: str
) -> Tensor:
    """What the published layers compute from weights by their published names, (B, S)."""

    def norm(name: str, frames: Tensor) -> Tensor:
        return F.layer_norm(
            frames, frames.shape[2:], weights[f"{name}.weight"], weights[f"{name}.bias"], 1e-6
        )

    def linear(name: str, frames: Tensor) -> Tensor:
        return F.linear(frames, weights[f"{name}.weight"], weights[f"{name}.bias"])

    first = F.conv1d(mel, weights["backbone.embed.weight"], weights["backbone.embed.bias"], 1, 3)
    hidden = norm("backbone.norm", first.mT).mT  # (B, C, T)
    for n in range(sum(name.endswith("gamma") for name in weights)):
        block = f"backbone.convnext.{n}"
        kernel, bias = weights[f"{block}.dwconv.weight"], weights[f"{block}.dwconv.bias"]
        conv = F.conv1d(hidden, kernel, bias, 1, 3, groups=len(kernel))
        inner = F.gelu(linear(f"{block}.pwconv1", norm(f"{block}.norm", conv.mT)))
        hidden = hidden + (weights[f"{block}.gamma"] * linear(f"{block}.pwconv2", inner)).mT
    out = linear("head.out", norm("backbone.final_layer_norm", hidden.mT)).mT
    magnitude, phase = out.chunk(2, dim=1)
    spectrum = torch.polar(magnitude.exp().clamp(max=100), phase)
    window = torch.hann_window(n_fft)
    if padding == "center":
        return torch.istft(spectrum, n_fft, hop, n_fft, window, center=True)
    frames = torch.fft.irfft(spectrum, n_fft, dim=1) * window[:, None]
    B, _, T = frames.shape
    total, weight = torch.zeros(B, (T - 1) * hop + n_fft), torch.zeros((T - 1) * hop + n_fft)
    for t in range(T):
        total[:, t * hop : t * hop + n_fft] += frames[:, :, t]
        weight[t * hop : t * hop + n_fft] += window.square()
    cut = (n_fft - hop) // 2
    return (total[:, cut:-cut] / weight[cut:-cut]).clamp(-1, 1)
