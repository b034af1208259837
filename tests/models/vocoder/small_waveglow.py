"""A WaveGlow of a few thousand weights, for tests."""

import torch

from models.vocoder.waveglow import WaveGlow
from models.vocoder.waveglow.config import WaveGlowConfig
from modules.mel import MelConfig, MelSpectrogram
from processors.dataset.batch import VocoderBatch

MEL = MelConfig(8000, n_fft=256, win_length=256, hop_length=64, n_mels=8, f_max=4000)
SIZES = WaveGlowConfig(flows=5, early_every=2, channels=8, n_layers=3)


def make_network(config=SIZES, mel=MEL, std=0.1):
    """One with random last layers, which training starts at zero."""
    torch.manual_seed(0)
    network = WaveGlow(config, mel).eval()
    for flow in network.flows:
        flow.coupling.end.weight.data.normal_(0, std)
        flow.coupling.end.bias.data.normal_(0, std)
    return network


def make_mel(n_frames, n_items=1):
    generator = torch.Generator().manual_seed(1)
    return torch.randn(n_items, MEL.n_mels, n_frames, generator=generator) - 4


def make_wav(n_frames, n_items=1):
    """Tones that swell."""
    times = torch.arange(n_frames * MEL.hop_length) / MEL.sample_rate
    pitches = 200 + 100 * torch.arange(n_items)[:, None]
    return 0.3 * torch.sin(2 * torch.pi * pitches * times) * torch.sin(20 * times).square()


def make_batch(n_frames, n_items=2):
    wav = make_wav(n_frames, n_items)
    mel = MelSpectrogram(MEL)(wav)
    lengths = torch.full((n_items,), n_frames)
    return VocoderBatch(tuple(f"clip-{n}" for n in range(n_items)), mel, lengths, wav)
