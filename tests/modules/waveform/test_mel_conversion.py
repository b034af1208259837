import math
from pathlib import Path

import pytest
import soundfile
import soxr
import torch

from modules.mel import MelConfig, MelSpectrogram
from modules.waveform.mel_conversion import MelConverter, mel_to_magnitude

RECORDINGS = Path(__file__).parents[3] / "egs" / "_demo" / "LJSpeech-mini" / "wavs"
SOURCE = MelConfig()
TARGETS = {
    "itself": SOURCE,
    "half a hop later": MelConfig(padding="hifigan"),
    "other frames": MelConfig(n_fft=1200, win_length=1200, hop_length=300),
    "16 kHz": MelConfig(sample_rate=16000, hop_length=200, win_length=800),
    "24 kHz": MelConfig(sample_rate=24000, hop_length=240, n_mels=100, padding="hifigan"),
}


@pytest.fixture(scope="module")
def wav():
    wav, _ = soundfile.read(RECORDINGS / "LJ001-0002.flac", dtype="float32")
    return torch.from_numpy(wav)[None]


def at_rate(wav, rate):
    if rate == SOURCE.sample_rate:
        return wav
    return torch.from_numpy(soxr.resample(wav[0].numpy(), SOURCE.sample_rate, rate))[None]


def converted(wav, target):
    mel = MelSpectrogram(SOURCE)(wav)
    return MelConverter(SOURCE, target)(mel, torch.tensor([mel.shape[2]]))


def test_magnitudes_of_speech_are_recovered_from_its_mel(wav):
    spectrogram = MelSpectrogram(SOURCE)
    magnitude, bands = spectrogram.magnitude(wav), spectrogram(wav).exp()
    found = mel_to_magnitude(bands, spectrogram.filters)
    assert (found >= 0).all()
    assert (found - magnitude).norm() / magnitude.norm() < 0.22
    assert (spectrogram.filters @ found - bands).norm() / bands.norm() < 0.01


@pytest.mark.parametrize(
    ("name", "distance"),
    [
        ("itself", 0.01),
        ("half a hop later", 0.15),
        ("other frames", 0.15),
        ("16 kHz", 0.15),
        ("24 kHz", 0.2),
    ],
)
def test_converted_mels_are_close_to_those_of_the_audio(wav, name, distance):
    """For comparison: neighbouring frames differ by 0.45."""
    target = TARGETS[name]
    expected = MelSpectrogram(target)(at_rate(wav, target.sample_rate))
    mel = converted(wav, target)
    T = min(mel.shape[2], expected.shape[2])
    assert abs(mel.shape[2] - expected.shape[2]) <= 1
    assert (mel[:, :, :T] - expected[:, :, :T]).abs().mean() < distance


@pytest.mark.parametrize("name", TARGETS)
def test_noise_keeps_its_level(name):
    target = TARGETS[name]
    noise = 0.1 * torch.randn(1, 50000, generator=torch.Generator().manual_seed(0))
    # below 7.5 kHz: resampling must take nothing away
    expected = MelSpectrogram(target)(at_rate(noise, target.sample_rate))
    below = slice(0, int(0.9 * target.n_mels))
    difference = converted(noise, target)[0, below].mean() - expected[0, below].mean()
    assert abs(difference) < 0.1


def test_conversion_keeps_the_time_of_an_event():
    wav = 1e-4 * torch.randn(1, 22050, generator=torch.Generator().manual_seed(0))
    wav[:, 11025:11225] += torch.sin(2 * math.pi * 1000 * torch.arange(200) / 22050)
    for target in TARGETS.values():
        mel = converted(wav, target)
        centre = (target.n_fft / 2 - target.edge_samples[0]) / target.sample_rate
        hop_s = target.hop_length / target.sample_rate
        heard_s = mel[0].exp().sum(dim=0).argmax() * hop_s + centre
        assert heard_s == pytest.approx(11125 / 22050, abs=0.6 * hop_s + 0.006)


def test_frequencies_above_the_band_of_the_source_are_silent(wav):
    target = MelConfig(f_max=11025.0)
    mel = converted(wav, target)[0]
    assert mel[-5:].max().item() == pytest.approx(target.log_floor_value)
    assert mel[:40].max() > -2


@pytest.mark.parametrize("name", TARGETS)
def test_frames_cover_the_time_of_the_source(name):
    target = TARGETS[name]
    lengths = torch.tensor([1, 7, 100])
    wanted = lengths * SOURCE.hop_length / SOURCE.sample_rate
    given = MelConverter(SOURCE, target).lengths(lengths)
    seconds = given * target.hop_length / target.sample_rate
    assert (seconds >= wanted - 1e-6).all()
    assert (seconds < wanted + target.hop_length / target.sample_rate).all()


def test_items_are_converted_as_if_alone():
    target = TARGETS["24 kHz"]
    convert = MelConverter(SOURCE, target)
    mel, lengths = torch.randn(2, 80, 40) - 5, torch.tensor([40, 17])
    together = convert(mel, lengths)
    alone = convert(mel[1:, :, :17], lengths[1:])
    assert torch.allclose(together[1:, :, : alone.shape[2]], alone, atol=1e-5)
