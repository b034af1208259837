import math

import pytest
import torch

from models.synthesizer.resampling_vocoder import ResamplingVocoder
from modules.griffin_lim import GriffinLim
from modules.mel import MelConfig, MelSpectrogram

SOURCE = MelConfig()
TARGETS = [
    MelConfig(sample_rate=24000, hop_length=240, padding="hifigan"),
    MelConfig(sample_rate=16000, hop_length=200, win_length=800),
    MelConfig(hop_length=200),
]


class Tone:
    """Speaks a tone of 440 Hz as long as its mel, piece by piece."""

    def __init__(self, mel: MelConfig) -> None:
        self.mel = mel

    def infer(self, mel, mel_lengths):
        n_samples = mel.shape[2] * self.mel.hop_length
        wav = torch.sin(2 * math.pi * 440 * torch.arange(n_samples) / self.mel.sample_rate)
        valid = torch.arange(n_samples) < mel_lengths[:, None] * self.mel.hop_length
        return 0.5 * wav * valid

    def generate(self, mel, chunk_frames=None):
        whole = self.infer(mel, torch.tensor([mel.shape[2]]))
        yield from whole.split((chunk_frames or 7) * self.mel.hop_length, dim=1)


def vocoder_of(target):
    return ResamplingVocoder(Tone(target), SOURCE, target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("n_frames", [1, 2, 37, 100])
def test_the_wav_is_as_long_as_the_mel(target, n_frames):
    mel = torch.randn(1, 80, n_frames) - 5
    assert vocoder_of(target).infer(mel).shape == (1, n_frames * 256)
    pieces = list(vocoder_of(target).generate(mel))
    assert sum(piece.shape[1] for piece in pieces) == n_frames * 256


@pytest.mark.parametrize("target", TARGETS)
def test_a_tone_keeps_its_pitch_and_level(target):
    wav = vocoder_of(target).infer(torch.randn(1, 80, 100) - 5)[0]
    expected = 0.5 * torch.sin(2 * math.pi * 440 * torch.arange(len(wav)) / 22050)
    middle = slice(2000, -2000)
    assert (wav - expected)[middle].abs().max() < 1e-3


@pytest.mark.parametrize("target", TARGETS)
def test_pieces_join_up_to_the_whole(target):
    mel = torch.randn(1, 80, 100) - 5
    pieces = list(vocoder_of(target).generate(mel))
    whole = vocoder_of(target).infer(mel)
    assert len(pieces) > 5
    assert (torch.cat(pieces, dim=1) - whole).abs().max() < 1e-6
    few = list(vocoder_of(target).generate(mel.split(30, dim=2), 50))
    assert 1 < len(few) < len(pieces)
    assert (torch.cat(few, dim=1) - whole).abs().max() < 1e-6


def test_items_of_a_batch_are_spoken_as_if_alone():
    vocoder = vocoder_of(TARGETS[0])
    mel, lengths = torch.randn(2, 80, 60) - 5, torch.tensor([60, 21])
    together = vocoder.infer(mel, lengths)
    alone = vocoder.infer(mel[1:, :, :21])
    assert torch.allclose(together[1:, : 21 * 256], alone, atol=1e-6)
    assert not together[1, 21 * 256 :].any()


def test_the_sound_has_the_mel_that_was_given():
    """A chord by Griffin-Lim at 24 kHz; at 22.05 kHz itself it comes to 0.35."""
    times = torch.arange(22050) / 22050
    chord = sum(torch.sin(2 * math.pi * 200 * k * times) / k for k in range(1, 30))
    wav = 0.1 * chord[None] + 0.003 * torch.randn(1, 22050)
    mel = MelSpectrogram(SOURCE)(wav)
    target = TARGETS[0]
    vocoder = ResamplingVocoder(GriffinLim(target, iterations=30), SOURCE, target)
    spoken = MelSpectrogram(SOURCE)(vocoder.infer(mel))
    middle = slice(5, -5)
    assert (spoken - mel)[:, :, middle].abs().mean() < 0.5
