"""`MagnitudeVocoder` with operations that graphs of ONNX have, in the same windows.

A scan computes the windows in turn. All have the size of the longest; frames that one does not have
are masked. Products of matrices take the place of the FFT, and the phases of a window are found by
doubling: the step from a frame to the next is a lookup and a sum, and so are two steps.
"""

import math
from functools import partial

import torch
from torch import Tensor, nn
from torch._higher_order_ops.scan import scan
from torch.nn import functional as F

from modules.waveform import griffin_lim
from modules.waveform.griffin_lim import AHEAD_FRAMES, CHUNK_FRAMES, LEAST_WEIGHT, MagnitudeVocoder
from modules.waveform.inverse_stft import overlapped

_Pair = tuple[Tensor, Tensor]
_Past = tuple[Tensor, Tensor, Tensor]  # phases (K,), wav and weight (n_blocks - 1, hop_length)
_MAX_ROWS = 32  # A: for 1024 samples both factors are 32


class GriffinLimGraph(nn.Module):
    """The waveform of a mel, as `MagnitudeVocoder.infer`."""

    def __init__(self, vocoder: MagnitudeVocoder) -> None:
        super().__init__()
        self.vocoder = vocoder
        self.mel = vocoder.mel
        self.dft = RealDft(self.mel.n_fft)
        self.n_blocks = -(-self.mel.n_fft // self.mel.hop_length)
        self.n_rows = CHUNK_FRAMES + AHEAD_FRAMES + vocoder.reach  # of the longest window, the last

    def forward(self, mel: Tensor) -> Tensor:
        """Computes the waveform of one item: (1, M, T) -> (1, T * hop_length)."""
        magnitude = self.vocoder.magnitudes(mel)[0].T  # (T, K)
        T, K = magnitude.shape
        hop = self.mel.hop_length
        n_later = (torch.sym_max(T, self.n_rows) - self.n_rows + CHUNK_FRAMES - 1) // CHUNK_FRAMES
        starts = CHUNK_FRAMES * torch.arange(n_later + 1)  # (W,)
        frames = starts[:, None] + torch.arange(-1, self.n_rows)  # one before, and its own
        windows = magnitude[frames.clamp(0, T - 1)]  # (W, 1 + n_rows, K)
        nothing = torch.zeros(self.n_blocks - 1, hop)
        past = torch.zeros(K, dtype=torch.float64), nothing, nothing.clone()
        _, blocks = scan(self._window, past, (windows, starts, T - starts))
        first, rest = blocks.split([CHUNK_FRAMES, blocks.shape[1] - CHUNK_FRAMES], dim=1)
        wav = torch.cat([first.reshape(-1), rest[-1].reshape(-1)])
        n_skipped = self.mel.edge_samples[0]
        return wav[None, n_skipped : n_skipped + T * hop].clamp(-1, 1)

    def _window(self, past: _Past, window: tuple[Tensor, Tensor, Tensor]) -> tuple[_Past, Tensor]:
        """Returns the past of the next window, and the sound, (n_rows + n_blocks - 1, hop_length).

        A window has magnitudes, (1 + n_rows, K), with the last frame of the past first, and the
        number of frames before it and from there on.
        """
        phases, wav, weight = past
        magnitude, start, n_left = window
        n_valid = torch.where(n_left > self.n_rows, CHUNK_FRAMES + AHEAD_FRAMES, n_left)
        valid = (torch.arange(self.n_rows) < n_valid)[:, None]
        phases = self._phases(magnitude, phases, start == 0, n_valid)  # (n_rows, K)
        squared = self.vocoder.window.square() * valid
        whole = self._added(squared, weight)
        spectrum = self._consistent(magnitude[1:] * valid, phases.float(), whole, wav)
        frames = self.dft.inverse(spectrum) * self.vocoder.window
        sound = self._added(frames, wav) / whole.clamp(min=LEAST_WEIGHT)
        n = CHUNK_FRAMES
        later = (
            phases[n - 1].clone(),
            self._added(frames[:n], wav)[n:].clone(),
            self._added(squared[:n], weight)[n:].clone(),
        )
        return later, sound

    def _phases(self, magnitude: Tensor, past: Tensor, begins: Tensor, n_valid: Tensor) -> Tensor:
        """Returns phases by integration, (n_rows, K) float64, as of `integrate_phase`."""
        log_magnitude = magnitude.clamp(min=griffin_lim.SMALLEST_MAGNITUDE).log().double()
        rows = torch.arange(len(magnitude))
        before = (rows - 1).clamp(min=0).maximum(begins.long())
        after = (rows + 1).minimum(n_valid)
        distance = (after - before).clamp(min=1)[:, None]
        slope = (log_magnitude[after] - log_magnitude[before]) / distance
        peaks, advances, from_lowest = griffin_lim.phase_steps(log_magnitude, slope, self.mel)
        peaks = peaks[1:]
        offsets = advances.gather(1, peaks) + from_lowest[1:]  # phases = past[peaks] + offsets
        own = griffin_lim.first_phases(log_magnitude[1], from_lowest[1])
        first = torch.where(begins, own, past[peaks[0]] + offsets[0])  # (K,)
        peaks, offsets = peaks[1:], offsets[1:]
        n_steps = 1  # that each row has made
        while n_steps < len(peaks):
            done, later = offsets[:n_steps], peaks[n_steps:]
            offsets = torch.cat([done, offsets[:-n_steps].gather(1, later) + offsets[n_steps:]])
            peaks = torch.cat([peaks[:n_steps], peaks[:-n_steps].gather(1, later)])
            n_steps *= 2
        return torch.cat([first[None], first[peaks] + offsets]).remainder(2 * math.pi)

    def _consistent(
        self, magnitude: Tensor, phases: Tensor, weight: Tensor, before: Tensor
    ) -> Tensor:
        """Iterates from the given phases, as `MagnitudeVocoder`: the spectrum of `RealDft`."""
        weight = weight.clamp(min=LEAST_WEIGHT)
        magnitude, spectrum = self.dft.polar(magnitude, phases)  # (C, T, D), (C, T, 2 D)
        if self.vocoder.iterations == 0:  # a scan has one step or more
            return spectrum
        iterate = partial(self._iterated, magnitude, weight, before)
        start = spectrum, 0 * spectrum  # zeros would be a constant of the file
        (spectrum, _), _ = scan(iterate, start, torch.arange(self.vocoder.iterations))
        return spectrum

    def _iterated(
        self, magnitude: Tensor, weight: Tensor, before: Tensor, past: _Pair, number: Tensor
    ) -> tuple[_Pair, Tensor]:
        """Runs one iteration: the spectrum, and the consistent one that it was moved from."""
        (spectrum, previous), T = past, magnitude.shape[1]
        window = self.vocoder.window
        wav = self._added(self.dft.inverse(spectrum) * window, before) / weight
        blocks = [wav[block : block + T] for block in range(self.n_blocks)]
        frames = torch.cat(blocks, 1)[:, : self.mel.n_fft] * window
        consistent = self.dft(frames)
        moved = consistent - griffin_lim.MOMENTUM / (1 + griffin_lim.MOMENTUM) * previous
        real, imaginary = moved.chunk(2, dim=2)
        gain = magnitude * (real * real + imaginary * imaginary).clamp(min=1e-32).rsqrt()
        return (moved * torch.cat([gain, gain], 2), consistent), number.clone()

    def _added(self, frames: Tensor, before: Tensor) -> Tensor:
        """Adds overlapping frames and those before: (T, n_fft) -> (T + n_blocks - 1, hop)."""
        return overlapped(frames, self.mel.hop_length) + F.pad(before, (0, 0, 0, len(frames)))


class RealDft(nn.Module):
    """The discrete Fourier transform of real frames as products with small matrices.

    For runtimes without a fast transform, such as ONNX's, whose operator takes four times as long.
    With n_fft = N = A B, sample B a + b and bin c + A d (Cooley and Tukey 1965), the DFT is

        X[c + A d] = sum_b exp(-2 pi i b (c + A d) / N) sum_a exp(-2 pi i a c / A) x[B a + b]

    Real frames need c only from 0 to A / 2: the other bins are complex conjugates. Spectra have
    bins in rows c and columns d, (C, T, 2 D): real parts, then imaginary ones.
    """

    bins: Tensor
    sign: Tensor
    over_rows: Tensor
    over_columns: Tensor
    to_rows: Tensor
    to_columns: Tensor

    def __init__(self, n_fft: int) -> None:
        super().__init__()
        A = math.gcd(n_fft, _MAX_ROWS)
        self.n_fft, self.A, self.B, self.C = n_fft, A, n_fft // A, A // 2 + 1
        c = torch.arange(self.C)
        b = d = torch.arange(self.B)
        number = c[:, None] + A * d  # (C, D) of a bin, up to N
        turns = (c[:, None] * torch.arange(A)).double() / A
        cosines, sines = (2 * math.pi * turns).cos(), (2 * math.pi * turns).sin()  # (C, A)
        count = torch.where((c == 0) | (2 * c == A), 1, 2).double()[:, None]  # with conjugates
        turns = (b[:, None] * number[:, None]).double() / n_fft  # (C, B, D)
        real, imaginary = (2 * math.pi * turns).cos(), (2 * math.pi * turns).sin()
        columns = torch.cat([torch.cat([real, -imaginary], 2), torch.cat([imaginary, real], 2)], 1)
        tensors = {
            "bins": torch.minimum(number, n_fft - number),  # (C, D) of the usual half spectrum
            "sign": torch.where(2 * number > n_fft, -1.0, 1.0),  # -1: that bin's conjugate
            "over_rows": torch.cat([cosines, -sines]),  # (2 C, A)
            "over_columns": columns,  # (C, 2 B, 2 D)
            "to_columns": columns.mT.contiguous(),
            "to_rows": torch.cat([count * cosines, -count * sines]).T / n_fft,  # (A, 2 C)
        }
        for name, tensor in tensors.items():
            kept = tensor.float() if tensor.is_floating_point() else tensor
            self.register_buffer(name, kept, persistent=False)

    def polar(self, magnitude: Tensor, phases: Tensor) -> tuple[Tensor, Tensor]:
        """Orders magnitudes and phases, (T, N / 2 + 1): magnitudes (C, T, D), spectrum."""
        ordered = (values[:, self.bins].transpose(0, 1) for values in (magnitude, phases))
        magnitude, phases = ordered  # (C, T, D) each
        parts = phases.cos(), phases.sin() * self.sign[:, None]
        return magnitude, torch.cat([magnitude * part for part in parts], 2)

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
