"""The encoder of Tacotron 2 (Shen et al. 2018, arXiv:1712.05884, section 2.2)."""

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from config.checks import require_at_least, require_odd, require_share
from modules.layers.basic import Dropout, MaskedConv1d, length_mask
from modules.layers.postnet import MaskedBatchNorm


@dataclass(frozen=True)
class EncoderConfig:
    """Convolutions and a bidirectional LSTM over the phones."""

    hidden: int = 512  # even: half of it for each direction of the LSTM
    n_convolutions: int = 3
    kernel_size: int = 5  # odd
    dropout: float = 0.5

    def __post_init__(self) -> None:
        require_at_least(self, 1, "hidden", "n_convolutions")
        require_odd(self, "kernel_size")
        require_share(self, "dropout")
        if self.hidden % 2:
            raise ValueError(f"hidden {self.hidden} must be even: an LSTM of half of it each way")


class Encoder(nn.Module):
    """Phones to hidden vectors (section 2.2)."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        sizes = [config.hidden] * (config.n_convolutions + 1)
        self.convs = nn.ModuleList(
            MaskedConv1d(size, next_size, config.kernel_size) for size, next_size in pairwise(sizes)
        )
        self.norms = nn.ModuleList(MaskedBatchNorm(size) for size in sizes[1:])
        self.dropout = Dropout(config.dropout)
        self.lstm = nn.LSTM(config.hidden, config.hidden // 2, batch_first=True, bidirectional=True)
        for conv in self.convs:
            nn.init.xavier_uniform_(conv.get_parameter("weight"), nn.init.calculate_gain("relu"))

    def forward(self, phones: Tensor, lengths: Tensor) -> Tensor:
        """Encodes phones.

        Args:
            phones: Their embeddings, (B, N, H).

        Returns:
            (B, N, H) float32, 0 for padding.
        """
        _, N, _ = phones.shape
        phones = self.convolved(phones, length_mask(lengths, N))
        with torch.autocast(phones.device.type, enabled=False):
            packed = pack_padded_sequence(
                phones.float(), lengths.cpu(), batch_first=True, enforce_sorted=False
            )
            encoded, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True, total_length=N)
        return encoded

    def convolved(self, phones: Tensor, mask: Tensor) -> Tensor:
        """What the LSTM reads: embeddings (B, N, H) and mask (B, N) -> (B, N, H)."""
        for conv, norm in zip(self.convs, self.norms, strict=True):
            phones = self.dropout(norm(conv(phones, mask), mask).relu())
        return phones
