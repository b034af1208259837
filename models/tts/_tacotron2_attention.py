"""Location-sensitive attention (Chorowski et al. 2015, arXiv:1506.07503, eq. 8 and 9).

As NVIDIA's Tacotron 2 it sees the weights of the previous step and their sum over all steps before.
The convolution over both and the map of its channels, which have nothing between them, are applied
as one convolution.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class LocationAttention(nn.Module):
    """Weighs the vectors of a memory by a query and by where attention was before.

    Args:
        query_size: Size of a query.
        memory_size: Size of a vector of the memory.
        hidden: H, in which both are compared.
        n_filters: Channels of the location features.
        kernel_size: Kernel of the convolution over the memory, odd.
    """

    def __init__(
        self,
        query_size: int,
        memory_size: int,
        hidden: int = 128,
        n_filters: int = 32,
        kernel_size: int = 31,
    ) -> None:
        super().__init__()
        self.query = nn.Linear(query_size, hidden, bias=False)
        self.key = nn.Linear(memory_size, hidden, bias=False)
        self.location_conv = nn.Conv1d(2, n_filters, kernel_size, bias=False)
        self.location = nn.Linear(n_filters, hidden, bias=False)
        self.energy = nn.Linear(hidden, 1, bias=False)
        for layer in (self.query, self.key, self.location):
            nn.init.xavier_uniform_(layer.weight, nn.init.calculate_gain("tanh"))
        for last in (self.location_conv, self.energy):
            nn.init.xavier_uniform_(last.weight)

    def location_kernel(self) -> Tensor:
        """The convolution over previous and cumulative weights: (H, 2, K)."""
        return torch.einsum("hf,fck->hck", self.location.weight, self.location_conv.weight)

    def forward(
        self, state: Tensor, keys: Tensor, past: Tensor, kernel: Tensor, mask: Tensor
    ) -> Tensor:
        """Weighs the memory in one step.

        Args:
            state: Asks for a part of the memory, (B, query_size).
            keys: The memory mapped by `key`, (B, N, H).
            past: Previous and cumulative weights, (B, 2, N).
            kernel: From `location_kernel`.
            mask: (B, N) bool, True = valid.

        Returns:
            Weights, (B, N); their sum is 1, and 0 where the mask is False.
        """
        location = F.conv1d(past, kernel, padding=kernel.shape[2] // 2).mT  # (B, N, H)
        energies = self.energy(torch.tanh(keys + self.query(state)[:, None] + location)).squeeze(2)
        return energies.masked_fill(~mask, -math.inf).softmax(dim=1)
