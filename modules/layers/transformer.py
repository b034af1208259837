"""Feed-forward transformer blocks (Ren et al. 2019, arXiv:1905.09263, section 3.1), post-norm."""

import math
from collections.abc import Iterable
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from modules.layers.basic import Dropout, Linear, MaskedConv1d, clear_padding, drop

# columns of positions: sines in the even ones and cosines in the odd ones, or all sines first
PositionOrder = Literal["interleaved", "sines_first"]
Activation = Literal["relu", "mish"]  # mish: Misra 2019, arXiv:1908.08681
_ACTIVATIONS = {"relu": F.relu, "mish": F.mish}


def sinusoids(
    length: int,
    hidden: int,
    device: torch.device | None = None,
    order: PositionOrder = "interleaved",
) -> Tensor:
    """Computes sinusoids, (length, hidden) (Vaswani et al. 2017, arXiv:1706.03762, sec. 3.5)."""
    # in float32 the angle of position 1000 is off by 6e-5, which is more than a mel may differ by
    exact = torch.float32 if device is not None and device.type == "mps" else torch.float64
    columns = torch.arange(0, hidden, 2, device=device).to(exact)  # a sine and a cosine of each
    rates = torch.exp(-math.log(10000.0) / hidden * columns)
    angles = torch.arange(length, device=device)[:, None] * rates  # (L, H / 2)
    waves = angles.sin(), angles.cos()
    table = torch.cat(waves, 1) if order == "sines_first" else torch.stack(waves, 2).flatten(1)
    return table[:, :hidden].float()


def matrix_attention(
    queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor, dropout: float = 0.0
) -> Tensor:
    """Computes scaled dot-product attention by two products (Vaswani et al. 2017, eq. 1).

    The same as `F.scaled_dot_product_attention`; it keeps the attention weights for the gradient.
    Queries, keys and values are (B, heads, T or N, D); the mask, bool or what is added to scores,
    broadcasts to (B, heads, T, N).
    """
    if mask.dtype == torch.bool:
        bias = torch.zeros(mask.shape, dtype=queries.dtype, device=mask.device)
        mask = bias.masked_fill(~mask, -math.inf)
    scores = queries / math.sqrt(queries.shape[-1]) @ keys.mT  # (B, heads, T, N)
    weights = (scores + mask).softmax(dim=-1)
    return drop(weights, dropout) @ values


def fused_attention(
    queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor, dropout: float = 0.0
) -> Tensor:
    """Computes `F.scaled_dot_product_attention`; arguments as of `matrix_attention`.

    On a GPU only with the memory-efficient or the plain kernel: that of cuDNN, PyTorch's first
    choice in bf16, is compiled for each new shape, which takes 20 ms forward and 20 ms back.
    """
    attend = F.scaled_dot_product_attention
    if not queries.is_cuda:
        return attend(queries, keys, values, mask, dropout)
    with sdpa_kernel([SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]):
        return attend(queries, keys, values, mask, dropout)


def turned(heads: Tensor, n_channels: int) -> Tensor:
    """Applies rotary positions (Su et al. 2021, arXiv:2104.09864, eq. 34) to (B, heads, T, D).

    Of the first channels, an even number, each of the first half is turned together with one of the
    second half; the others stay as they are.
    """
    _, _, T, _ = heads.shape
    waves = sinusoids(T, n_channels, heads.device, "sines_first").to(heads.dtype)
    sines, cosines = waves.chunk(2, dim=1)  # (T, n_channels / 2) each
    half = n_channels // 2
    first, second, others = heads.split([half, half, heads.shape[3] - n_channels], dim=3)
    turned_first = first * cosines - second * sines
    return torch.cat([turned_first, second * cosines + first * sines, others], dim=3)


class SelfAttention(nn.Module):
    """Multi-head self-attention with one fused map to queries, keys and values.

    Heads have `head_size` channels, by default hidden / heads, which must be whole. Rotary
    positions are in the first `rotary_channels` of each, an even number.
    """

    def __init__(
        self,
        hidden: int,
        heads: int,
        head_size: int | None = None,
        dropout: float = 0.0,
        *,
        input_bias: bool = True,
        output_bias: bool = True,
        rotary_channels: int = 0,
    ) -> None:
        super().__init__()
        if head_size is None and hidden % heads:
            raise ValueError(f"hidden size {hidden} is not a multiple of {heads} heads")
        self.heads, self.dropout, self.rotary_channels = heads, dropout, rotary_channels
        width = heads * (head_size or hidden // heads)
        self.qkv = Linear(hidden, 3 * width, bias=input_bias)
        self.fc = Linear(width, hidden, bias=output_bias)

    def forward(self, frames: Tensor, mask: Tensor) -> Tensor:
        """Attends from every position of (B, T, H) to the valid ones; padding is not cleared.

        The mask is (B, T), bool, or what is added to the scores of positions.
        """
        heads = self.qkv(frames).unflatten(2, (3, self.heads, -1))
        queries, keys, values = heads.permute(2, 0, 3, 1, 4)  # 3 of (B, heads, T, head size)
        if self.rotary_channels:
            queries, keys = (turned(part, self.rotary_channels) for part in (queries, keys))
        if mask.dtype != torch.bool:
            mask = mask.to(queries.dtype)
        # in bf16 on a CPU, PyTorch's kernel and its gradients take twice as long as matrices; when
        # exported, it makes one frame a special case
        slow = queries.is_cpu and queries.dtype == torch.bfloat16
        attend = matrix_attention if slow or torch.compiler.is_exporting() else fused_attention
        dropout = self.dropout if self.training else 0.0
        context = attend(queries, keys, values, mask[:, None, None, :], dropout)
        return self.fc(context.transpose(1, 2).flatten(2))


class FFTBlock(nn.Module):
    """Self-attention and two convolutions (odd kernels), each with residual and LayerNorm."""

    def __init__(
        self,
        attention: SelfAttention,
        hidden: int,
        filter_size: int,
        kernel_size: tuple[int, int],
        dropout: float,
        activation: Activation = "relu",
    ) -> None:
        super().__init__()
        self.activate = _ACTIVATIONS[activation]
        self.attention = attention
        self.attention_norm = nn.LayerNorm(hidden)
        self.conv_1 = MaskedConv1d(hidden, filter_size, kernel_size[0])
        self.conv_2 = MaskedConv1d(filter_size, hidden, kernel_size[1])
        self.conv_norm = nn.LayerNorm(hidden)
        self.dropout = Dropout(dropout)

    def forward(self, frames: Tensor, mask: Tensor) -> Tensor:
        """Transforms phones or frames, (B, T, H); padding 0."""
        # sums of two types take four times as long
        attended = self.dropout(self.attention(frames, mask)).to(frames.dtype)
        frames = clear_padding(self.attention_norm(attended + frames), mask)
        filtered = self.dropout(self.conv_2(self.activate(self.conv_1(frames)), mask))
        return clear_padding(self.conv_norm(filtered.to(frames.dtype) + frames), mask)


class FFTStack(nn.Module):
    """Positions added, then FFT blocks.

    Positions up to `max_length` are kept ready, in the state_dict if `stored_positions`; others are
    computed when needed. `order` is that of their columns.
    """

    positions: Tensor

    def __init__(
        self,
        blocks: Iterable[FFTBlock],
        hidden: int,
        *,
        max_length: int = 1000,
        order: PositionOrder = "interleaved",
        stored_positions: bool = False,
    ) -> None:
        super().__init__()
        self.order, self.stored_positions = order, stored_positions
        positions = sinusoids(max_length, hidden, order=order)
        self.register_buffer("positions", positions, persistent=stored_positions)
        self.layers = nn.ModuleList(blocks)

    def forward(self, frames: Tensor, mask: Tensor) -> Tensor:
        """Transforms phones or frames of any number, (B, T, H); padding 0."""
        (_, T, H), n_ready = frames.shape, len(self.positions)
        exporting = torch.compiler.is_exporting()  # a graph has no branches on a length
        if not exporting and n_ready >= T:
            positions = self.positions[:T]
        else:
            positions = sinusoids(T, H, self.positions.device, self.order)
            if exporting and self.stored_positions:
                numbers = torch.arange(T)
                ready = self.positions[numbers.clamp(max=n_ready - 1)]
                positions = torch.where(numbers[-1] < n_ready, ready, positions)
        frames = clear_padding(frames + positions, mask)
        for layer in self.layers:
            frames = layer(frames, mask)
        return frames
