"""Matcha's text encoder: prenet, transformer with rotary positions, durations and mean mel.

It is the encoder of Glow-TTS (Kim et al. 2020, arXiv:2005.11129) and Grad-TTS (Popov et al. 2021,
arXiv:2105.06337) with rotary positions on half of the channels of a head.
"""

import math
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from models.tts.matcha.config import TextEncoderConfig
from modules.layers.basic import Dropout, Linear, MaskedConv1d, PhoneEmbedding, clear_padding
from modules.layers.transformer import FFTBlock, SelfAttention
from modules.variance.adaptor import VariancePredictor

_PRENET_LAYERS, _PRENET_KERNEL_SIZE, _PRENET_DROPOUT = 3, 5, 0.5
_NORM_EPS = 1e-4


class Prenet(nn.Module):
    """Convolutions with LayerNorm, ReLU and dropout, whose result is added to the input."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        sizes = hidden, hidden, _PRENET_KERNEL_SIZE
        self.convs = nn.ModuleList(MaskedConv1d(*sizes) for _ in range(_PRENET_LAYERS))
        self.norms = nn.ModuleList(nn.LayerNorm(hidden) for _ in range(_PRENET_LAYERS))
        self.linear = Linear(hidden, hidden)
        self.dropout = Dropout(_PRENET_DROPOUT)
        for part in self.linear.parameters():
            nn.init.zeros_(part)

    def forward(self, phones: Tensor, mask: Tensor) -> Tensor:
        """Transforms phones, (B, N, H); padding 0."""
        hidden = phones
        for conv, norm in zip(self.convs, self.norms, strict=True):
            hidden = self.dropout(F.relu(norm(conv(hidden, mask))))
        return clear_padding(phones + self.linear(hidden), mask)


class TextEncoder(nn.Module):
    """Phones to durations and a mean mel."""

    def __init__(
        self, config: TextEncoderConfig, n_phones: int, speaker_size: int, n_mels: int
    ) -> None:
        super().__init__()
        self.phone_embedding = PhoneEmbedding(n_phones, config.hidden)
        nn.init.normal_(self.phone_embedding.weight, std=config.hidden**-0.5)
        self.prenet = Prenet(config.hidden) if config.prenet else None
        hidden, heads, dropout = config.hidden + speaker_size, config.heads, config.dropout
        rotary = hidden // heads // 4 * 2  # half of the channels, or one less: an even number
        attend = partial(SelfAttention, hidden, heads, dropout=dropout, rotary_channels=rotary)
        block = hidden, config.filter_size, (config.kernel_size, config.kernel_size), dropout
        self.layers = nn.ModuleList(FFTBlock(attend(), *block) for _ in range(config.n_layers))
        self.prior = Linear(hidden, n_mels)
        sizes = config.duration_filter_size, config.duration_kernel_size, config.duration_dropout
        self.duration_predictor = VariancePredictor(hidden, *sizes)
        for norm in self.modules():
            if isinstance(norm, nn.LayerNorm):
                norm.eps = _NORM_EPS

    def forward(
        self, phone_ids: Tensor, mask: Tensor, speakers: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Encodes phones: (B, N), mask (B, N), vectors of speakers (B, S) or None.

        Returns:
            The mean mel of each phone, scaled, (B, N, M); and ln(frames), (B, N), without a
            gradient to the encoder. Padding is 0.
        """
        _, hidden_size = self.phone_embedding.weight.shape
        phones = clear_padding(self.phone_embedding(phone_ids) * math.sqrt(hidden_size), mask)
        if self.prenet is not None:
            phones = self.prenet(phones, mask)
        if speakers is not None:
            _, N, _ = phones.shape
            phones = torch.cat([phones, speakers[:, None].expand(-1, N, -1)], dim=2)
            phones = clear_padding(phones, mask)  # (B, N, H + S)
        for layer in self.layers:
            phones = layer(phones, mask)
        prior = clear_padding(self.prior(phones), mask)
        return prior, self.duration_predictor(phones.detach(), mask)
