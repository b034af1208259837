"""WaveGlow's flow (section 2 of the paper), and how it synthesises piece by piece."""

import copy
from collections.abc import Iterable, Iterator
from functools import partial
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from config.schema import VocoderPrecision
from models.base.assets import Assets
from models.vocoder.waveglow.config import WaveGlowConfig
from models.vocoder.waveglow.flows import FlowStep
from modules.execution.chunks import Context, by_item, windows
from modules.mel import MelConfig
from utils.seed import derived_seed

_CHUNK_FRAMES = 384  # on a CPU: a quarter of the work is context, and tensors stay small
_GPU_CHUNK_FRAMES = 4096
_NOISE_FRAMES = 64  # drawn together from a generator of their own
_HUM_FRAMES = 88  # of the zero mel that the denoiser listens to, as in NVIDIA's


class Denoiser(nn.Module):
    """Removes the constant hum of a vocoder from its audio (the denoiser of NVIDIA's WaveGlow).

    A vocoder adds nearly the same spectrum to everything that it synthesises. That spectrum, times
    a strength, is subtracted from the STFT magnitudes; phases are kept. An output sample depends on
    n_fft samples on either side.
    """

    window: Tensor

    def __init__(self, mel: MelConfig) -> None:
        super().__init__()
        self._mel = mel
        margin = mel.n_fft - mel.win_length
        window = F.pad(torch.hann_window(mel.win_length), (margin // 2, margin - margin // 2))
        self.register_buffer("window", window, persistent=False)

    def spectrum(self, wav: Tensor) -> Tensor:
        """Computes magnitudes of the first frame of a hum: (1, S) -> (n_fft // 2 + 1, 1)."""
        return self._stft(wav)[0, :, :1].abs()

    def forward(self, wav: Tensor, hum: Tensor) -> Tensor:
        """Removes a hum, magnitudes (n_fft // 2 + 1, 1): (B, S) -> (B, S)."""
        n_samples = wav.shape[1]
        # reflection at the edges needs more samples than half a frame
        n_fft, hop_length = self._mel.n_fft, self._mel.hop_length
        wav = F.pad(wav, (0, max(0, n_fft - n_samples)))
        spectrum = self._stft(wav)
        spectrum = torch.polar((spectrum.abs() - hum).clamp(min=0), spectrum.angle())
        denoised = torch.istft(spectrum, n_fft, hop_length, window=self.window, length=wav.shape[1])
        return denoised[:, :n_samples]

    def _stft(self, wav: Tensor) -> Tensor:
        n_fft, hop_length = self._mel.n_fft, self._mel.hop_length
        return torch.stft(wav, n_fft, hop_length, window=self.window, return_complex=True)


class Latent(NamedTuple):
    """What the flow maps audio to. G samples form a group, of which there are L = S / G.

    The log-determinant of the whole map is `log_scales + log_det`.
    """

    z: Tensor  # (B, G, L); channels in the order in which they leave the flow
    log_scales: Tensor  # (B,), sum of log s over couplings and positions
    log_det: Tensor  # (B,), sum of log |det W| over mixings and positions


class WaveGlow(nn.Module):
    """Mel and noise to waveform, and back."""

    hum: Tensor | None  # what the denoiser removes; set for inference, when weights are fixed

    def __init__(self, config: WaveGlowConfig, mel: MelConfig) -> None:
        super().__init__()
        self.config, self.mel = config, mel
        self.groups_per_frame = mel.hop_length // config.groups
        M = mel.n_mels
        self.upsample = nn.ConvTranspose1d(M, M, mel.win_length, stride=mel.hop_length)
        channels = map(config.channels_of, range(config.flows))
        self.flows = nn.ModuleList(FlowStep(config, n, M * config.groups) for n in channels)
        self.denoiser = Denoiser(mel)
        self.register_buffer("hum", None, persistent=False)
        self._dtype = torch.float32  # of the couplings

    @classmethod
    def build(cls, config: WaveGlowConfig, assets: Assets) -> "WaveGlow":
        """Builds the network for a mel."""
        return cls(config, assets.mel)

    def forward(self, wav: Tensor, mel: Tensor) -> Latent:
        """Maps audio (B, T * hop_length) with a mel (B, M, T) to noise; items have one length."""
        (B, S), T, hop = wav.shape, mel.shape[2], self.mel.hop_length
        if T * hop != S:
            raise ValueError(f"{S} samples and {T} frames; expected {hop} samples a frame")
        conditioning = self._conditioning(mel)
        signal = wav.view(B, -1, self.config.groups).mT  # (B, G, L)
        left_early: list[Tensor] = []
        log_scales, log_det = wav.new_zeros(B), wav.new_zeros(())
        for number, flow in enumerate(self._steps()):
            if self.config.leaves_before(number):
                early, signal = signal.tensor_split([self.config.early_size], dim=1)
                left_early.append(early)
            step = flow(signal, conditioning)
            signal = step.signal
            log_scales, log_det = log_scales + step.log_scales, log_det + step.log_det
        z = torch.cat([*left_early, signal], dim=1)
        return Latent(z, log_scales, (log_det * z.shape[2]).expand(B))

    @torch.no_grad()
    def inverse(self, z: Tensor, mel: Tensor) -> Tensor:
        """Maps noise z, (B, G, L) as in `Latent`, to audio, not limited to [-1, 1]."""
        return self._invert(z, self._conditioning(mel), Context(), 0)

    def _invert(self, z: Tensor, conditioning: Tensor, context: Context, margin: int) -> Tensor:
        """Inverts (B, G, left + L + right) -> (B, n); drops context that no later step needs.

        The conditioning is (B, K, left + L + right); the result keeps `margin` of the context.
        """
        sizes = [self.config.early_size] * ((len(self.flows) - 1) // self.config.early_every)
        *early, signal = z.split([*sizes, z.shape[1] - sum(sizes)], dim=1)
        for number, flow in reversed([*enumerate(self._steps())]):
            needed = margin + (number + 1) * self.config.coupling_reach
            signal, kept = context.trim(signal, needed)
            early = [context.trim(part, needed)[0] for part in early]
            conditioning, context = context.trim(conditioning, needed)[0], kept
            signal = flow.inverse(signal, conditioning)
            if self.config.leaves_before(number):
                signal = torch.cat([early.pop(), signal], dim=1)
        signal, _ = context.trim(signal, margin)
        return signal.mT.flatten(1)

    def _steps(self) -> list[FlowStep]:
        return [cast("FlowStep", flow) for flow in self.flows]

    def _conditioning(self, mel: Tensor) -> Tensor:
        """Upsamples the mel to groups, (B, M, T) -> (B, M * G, T * hop_length / G).

        Sample t depends on the frames from (t - win_length) / hop_length to t / hop_length.
        """
        B, M, T = mel.shape
        upsampled = self.upsample(mel)[:, :, : T * self.mel.hop_length]  # (B, M, S)
        grouped = upsampled.reshape(B, M, -1, self.config.groups).mT.flatten(1, 2)
        return grouped if self._dtype == torch.float32 else grouped.to(self._dtype)

    @torch.no_grad()
    def infer(self, mel: Tensor, mel_lengths: Tensor | None = None, *, seed: int = 0) -> Tensor:
        """Synthesises waveforms, item by item and in windows; call `eval()` first."""
        generate = partial(self.generate, seed=seed)
        return by_item(generate, mel, mel_lengths, self.mel.hop_length)

    @torch.no_grad()
    def generate(
        self, mel: Tensor | Iterable[Tensor], chunk_frames: int | None = None, *, seed: int = 0
    ) -> Iterator[Tensor]:
        """Synthesises a waveform chunk by chunk, for streaming; call `eval()` first.

        By default a chunk has 384 frames, on a GPU 4096; each also computes a context of up to a
        second on either side. All items have the noise of the seed.
        """
        if chunk_frames is None:
            chunk_frames = _GPU_CHUNK_FRAMES if self.upsample.weight.is_cuda else _CHUNK_FRAMES
        removed = self._removed_spectrum()
        margin = 0 if removed is None else _frames(self.mel.n_fft, self.mel)
        pieces = mel.float() if isinstance(mel, Tensor) else (piece.float() for piece in mel)
        for window in windows(pieces, chunk_frames, self.reach_frames + margin):
            z = self.noise(seed, window.start - window.context.left, window.signal)
            per_frame = self.groups_per_frame
            context = window.context.upsampled(per_frame)
            wav = self._invert(z, self._conditioning(window.signal), context, margin * per_frame)
            if removed is not None:
                wav = self.denoiser(wav, removed)
            kept = Context(*(min(side, margin) for side in window.context))
            yield kept.upsampled(self.mel.hop_length).trim(wav, 0)[0].clamp(-1, 1)

    @property
    def reach_frames(self) -> int:
        """Frames on either side that a sample depends on, without the denoiser."""
        config, mel = self.config, self.mel
        couplings = config.flows * config.coupling_reach * config.groups
        return _frames(couplings, mel) + _frames(mel.win_length - mel.hop_length, mel)

    def noise(self, seed: int, start: int, mel: Tensor) -> Tensor:
        """Draws the noise of a part of an utterance, the same whatever part it is in.

        It is drawn on the CPU, in blocks with a generator each, and is the same for all items.

        Args:
            start: Frame of the utterance where the part begins.
            mel: Mel of the part, (B, M, T); its batch size, length and device are used.

        Returns:
            (B, G, T * hop_length / G), of standard deviation `sigma`.
        """
        (B, _, T), n = mel.shape, _NOISE_FRAMES
        shape = (self.config.groups, n * self.groups_per_frame)
        blocks = []
        for block in range(start // n, (start + T - 1) // n + 1):
            generator = torch.Generator().manual_seed(derived_seed("waveglow", seed, block))
            blocks.append(torch.randn(shape, generator=generator))
        skipped = start % n * self.groups_per_frame
        part = torch.cat(blocks, dim=1)[:, skipped : skipped + T * self.groups_per_frame]
        return (self.config.sigma * part).to(mel.device).expand(B, -1, -1)

    def _removed_spectrum(self) -> Tensor | None:
        """Returns the spectrum to remove, (n_fft // 2 + 1, 1); None without the denoiser."""
        strength = self.config.denoiser_strength
        if strength == 0:
            return None
        return strength * (self._hum() if self.hum is None else self.hum)

    def _hum(self) -> Tensor:
        """Computes the spectrum of what is synthesised from a zero mel without noise."""
        like = self.upsample.weight
        z = like.new_zeros(1, self.config.groups, _HUM_FRAMES * self.groups_per_frame)
        wav = self.inverse(z, like.new_zeros(1, self.mel.n_mels, _HUM_FRAMES))
        return self.denoiser.spectrum(wav)

    def for_inference(self, precision: VocoderPrecision = "fp32") -> "WaveGlow":
        """Returns a copy that runs faster and cannot be trained.

        "bf16" and "mixed" have the couplings in bfloat16, except their last layers.
        """
        network = copy.deepcopy(self).requires_grad_(False)
        for flow in network._steps():
            flow.mixing.inverse_weight = flow.mixing.inverted().detach()
            if precision != "fp32":
                flow.coupling.bfloat16()
                flow.coupling.end.float()
        network._dtype = torch.float32 if precision == "fp32" else torch.bfloat16
        if network.config.denoiser_strength > 0:
            network.hum = network._hum()
        return network


def _frames(n_samples: int, mel: MelConfig) -> int:
    """Returns the number of frames that hold so many samples."""
    return -(-n_samples // mel.hop_length)
