"""The steps of WaveGlow's flow: invertible 1x1 convolution and affine coupling (section 2)."""

from typing import NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from models.vocoder.waveglow.config import WaveGlowConfig
from modules.execution.chunks import SignalConv1d


class FlowStepOutput(NamedTuple):
    """Result of one step of the flow."""

    signal: Tensor  # (B, C, L)
    log_scales: Tensor  # (B,), sum of log s of the coupling
    log_det: Tensor  # scalar, log |det W| of the mixing, for one position


class Mixing(nn.Module):
    """Mixes channels by an invertible matrix (section 2.1; Kingma and Dhariwal 2018)."""

    inverse_weight: Tensor | None  # set for inference, when `weight` no longer changes

    def __init__(self, channels: int) -> None:
        super().__init__()
        weight, _ = torch.linalg.qr(torch.randn(channels, channels))
        weight[:, 0] *= torch.linalg.det(weight).sign()  # a rotation: determinant 1
        self.weight = nn.Parameter(weight.contiguous())
        self.register_buffer("inverse_weight", None, persistent=False)

    def forward(self, signal: Tensor) -> tuple[Tensor, Tensor]:
        """Mixes (B, C, L); also returns log |det W|."""
        # a determinant that turned negative has a logarithm as well: only its absolute value counts
        return self.weight @ signal, torch.linalg.slogdet(self.weight).logabsdet

    def inverse(self, signal: Tensor) -> Tensor:
        """Undoes `forward`, (B, C, L) -> (B, C, L)."""
        return (self.inverted() if self.inverse_weight is None else self.inverse_weight) @ signal

    def inverted(self) -> Tensor:
        """Computes the inverse of the matrix."""
        return torch.linalg.inv(self.weight.double()).float()


class CouplingNetwork(nn.Module):
    """The WN of section 2.2: shift and log scale from half of the channels and the mel.

    Dilated convolutions (2^i in layer i, of an odd kernel) with gated units, residual and skip
    connections as in WaveNet, without causality. The last layer starts at zero, so that the
    coupling starts as the identity.
    """

    def __init__(self, config: WaveGlowConfig, channels: int, mel_channels: int) -> None:
        super().__init__()
        hidden, layers, kernel_size = config.channels, config.n_layers, config.kernel_size
        self.start = SignalConv1d(channels, hidden, 1)
        # the conditioning of all layers, one after another
        self.mel_conv = nn.Conv1d(mel_channels, 2 * hidden * layers, 1)
        self.dilated_convs = nn.ModuleList(
            SignalConv1d(hidden, 2 * hidden, kernel_size, 1, 2**i * (kernel_size // 2), 2**i)
            for i in range(layers)
        )
        # residual and skip; the last layer has no residual
        sizes = [2 * hidden] * (layers - 1) + [hidden]
        self.output_convs = nn.ModuleList(SignalConv1d(hidden, size, 1) for size in sizes)
        self.end = nn.Conv1d(hidden, 2 * channels, 1)
        nn.init.zeros_(self.end.weight)
        nn.init.zeros_(cast("Tensor", self.end.bias))

    def forward(self, half: Tensor, mel: Tensor) -> tuple[Tensor, Tensor]:
        """Predicts shift and log scale: (B, C, L), mel (B, K, L) -> (B, C, L), float32."""
        n_layers = len(self.dilated_convs)
        # one after another: all at a time would be the largest tensor of the network
        weights = self.mel_conv.weight.chunk(n_layers)
        biases = cast("Tensor", self.mel_conv.bias).chunk(n_layers)
        hidden = self.start(half.to(mel.dtype))  # (B, H, L)
        skipped: list[Tensor] = []
        layers = zip(self.dilated_convs, self.output_convs, strict=True)
        for i, (dilated, output) in enumerate(layers):
            content, gate = (dilated(hidden) + F.conv1d(mel, weights[i], biases[i])).chunk(2, dim=1)
            result = output(content.tanh() * gate.sigmoid())
            if i < n_layers - 1:
                residual, result = result.chunk(2, dim=1)
                hidden = hidden + residual
            skipped = [skipped[0] + result] if skipped else [result]
        # half precision would round the log scales, whose sum is a large part of the likelihood
        with torch.autocast(half.device.type, enabled=False):
            shift, log_scale = self.end(skipped[0].float()).chunk(2, dim=1)
        return shift, log_scale


class FlowStep(nn.Module):
    """Mixing, then coupling, of an even number of channels."""

    def __init__(self, config: WaveGlowConfig, channels: int, mel_channels: int) -> None:
        super().__init__()
        self.mixing = Mixing(channels)
        self.coupling = CouplingNetwork(config, channels // 2, mel_channels)

    def forward(self, signal: Tensor, mel: Tensor) -> FlowStepOutput:
        """Maps audio, (B, C, L), towards noise, by a mel (B, K, L) (eq. 4 to 8 of the paper)."""
        with torch.autocast(signal.device.type, enabled=False):
            mixed, log_det = self.mixing(signal)
        unchanged, changed = mixed.chunk(2, dim=1)
        shift, log_scale = self.coupling(unchanged, mel)
        signal = torch.cat([unchanged, log_scale.exp() * changed + shift], dim=1)
        return FlowStepOutput(signal, log_scale.sum(dim=(1, 2)), log_det)

    def inverse(self, signal: Tensor, mel: Tensor) -> Tensor:
        """Maps noise (B, C, L) towards audio, conditioned on the mel (B, K, L)."""
        unchanged, changed = signal.chunk(2, dim=1)
        shift, log_scale = self.coupling(unchanged, mel)
        changed = (changed - shift) * torch.exp(-log_scale)
        return self.mixing.inverse(torch.cat([unchanged, changed], dim=1))
