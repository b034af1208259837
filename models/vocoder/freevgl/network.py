"""FreeVGL's network: from a mel to magnitudes."""

import copy
from typing import cast

import torch
from torch import Tensor, nn

from config.schema import VocoderPrecision
from models.base.assets import Assets
from models.vocoder.freevgl.config import FreeVGLConfig
from modules.layers.basic import Linear
from modules.layers.convnext import ConvNeXtBlock
from modules.mel import MelConfig, fit_mel, spread_mel
from modules.waveform.griffin_lim import MagnitudeVocoder

_MEL_MEAN, _MEL_STD = -5.0, 2.0  # approximate mean and standard deviation of log-mels of speech
_FIRST_SCALE = 0.2  # of the residual branches


class FreeVGL(MagnitudeVocoder):
    """Mel to waveform."""

    def __init__(self, config: FreeVGLConfig, mel: MelConfig) -> None:
        channels, margin = config.channels, config.kernel_size // 2
        super().__init__(mel, config.iterations, reach=margin * (1 + config.n_layers))
        self.config = config
        self.first_conv = nn.Conv1d(mel.n_mels, channels, config.kernel_size, padding=margin)
        self.first_norm = nn.LayerNorm(channels)
        expanded, size = config.expansion * channels, config.kernel_size
        self.blocks = nn.ModuleList(
            ConvNeXtBlock(channels, expanded, size, scale=_FIRST_SCALE)
            for _ in range(config.n_layers)
        )
        self.last_norm = nn.LayerNorm(channels)
        self.residual = Linear(channels, mel.n_fft // 2 + 1)
        nn.init.zeros_(self.residual.weight)
        nn.init.zeros_(cast("Tensor", self.residual.bias))
        self._half = False  # blocks in bfloat16

    @classmethod
    def build(cls, config: FreeVGLConfig, assets: Assets) -> "FreeVGL":
        """Builds the network for a mel."""
        return cls(config, assets.mel)

    def forward(self, mel: Tensor) -> Tensor:
        """Predicts natural log magnitudes: (B, M, T) -> (B, n_fft // 2 + 1, T) float32."""
        scaled = (mel - _MEL_MEAN) / _MEL_STD
        hidden = self.first_norm(self.first_conv(scaled).mT)  # (B, T, C)
        for block in self.blocks:
            hidden = block(hidden)
        residual = self.residual(self.last_norm(hidden)).mT.float()
        # the logarithm magnifies what half precision rounds away
        with torch.autocast(mel.device.type, enabled=False):
            return spread_mel(mel.float().exp(), self.filters).log() + residual

    def for_inference(self, precision: VocoderPrecision = "fp32") -> "FreeVGL":
        """Returns a copy that cannot be trained; "bf16" and "mixed": all but phases in bfloat16."""
        network = copy.deepcopy(self).requires_grad_(False)
        network._half = precision != "fp32"
        return network

    def magnitudes(self, mel: Tensor) -> Tensor:
        """Computes STFT magnitudes, (1, M, T) -> (1, n_fft // 2 + 1, T)."""
        with torch.autocast(mel.device.type, torch.bfloat16, enabled=self._half):
            magnitude = self(mel).exp()
        return fit_mel(magnitude, mel.exp(), self.filters, self.config.mel_updates)
