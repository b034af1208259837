"""FreeVGL: STFT magnitudes by a small network, phases by Griffin-Lim.

The network is the amplitude part of FreeV (Lv et al. 2024, "FreeV: Free Lunch For Vocoders Through
Pseudo Inversed Mel Filter", arXiv:2406.08196): ConvNeXt blocks at frame rate correct the magnitudes
that the filter bank of the mel gives. It departs from FreeV in that
- phases are not learned: phase gradient integration and some iterations of Griffin-Lim
  (modules/waveform/griffin_lim.py) estimate them, so training takes minutes on a CPU;
- discriminators see magnitudes, not waveforms, after training without them;
- the prior interpolates the level of the mel bands, which is positive everywhere, where FreeV takes
  the absolute value of the pseudo-inverse;
- the blocks read the mel, not the prior;
- multiplicative updates move the magnitudes towards the given mel;
- training varies the level of the segments and blurs their mels, so that the network handles the
  smooth mels of acoustic models.
"""

import copy
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from config.schema import Config, VocoderPrecision
from models.base.adversarial import (
    BandDiscriminator,
    Discriminators,
    adversarial_losses,
    discriminator_losses,
    frozen,
    mean_per_item,
)
from models.base.assets import Assets
from models.base.graphs import vocoder_graphs
from models.base.model import Model
from models.base.results import resynthesis_samples
from models.base.task import LossTerm, MetricTerm, Sample, Unit, Update
from models.vocoder.freevgl.config import FreeVGLConfig
from modules.layers.basic import ConvNeXtBlock, Linear
from modules.losses import MultiResolutionStft
from modules.mel import MelConfig, MelSpectrogram, fit_mel, spread_mel
from modules.waveform.griffin_lim import MagnitudeVocoder
from modules.waveform.griffin_lim_graph import GriffinLimGraph
from processors.dataset.batch import VocoderBatch
from utils.errors import InputError

# approximate means and standard deviations of log-mels and of log magnitudes of speech
_MEL_MEAN, _MEL_STD = -5.0, 2.0
_LOG_SCALE = -4.0, 2.5
_QUIET = math.log(3e-4)  # smaller log magnitudes count as equal: -85 dB of a full-scale sine
_LAYERS = (((7, 3), (2, 1)), ((7, 3), (2, 1)), ((5, 3), (2, 2)), ((3, 3), (1, 1)))
_BLUR_REACH = 5  # frames or bands on either side
_FIRST_SCALE = 0.2  # of the residual branches


class FreeVGL(MagnitudeVocoder):
    """Mel to waveform."""

    def __init__(self, config: FreeVGLConfig, mel: MelConfig) -> None:
        channels, margin = config.channels, config.kernel_size // 2
        super().__init__(mel, config.iterations, reach=margin * (1 + config.n_layers))
        self.config = config
        self.first_conv = nn.Conv1d(mel.n_mels, channels, config.kernel_size, padding=margin)
        self.first_norm = nn.LayerNorm(channels)
        sizes = channels, config.expansion * channels, config.kernel_size
        blocks = (ConvNeXtBlock(*sizes, scale=_FIRST_SCALE) for _ in range(config.n_layers))
        self.blocks = nn.ModuleList(blocks)
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


class MagnitudeDiscriminator(Discriminators):
    """One `BandDiscriminator` for each band of frequencies.

    Their input is natural log magnitudes and, as condition, the level of the mel bands, (B, 2, K,
    T): adversarial training needs no phases and no waveform. Bands are shares of half the sample
    rate, from and to.
    """

    def __init__(self, bands: Sequence[tuple[float, float]], channels: int, mel: MelConfig) -> None:
        last = mel.n_fft // 2
        bins = (slice(int(low * last), int(high * last) + 1) for low, high in bands)
        super().__init__(BandDiscriminator(part, channels, _LAYERS, *_LOG_SCALE) for part in bins)


class Spectra(NamedTuple):
    """Magnitudes that the network predicts from a mel, and those of its recording, (B, K, T)."""

    log_magnitude_hat: Tensor
    magnitude: Tensor
    log_spread: Tensor  # of the mel alone, spread over the bins


class FreeVGLTask:
    """Training on recordings, or on the mels that an acoustic model predicts for them.

    With discriminators, adversarial and feature-matching losses are added to the reconstruction
    losses.
    """

    exported = "model"

    def __init__(
        self,
        network: FreeVGL,
        discriminator: MagnitudeDiscriminator | None,
        config: FreeVGLConfig,
        mel: MelConfig,
    ) -> None:
        self.networks: dict[str, nn.Module] = {"model": network}
        if discriminator is not None:
            self.networks["discriminator"] = discriminator
        self.network, self.config = network, config
        self._mel, self._stft = MelSpectrogram(mel), MultiResolutionStft()
        self._edge = edge_frames(mel)
        self.begin_update(0)

    @classmethod
    def build(cls, config: Config, assets: Assets) -> "FreeVGLTask":
        """Builds the task of an experiment."""
        model = cast("FreeVGLConfig", config.model)
        least = 2 * edge_frames(assets.mel) + 1
        if (frames := config.train.cut_mel_frame) < least:
            need = f"FreeVGL needs {least} or more, since losses leave out the ends of a segment"
            raise InputError(f"train.cut_mel_frame is {frames}; {need}")
        discriminator = None
        if model.lambda_adversarial:
            discriminator = MagnitudeDiscriminator(model.bands, model.band_channels, assets.mel)
        return cls(FreeVGL.build(model, assets), discriminator, model, assets.mel)

    def begin_update(self, step: int) -> None:
        """Sets the loss weights for the update after `step` completed updates."""
        started = step >= self.config.adversarial_start
        weights = (self.config.lambda_adversarial, self.config.lambda_feature)
        self._adversarial_weights = weights if started else (0.0, 0.0)

    def counts(self, batch: VocoderBatch) -> dict[Unit, int]:
        """Counts the valid elements of the batch, by unit."""
        return {"items": len(batch.ids), "frames": int(batch.mel_lengths.sum())}

    def training_step(self, batch: VocoderBatch) -> Iterator[Update]:
        """Yields the update of the discriminators, if there are any, then that of the network."""
        gain = self._random_gains(batch.wav)  # (B, 1)
        floor = self._mel.config.log_floor_value
        mel = self._blur((batch.mel + gain.log()[:, :, None]).clamp(min=floor))
        spectra = self.spectra(mel, batch.wav * gain, edge=self._edge)
        if "discriminator" not in self.networks:
            yield Update("model", self.reconstruction_losses(spectra))
            return
        discriminator, (recorded, predicted) = self.networks["discriminator"], _images(spectra)
        losses = discriminator_losses(discriminator, recorded, predicted.detach())
        yield Update("discriminator", losses)
        with frozen(discriminator):
            weights = self._adversarial_weights
            adversarial = adversarial_losses(discriminator, recorded, predicted, *weights)
            yield Update("model", self.reconstruction_losses(spectra) | adversarial)

    def spectra(self, mel: Tensor, wav: Tensor, edge: int = 0) -> Spectra:
        """Predicts magnitudes from a mel, (B, M, T), of recordings, (B, T * hop_length).

        `edge` frames at both ends are cut.
        """
        mel_of = self._mel.to(wav.device)
        magnitude = mel_of.magnitude(wav)
        log_spread = spread_mel(mel.exp(), mel_of.filters).log()
        inner = slice(edge, magnitude.shape[2] - edge)
        all_frames = self.network(mel).float(), magnitude, log_spread
        return Spectra(*(values[..., inner] for values in all_frames))

    def reconstruction_losses(self, spectra: Spectra) -> dict[str, LossTerm]:
        """Computes the L1 of log magnitudes, of magnitudes relative to the frame, and of mels."""
        log_magnitude_hat, magnitude, _ = spectra
        mel_of, magnitude_hat = self._mel.to(magnitude.device), log_magnitude_hat.exp()
        log_distance = (log_magnitude_hat.clamp(min=_QUIET) - _audible_log(magnitude)).abs()
        level = magnitude.sum(dim=1, keepdim=True) + 0.1  # silent frames weigh less
        linear_distance = (magnitude_hat - magnitude).abs().sum(dim=1, keepdim=True) / level
        mel_distance = (mel_of.log_mel(magnitude_hat) - mel_of.log_mel(magnitude)).abs()
        return {
            "log_magnitude": mean_per_item([log_distance]),
            "linear_magnitude": mean_per_item([linear_distance], self.config.lambda_linear),
            "mel": mean_per_item([mel_distance], self.config.lambda_mel),
        }

    def validation_losses(self, spectra: Spectra) -> dict[str, LossTerm]:
        """Computes the trained losses; with discriminators, distances of mean and deviation.

        A distance of magnitudes prefers blurred ones, so it does not choose among checkpoints.
        """
        losses = self.reconstruction_losses(spectra)
        if "discriminator" not in self.networks:
            return losses
        deviations = []  # of log magnitudes around each bin, (B, 1, K, T) without edges
        for logs in (images[:, :1] for images in _images(spectra)):
            means, squares = (F.avg_pool2d(part, (7, 3), 1) for part in (logs, logs.square()))
            deviations.append((squares - means.square()).clamp(min=0).sqrt())
        contrast = mean_per_item([(deviations[0] - deviations[1]).abs()])
        return {"mel": losses["mel"]._replace(weight=1.0), "contrast": contrast}

    @torch.no_grad()
    def validation_step(self, batch: VocoderBatch) -> Mapping[str, LossTerm | MetricTerm]:
        """Computes losses of whole recordings, and the STFT distance of their resynthesis."""
        totals, stft = dict[str, LossTerm](), 0.0
        for item, T in enumerate(batch.mel_lengths.tolist()):
            mel = batch.mel[item : item + 1, :, :T]
            wav = batch.wav[item : item + 1, : T * self._mel.config.hop_length]
            for name, term in self.validation_losses(self.spectra(mel, wav)).items():
                before = totals[name].total if name in totals else 0.0
                totals[name] = term._replace(total=term.total + before)
            stft += float(self._stft.to(wav.device)(self.network.infer(mel), wav).sum())
        return {**totals, "stft": MetricTerm(stft, len(batch.ids))}

    def samples(self, batch: VocoderBatch) -> Iterator[Sample]:
        """Resynthesises the batch."""
        wav_hat = self.network.infer(batch.mel, batch.mel_lengths)
        return resynthesis_samples(batch, wav_hat, self._mel)

    def _random_gains(self, wav: Tensor) -> Tensor:
        """Draws factors on the level that do not clip, (B, S) -> (B, 1)."""
        share_of_range = 2 * torch.rand(len(wav), 1, device=wav.device) - 1
        gain = 10 ** (share_of_range * self.config.gain_db / 20)
        return torch.minimum(gain, 1 / wav.abs().amax(dim=1, keepdim=True).clamp(min=1e-4))

    def _blur(self, mel: Tensor) -> Tensor:
        """Blurs some items of (B, M, T) by Gaussians of random width, over time and frequency."""
        config = self.config
        chosen = torch.rand(len(mel), device=mel.device) < config.blurred
        kernels = []
        for width in (config.blur_frames, config.blur_bands):
            deviation = chosen * width * torch.rand(len(mel), device=mel.device)  # 0 is no blur
            offsets = torch.arange(-_BLUR_REACH, _BLUR_REACH + 1, device=mel.device)
            exponents = -0.5 * (offsets / deviation.clamp(min=1e-2)[:, None]).square()
            kernels.append(torch.softmax(exponents, dim=1))  # (B, 2 * _BLUR_REACH + 1)
        over_time, over_bands = kernels
        mel = _convolve(mel.transpose(0, 1), over_time).transpose(0, 1)
        return _convolve(mel.permute(2, 0, 1), over_bands).permute(1, 2, 0)


def edge_frames(mel: MelConfig) -> int:
    """Counts the frames at either end of a segment whose STFT reads samples beyond it."""
    return math.ceil(mel.n_fft / 2 / mel.hop_length)


def _convolve(signals: Tensor, kernels: Tensor) -> Tensor:
    """Convolves items with their kernels: (N, B, L), (B, K) -> (N, B, L), edges repeated."""
    padded = F.pad(signals, (_BLUR_REACH, _BLUR_REACH), mode="replicate")
    return F.conv1d(padded, kernels[:, None], groups=len(kernels))


def _audible_log(magnitude: Tensor) -> Tensor:
    return magnitude.clamp(min=math.exp(_QUIET)).log()


def _images(spectra: Spectra) -> tuple[Tensor, Tensor]:
    """Makes images for the discriminators: recorded and predicted, (B, 2, K, T) each.

    The second channel of both is the level of the mel bands.
    """
    mel = spectra.log_spread.clamp(min=_QUIET)
    recorded = _audible_log(spectra.magnitude)
    predicted = spectra.log_magnitude_hat.clamp(min=_QUIET)
    return torch.stack([recorded, mel], dim=1), torch.stack([predicted, mel], dim=1)


MODEL = Model(
    config=FreeVGLConfig,
    network=FreeVGL,
    task=FreeVGLTask,
    graphs=lambda network: vocoder_graphs(GriffinLimGraph(network), network.mel.n_mels),
)
