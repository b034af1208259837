"""The discrete Fourier transform of real frames as products with small matrices.

For runtimes without a fast transform, such as ONNX's, whose operator takes four times as long.
With N = A B, sample B a + b and bin c + A d (Cooley and Tukey 1965), the DFT is

    X[c + A d] = sum_b exp(-2 pi i b (c + A d) / N) sum_a exp(-2 pi i a c / A) x[B a + b]

Real frames need c only from 0 to A / 2: the other bins are complex conjugates.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

_MOST_ROWS = 32  # A: for 1024 samples both factors are 32


class RealDft(nn.Module):
    """Spectra with bins in rows c and columns d, (C, T, 2 D): real parts, then imaginary ones.

    Args:
        n_fft: N, samples of a frame.
    """

    bins: Tensor
    sign: Tensor
    over_rows: Tensor
    over_columns: Tensor
    to_rows: Tensor
    to_columns: Tensor

    def __init__(self, n_fft: int) -> None:
        super().__init__()
        A = math.gcd(n_fft, _MOST_ROWS)
        self.n_fft, self.A, self.B, self.C = n_fft, A, n_fft // A, A // 2 + 1
        c = torch.arange(self.C)
        b = d = torch.arange(self.B)
        number = c[:, None] + A * d  # (C, D) of a bin, up to N
        turns = (c[:, None] * torch.arange(A)).double() / A
        cosines, sines = (2 * math.pi * turns).cos(), (2 * math.pi * turns).sin()  # (C, A)
        count = torch.where((c == 0) | (2 * c == A), 1, 2).double()[:, None]  # with conjugates
        turns = (b[:, None] * number[:, None]).double() / n_fft  # (C, B, D)
        real, imaginary = (2 * math.pi * turns).cos(), (2 * math.pi * turns).sin()
        columns = torch.cat(
            [torch.cat([real, -imaginary], 2), torch.cat([imaginary, real], 2)], 1
        )  # (C, 2 B, 2 D)
        tensors = {
            "bins": torch.minimum(number, n_fft - number),  # (C, D) of the usual half spectrum
            "sign": torch.where(2 * number > n_fft, -1.0, 1.0),  # -1: that bin's conjugate
            "over_rows": torch.cat([cosines, -sines]),  # (2 C, A)
            "over_columns": columns,
            "to_columns": columns.mT.contiguous(),
            "to_rows": torch.cat([count * cosines, -count * sines]).T / n_fft,  # (A, 2 C)
        }
        for name, tensor in tensors.items():
            kept = tensor.float() if tensor.is_floating_point() else tensor
            self.register_buffer(name, kept, persistent=False)

    def forward(self, frames: Tensor) -> Tensor:
        """Transforms frames: (T, N) -> (C, T, 2 D)."""
        T, A, B, C = frames.shape[0], self.A, self.B, self.C
        rows = frames.view(T, A, B).transpose(0, 1).reshape(A, T * B)
        real, imaginary = (self.over_rows @ rows).view(2, C, T, B).unbind()
        return torch.cat([real, imaginary], 2) @ self.over_columns

    def inverse(self, spectrum: Tensor) -> Tensor:
        """Undoes `forward`: (C, T, 2 D) -> (T, N)."""
        T, A, B, C = spectrum.shape[1], self.A, self.B, self.C
        columns = (spectrum @ self.to_columns).split(B, dim=2)  # 2 of (C, T, B)
        frames = self.to_rows @ torch.stack(columns).reshape(2 * C, T * B)
        return frames.view(A, T, B).transpose(0, 1).reshape(T, A * B)


def overlapped(frames: Tensor, hop_length: int) -> Tensor:
    """Adds overlapping frames: (T, N) -> blocks of the sum, (T + n_blocks - 1, hop_length)."""
    T, n_fft = frames.shape
    n = -(-n_fft // hop_length)
    blocks = F.pad(frames, (0, n * hop_length - n_fft)).view(T, n, hop_length)
    shifted = (F.pad(blocks[:, i], (0, 0, i, n - 1 - i)) for i in range(n))
    return sum(shifted, torch.zeros(1))
