import math
from dataclasses import replace

import librosa
import numpy as np
import pytest
import soxr
import torch

from modules.mel import MelConfig, MelConverter, MelSpectrogram, mel_filter_bank, mel_to_magnitude
from tests.modules.gradients import recording

CENTRE = MelConfig()
HIFIGAN = MelConfig(padding="hifigan")
WIDE = MelConfig(24000, win_length=800, n_mels=100, f_min=20, f_max=12000, padding="hifigan")
VOCOS = MelConfig(24000, n_mels=100, f_max=12000, log_floor=1e-7, scale="htk")


def noise(n_samples: int, n_items: int = 1) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.rand(n_items, n_samples, generator=generator) * 2 - 1


def librosa_magnitude(wav: torch.Tensor, config: MelConfig) -> np.ndarray:
    padded = np.pad(wav.squeeze(0).numpy(), config.edge_samples, mode="reflect")
    sizes = {name: getattr(config, name) for name in ("n_fft", "hop_length", "win_length")}
    spectrum = librosa.stft(padded, **sizes, center=False)
    return np.sqrt(np.abs(spectrum) ** 2 + config.magnitude_epsilon)


NARROW = MelConfig(n_mels=40, f_min=80, f_max=7600)
NARROW_HTK = replace(NARROW, scale="htk")


@pytest.mark.parametrize("config", [CENTRE, WIDE, NARROW, VOCOS, NARROW_HTK])
def test_filter_bank_is_librosas(config):
    htk = {"htk": True, "norm": None} if config.scale == "htk" else {}
    sizes = {"sr": config.sample_rate, "n_fft": config.n_fft, "n_mels": config.n_mels}
    expected = librosa.filters.mel(**sizes, fmin=config.f_min, fmax=config.f_max, **htk)
    assert np.abs(mel_filter_bank(config).numpy() - expected).max() < 1e-6


@pytest.mark.parametrize("config", [VOCOS, NARROW_HTK])
def test_htks_filter_bank_is_torchaudios(config):
    """That of torchaudio.functional.melscale_fbanks with its defaults."""
    bins = np.linspace(0, config.sample_rate / 2, config.n_fft // 2 + 1)
    mels = 2595 * np.log10(1 + np.array([config.f_min, config.f_max]) / 700)
    edges = 700 * (10 ** (np.linspace(*mels, config.n_mels + 2) / 2595) - 1)
    slopes = edges - bins[:, None]  # (K, M + 2)
    down, up = -slopes[:, :-2] / np.diff(edges)[:-1], slopes[:, 2:] / np.diff(edges)[1:]
    expected = np.maximum(0, np.minimum(down, up)).T
    assert np.abs(mel_filter_bank(config).numpy() - expected).max() < 1e-6


@pytest.mark.parametrize("config", [CENTRE, HIFIGAN, WIDE, VOCOS])
def test_log_mel_and_energy_are_librosas(config):
    wav = noise(22050)
    mel, energy = MelSpectrogram(config).mel_and_energy(wav)
    magnitude = librosa_magnitude(wav, config)[:, : 22050 // config.hop_length]
    expected = np.log(np.maximum(mel_filter_bank(config).numpy() @ magnitude, config.log_floor))
    np.testing.assert_allclose(mel.squeeze(0), expected, atol=1e-4)
    np.testing.assert_allclose(energy.squeeze(0), np.linalg.norm(magnitude, axis=0), rtol=1e-4)


@pytest.mark.parametrize("config", [CENTRE, HIFIGAN, MelConfig(hop_length=275, padding="hifigan")])
@pytest.mark.parametrize("n_samples", [1024, 25599, 25600, 25601])
def test_frames_are_samples_over_hop_rounded_down(config, n_samples):
    mel = MelSpectrogram(config)(noise(n_samples))
    assert mel.shape == (1, 80, n_samples // config.hop_length)


@pytest.mark.parametrize("config", [CENTRE, HIFIGAN])
def test_padding_decides_where_frames_are_centred(config):
    wav = torch.zeros(1, 256 * 40)
    wav[0, 256 * 20 + (128 if config.padding == "hifigan" else 0)] = 1.0
    energy = MelSpectrogram(config).mel_and_energy(wav)[1].squeeze(0)
    assert energy.argmax() == 20
    torch.testing.assert_close(energy[19], energy[21])


def test_a_sine_lights_the_band_that_holds_its_frequency():
    wav = torch.sin(2 * math.pi * 1000 * torch.arange(22050) / 22050)[None]
    mel = MelSpectrogram(CENTRE)(wav)
    edges = librosa.mel_frequencies(82, fmin=0, fmax=8000)
    assert mel[0, :, 40].argmax() == np.abs(edges[1:-1] - 1000).argmin()


def test_silence_is_the_log_floor_and_has_a_finite_gradient():
    for config in (HIFIGAN, CENTRE):
        wav = torch.zeros(1, 4096, requires_grad=True)
        mel, energy = MelSpectrogram(config).mel_and_energy(wav)
        (mel.sum() + energy.sum()).backward()
        assert torch.isfinite(wav.grad).all()
    torch.testing.assert_close(mel, torch.full((1, 80, 16), math.log(1e-5)))
    assert MelConfig(padding="hifigan", scale="htk").magnitude_epsilon == 0
    silence = MelSpectrogram(VOCOS)(torch.zeros(1, 2400))
    assert torch.allclose(silence, torch.tensor(math.log(1e-7)))


def test_gradient_reaches_every_sample_that_a_frame_covers_and_autocast_changes_nothing():
    wav, mel_of = noise(4096).requires_grad_(), MelSpectrogram(HIFIGAN)
    mel = mel_of(wav)
    mel.sum().backward()
    assert (wav.grad != 0).all()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(mel_of(wav), mel)


@pytest.mark.parametrize(("config", "shortest"), [(CENTRE, 513), (HIFIGAN, 385)])
def test_audio_too_short_to_reflect_is_refused_with_its_length(config, shortest):
    mel = MelSpectrogram(config)
    assert torch.isfinite(mel(noise(shortest))).all()
    with pytest.raises(ValueError, match=rf"{shortest - 1} samples .* {shortest} samples"):
        mel(noise(shortest - 1))


def test_contradictory_numbers_are_refused():
    with pytest.raises(ValueError, match="11025 Hz"):
        MelConfig(f_max=12000)
    with pytest.raises(ValueError, match="hop_length 2048"):
        MelConfig(hop_length=2048)
    with pytest.raises(ValueError, match="mel bands hold no STFT bin"):
        mel_filter_bank(MelConfig(n_fft=256, win_length=256, hop_length=64))


def test_differences_give_both_values_of_each_field_sorted_by_name():
    assert CENTRE.differences(MelConfig()) == []
    found = CENTRE.differences(MelConfig(n_mels=100, f_max=7600.0, padding="hifigan"))
    assert found == ["f_max 8000.0 and 7600.0", "n_mels 80 and 100", "padding centre and hifigan"]
    other = MelConfig(n_fft=2048, padding="hifigan")
    assert CENTRE.differences(other, ignore=["padding"]) == ["n_fft 1024 and 2048"]


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
    return recording()


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
    ("name", "distance"), zip(TARGETS, (0.01, 0.15, 0.15, 0.15, 0.2), strict=True)
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
    convert = MelConverter(SOURCE, TARGETS["24 kHz"])
    mel, lengths = torch.randn(2, 80, 40) - 5, torch.tensor([40, 17])
    together = convert(mel, lengths)
    alone = convert(mel[1:, :, :17], lengths[1:])
    assert torch.allclose(together[1:, :, : alone.shape[2]], alone, atol=1e-5)
