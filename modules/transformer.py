"""Feed-forward transformer blocks (Ren et al. 2019, arXiv:1905.09263, section 3.1), post-norm."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from modules.conv import Linear, MaskedConv1d
from modules.masking import clear_padding


def sinusoids(length: int, hidden: int, device: torch.device | None = None) -> Tensor:
    """Sinusoid positions (Vaswani et al. 2017, arXiv:1706.03762, section 3.5).

    Args:
        length: Positions.
        hidden: H.
        device: Of the result; None: the CPU.

    Returns:
        (length, hidden) float32: sines in the even columns, cosines in the odd ones, from
        position 0.
    """
    # in float32 the angle of position 1000 is off by 6e-5, which is more than a mel may differ by
    exact = torch.float32 if device is not None and device.type == "mps" else torch.float64
    columns = torch.arange(hidden, device=device)
    rates = torch.exp(-math.log(10000.0) / hidden * (columns // 2 * 2).to(exact))
    angles = torch.arange(length, device=device)[:, None] * rates
    return torch.where(columns % 2 == 0, angles.sin(), angles.cos()).float()


class SelfAttention(nn.Module):
    """Multi-head self-attention with one fused map to queries, keys and values.

    Args:
        hidden: H.
        heads: They divide H.
    """

    def __init__(self, hidden: int, heads: int) -> None:
        super().__init__()
        if hidden % heads:
            raise ValueError(f"hidden size {hidden} is not a multiple of {heads} heads")
        self.heads = heads
        self.qkv = Linear(hidden, 3 * hidden)
        self.fc = Linear(hidden, hidden)

    def forward(self, frames: Tensor, mask: Tensor) -> Tensor:
        """Attends from every position to the valid ones.

        Args:
            frames: (B, T, H).
            mask: (B, T) bool, True = valid, at least one per item.

        Returns:
            (B, T, H); padding is not cleared.
        """
        B, T, H = frames.shape
        heads = self.qkv(frames).view(B, T, 3, self.heads, H // self.heads)
        queries, keys, values = heads.permute(2, 0, 3, 1, 4)  # 3 of (B, heads, T, H / heads)
        context = F.scaled_dot_product_attention(
            queries, keys, values, attn_mask=mask[:, None, None, :]
        )
        return self.fc(context.transpose(1, 2).reshape(B, T, H))


class FFTBlock(nn.Module):
    """Self-attention and a two-layer convolution, each with a residual and LayerNorm after it.

    Args:
        hidden: H.
        heads: Of the attention; they divide H.
        filter_size: Channels between the convolutions.
        kernel_size: Of the two convolutions, odd.
        dropout: Share of zeroed values.
    """

    def __init__(
        self,
        hidden: int,
        heads: int,
        filter_size: int,
        kernel_size: tuple[int, int],
        dropout: float,
    ) -> None:
        super().__init__()
        self.attention = SelfAttention(hidden, heads)
        self.attention_norm = nn.LayerNorm(hidden)
        self.conv_1 = MaskedConv1d(hidden, filter_size, kernel_size[0])
        self.conv_2 = MaskedConv1d(filter_size, hidden, kernel_size[1])
        self.conv_norm = nn.LayerNorm(hidden)
        self.dropout = nn.Dropout(dropout)

    def forward(self, frames: Tensor, mask: Tensor) -> Tensor:
        """Transforms phones or frames.

        Args:
            frames: (B, T, H).
            mask: (B, T) bool, True = valid.

        Returns:
            (B, T, H), padding 0.
        """
        attended = self.dropout(self.attention(frames, mask))
        frames = clear_padding(self.attention_norm(attended + frames), mask)
        filtered = self.dropout(self.conv_2(F.relu(self.conv_1(frames)), mask))
        return clear_padding(self.conv_norm(filtered + frames), mask)


class FFTStack(nn.Module):
    """Positions added, then FFT blocks.

    Args:
        n_layers: Number of blocks.
        hidden: H.
        heads: Of the attention.
        filter_size: Channels between the convolutions.
        kernel_size: Of the convolutions.
        dropout: Share of zeroed values.
        max_length: Positions kept ready; others are computed when needed.
        stored_positions: Positions are part of the state_dict.
    """

    positions: Tensor

    def __init__(
        self,
        n_layers: int,
        hidden: int,
        heads: int,
        filter_size: int,
        kernel_size: tuple[int, int],
        dropout: float,
        max_length: int,
        *,
        stored_positions: bool = False,
    ) -> None:
        super().__init__()
        positions = sinusoids(max_length, hidden)
        self.register_buffer("positions", positions, persistent=stored_positions)
        self.layers = nn.ModuleList(
            FFTBlock(hidden, heads, filter_size, kernel_size, dropout) for _ in range(n_layers)
        )

    def forward(self, frames: Tensor, mask: Tensor) -> Tensor:
        """Transforms phones or frames of any number.

        Args:
            frames: (B, T, H).
            mask: (B, T) bool, True = valid.

        Returns:
            (B, T, H), padding 0.
        """
        _, T, H = frames.shape
        known = len(self.positions) >= T
        positions = self.positions[:T] if known else sinusoids(T, H, frames.device)
        frames = clear_padding(frames + positions, mask)
        for layer in self.layers:
            frames = layer(frames, mask)
        return frames
