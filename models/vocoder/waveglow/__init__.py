"""WaveGlow (Prenger et al. 2018, "WaveGlow: A Flow-based Generative Network", arXiv:1811.00002).

A flow that maps audio to Gaussian noise of the same size, given the mel, and back. Layers, their
order and the upsampling are those of NVIDIA's implementation, whose checkpoints can be loaded. It
departs from that in that
- kernel and stride of the upsampling follow from the mel definition (there: 1024 and 256);
- log-determinants are of |det W|, so that they stay finite when a determinant turns negative;
- the noise of inference is a function of a seed and of the position in the utterance, so that
  neither batches nor windows change the audio. All utterances start from the same noise;
- long mels are synthesised in windows with all the context that the flow depends on.
"""

from collections.abc import Iterator, Mapping
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.parametrizations import weight_norm

from config.preprocess import PreprocessConfig
from config.schema import Config
from models.base.assets import Assets
from models.base.graphs import EXAMPLE_LENGTH, Graph, Graphs
from models.base.model import Model
from models.base.results import resynthesis_samples
from models.base.task import LossTerm, MetricTerm, Sample, Unit, Update
from models.vocoder.waveglow.config import WaveGlowConfig
from models.vocoder.waveglow.flows import CouplingNetwork
from models.vocoder.waveglow.network import Latent, WaveGlow
from modules.execution.chunks import SignalConv1d
from modules.mel import MelConfig, MelSpectrogram
from modules.waveform.griffin_lim_graph import RealDft
from modules.waveform.inverse_stft import overlapped
from processors.dataset.batch import VocoderBatch


class WaveGlowGraph(nn.Module):
    """Mel and noise to waveform, in one window: noise is an input, the denoiser has no FFT."""

    removed: Tensor | None

    def __init__(self, network: WaveGlow) -> None:
        super().__init__()
        self.network = network
        self.dft = RealDft(network.mel.n_fft)
        strength, hum = network.config.denoiser_strength, network.hum
        removed = None if hum is None else strength * hum[:, 0][self.dft.bins]
        self.register_buffer("removed", removed, persistent=False)  # (C, D)

    def forward(self, mel: Tensor, noise: Tensor) -> Tensor:
        """Synthesises one item: (1, M, T), Gaussian noise (1, T, hop) -> (1, T * hop)."""
        config = self.network.config
        z = config.sigma * noise.reshape(1, -1, config.groups).mT  # (1, G, L)
        wav = self.network.inverse(z, mel)
        if self.removed is not None:
            wav = self._denoised(wav[0], self.removed)[None]
        return wav.clamp(-1, 1)

    def _denoised(self, wav: Tensor, removed: Tensor) -> Tensor:
        """Subtracts the bias spectrum, as `Denoiser` does: (S,) -> (S,)."""
        n_fft, hop = self.network.mel.n_fft, self.network.mel.hop_length
        window, margin, S = self.network.denoiser.window, n_fft // 2, wav.shape[0]
        wav = F.pad(wav, (0, torch.sym_max(S, n_fft) - S))
        starts = hop * torch.arange(1 + wav.shape[0] // hop)  # of frames, (T,)
        reflected = F.pad(wav[None], (margin, margin), mode="reflect")[0]
        frames = reflected[starts[:, None] + torch.arange(n_fft)] * window  # (T, n_fft)
        spectrum = self.dft(frames)
        real, imaginary = spectrum.chunk(2, dim=2)
        magnitude = (real * real + imaginary * imaginary).sqrt().clamp(min=1e-12)
        gain = (magnitude - removed[:, None]).clamp(min=0) / magnitude
        cleaned = self.dft.inverse(spectrum * torch.cat([gain, gain], 2)) * window
        weight = overlapped(window.square().expand(frames.shape[0], -1), hop)
        padded = (overlapped(cleaned, hop) / weight.clamp(min=1e-12)).flatten()
        return padded[margin : margin + S]


def waveglow_graphs(network: WaveGlow) -> Graphs:
    """Makes the graph "vocoder"; its input "noise" has a number for each sample."""
    M, hop, T = network.mel.n_mels, network.mel.hop_length, EXAMPLE_LENGTH
    inputs = {"mel": torch.zeros(1, M, T), "noise": torch.zeros(1, T, hop)}
    lengths = {"mel": {2: "n_frames"}, "noise": {1: "n_frames"}}
    return {"vocoder": Graph(WaveGlowGraph(network.for_inference()), inputs, ("wav",), lengths)}


def negative_log_likelihood(latent: Latent, sigma: float) -> Tensor:
    """Sums negative log-likelihoods (eq. 3) of samples, in nats, without a constant."""
    return latent.z.square().sum() / (2 * sigma**2) - latent.log_scales.sum() - latent.log_det.sum()


def normalise_weights(network: WaveGlow) -> None:
    """Applies weight normalisation to the convolutions of the couplings, except the last."""
    for module in list(network.modules()):
        if isinstance(module, CouplingNetwork):
            weight_norm(module.mel_conv)
        elif isinstance(module, SignalConv1d):
            weight_norm(module)


class WaveGlowTask:
    """Training of a network with weight normalisation, by maximum likelihood on segments."""

    exported = "model"

    def __init__(self, network: WaveGlow, config: WaveGlowConfig, mel: MelConfig) -> None:
        self.network = network
        self.networks: dict[str, nn.Module] = {"model": network}
        self.config = config
        self._mel = MelSpectrogram(mel)

    @classmethod
    def build(cls, config: Config, assets: Assets) -> "WaveGlowTask":
        """Builds the task of an experiment."""
        model = cast("WaveGlowConfig", config.model)
        network = WaveGlow.build(model, assets)
        normalise_weights(network)
        return cls(network, model, assets.mel)

    def counts(self, batch: VocoderBatch) -> dict[Unit, int]:
        """Counts the valid elements of the batch, by unit."""
        n_frames = int(batch.mel_lengths.sum())
        n_samples = n_frames * self._mel.config.hop_length
        return {"items": len(batch.ids), "frames": n_frames, "samples": n_samples}

    def training_step(self, batch: VocoderBatch) -> Iterator[Update]:
        """Yields the update of the network."""
        yield Update("model", {"nll": self._likelihood(batch.wav, batch.mel)})

    def _likelihood(self, wav: Tensor, mel: Tensor) -> LossTerm:
        latent = self.network(wav, mel)
        return LossTerm(negative_log_likelihood(latent, self.config.train_sigma), "samples")

    @torch.no_grad()
    def validation_step(self, batch: VocoderBatch) -> Mapping[str, LossTerm | MetricTerm]:
        """Computes likelihoods of whole recordings, and the mel L1 of their resynthesis."""
        mel_of = self._mel.to(batch.wav.device)
        likelihood, distance = batch.wav.new_zeros(()), 0.0
        for item, T in enumerate(batch.mel_lengths.tolist()):
            mel = batch.mel[item : item + 1, :, :T]
            wav = batch.wav[item : item + 1, : T * mel_of.config.hop_length]
            likelihood += self._likelihood(wav, mel).total
            distance += float((mel_of(self.network.infer(mel)) - mel_of(wav)).abs().mean())
        mel_l1 = MetricTerm(distance, len(batch.ids))
        return {"nll": LossTerm(likelihood, "samples"), "mel_l1": mel_l1}

    def samples(self, batch: VocoderBatch) -> Iterator[Sample]:
        """Resynthesises the batch."""
        wav_hat = self.network.infer(batch.mel, batch.mel_lengths)
        return resynthesis_samples(batch, wav_hat, self._mel)


def _check_hop(model: WaveGlowConfig, preprocess: PreprocessConfig) -> None:
    """Refuses frames that are no whole number of groups."""
    if (hop := preprocess.hop_length) % model.groups:
        found = f"model.groups is {model.groups}, preprocess.hop_length is {hop}"
        raise ValueError(f"{found}; expected a hop that is a multiple of it")


MODEL = Model(
    config=WaveGlowConfig,
    network=WaveGlow,
    task=WaveGlowTask,
    check=_check_hop,
    options=("sigma", "denoiser_strength"),
    graphs=waveglow_graphs,
)
