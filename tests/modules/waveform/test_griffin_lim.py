import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from modules.mel import MelConfig, MelSpectrogram
from modules.waveform.griffin_lim import GriffinLim, integrate_phase
from tests.modules.gradients import recording

CENTRE = MelConfig()
HIFIGAN = MelConfig(padding="hifigan")


@pytest.mark.parametrize("config", [CENTRE, HIFIGAN])
def test_speech_has_the_mel_that_it_was_made_from(config):
    mel = MelSpectrogram(config)(recording())
    wav = GriffinLim(config, iterations=30).infer(mel)
    assert wav.shape == (1, mel.shape[2] * 256)
    # two different recordings differ by about 2
    assert (MelSpectrogram(config)(wav) - mel).abs().mean() < 0.12


def test_more_iterations_come_closer():
    mel = MelSpectrogram(CENTRE)(recording())
    distances = [
        (MelSpectrogram(CENTRE)(GriffinLim(CENTRE, iterations).infer(mel)) - mel).abs().mean()
        for iterations in (0, 4, 30)
    ]
    assert distances[0] > 2 * distances[1] > 2 * distances[2]


@pytest.mark.parametrize("config", [CENTRE, HIFIGAN])
def test_a_sine_keeps_its_frequency_and_its_level(config):
    sine = 0.5 * torch.sin(2 * math.pi * 1000 * torch.arange(22016) / 22050)[None]
    wav = GriffinLim(config).infer(MelSpectrogram(config)(sine))
    assert torch.fft.rfft(wav).abs().argmax() == pytest.approx(1000 * 22016 / 22050, abs=8)
    middle = wav[0, 4096:-4096]
    assert middle.square().mean().sqrt() == pytest.approx(0.5 / math.sqrt(2), rel=0.2)


def test_the_sound_stands_where_its_mel_stands():
    wav = torch.zeros(1, 256 * 60)
    wav[0, 256 * 30 : 256 * 30 + 512] = torch.randn(512, generator=torch.Generator().manual_seed(0))
    for config in (CENTRE, HIFIGAN):
        spoken = GriffinLim(config).infer(MelSpectrogram(config)(wav))
        centre = (spoken.square() * torch.arange(256 * 60)).sum() / spoken.square().sum()
        assert centre == pytest.approx(256 * 31, abs=100)


@pytest.mark.parametrize("config", [CENTRE, HIFIGAN])
def test_a_batch_speaks_as_its_items_do_alone(config):
    mel = MelSpectrogram(config)(recording())[..., :50]
    batch = torch.full((2, 80, 50), config.log_floor_value)
    batch[0, :, :20] = mel[0, :, 10:30]
    batch[1] = mel[0]
    vocoder = GriffinLim(config, iterations=10)
    together = vocoder.infer(batch, torch.tensor([20, 50]))
    # iterations magnify the rounding of another order of sums
    near = {"rtol": 0, "atol": 1e-4}
    torch.testing.assert_close(together[:1, : 20 * 256], vocoder.infer(batch[:1, :, :20]), **near)
    torch.testing.assert_close(together[1:], vocoder.infer(batch[1:]), **near)
    assert (together[0, 20 * 256 :] == 0).all()


def test_the_same_mel_gives_the_same_samples_silence_is_quiet_and_one_frame_is_enough():
    vocoder, mel = GriffinLim(CENTRE, 5), MelSpectrogram(CENTRE)(recording())[..., :30]
    torch.manual_seed(1)
    first = vocoder.infer(mel)
    torch.manual_seed(2)
    assert torch.equal(vocoder.infer(mel), first)
    wav = vocoder.infer(torch.full((1, 80, 1), CENTRE.log_floor_value))
    assert wav.shape == (1, 256)
    assert wav.abs().max() < 1e-3


@pytest.mark.parametrize("config", [CENTRE, HIFIGAN])
def test_pieces_join_up_to_the_whole(config):
    mel = MelSpectrogram(config)(recording())[..., :160].repeat(1, 1, 2)
    vocoder = GriffinLim(config, iterations=4)
    pieces = list(vocoder.generate(mel.split(7, dim=2), chunk_frames=5))
    assert len(pieces) == 3
    whole = vocoder.infer(mel)
    assert whole.shape == (1, 320 * 256)
    torch.testing.assert_close(torch.cat(pieces, dim=1), whole, rtol=0, atol=1e-5)
    assert list(vocoder.generate([])) == []


def test_windows_leave_no_seam():
    """Frames around the joint of two windows are as close to their mel as all others."""
    mel = MelSpectrogram(CENTRE)(recording())[..., :160]
    again = MelSpectrogram(CENTRE)(GriffinLim(CENTRE).infer(mel))
    distance = (again - mel).abs().mean(dim=(0, 1))
    assert distance[120:136].mean() < 1.5 * distance[8:-8].mean()


MEL = MelConfig()


def stft(wav: torch.Tensor, mel: MelConfig = MEL) -> torch.Tensor:
    """(S,) -> (T, n_fft // 2 + 1) complex."""
    window = torch.hann_window(mel.win_length)
    return torch.fft.rfft(wav.unfold(0, mel.n_fft, mel.hop_length) * window)


def inconsistency(spectrum: torch.Tensor) -> float:
    """Relative distance to the STFT of the inverse STFT: 0 for the right phases."""
    window = torch.hann_window(MEL.win_length)
    frames = torch.fft.irfft(spectrum, n=MEL.n_fft) * window
    T = len(frames)
    wav, weight = torch.zeros(2, (T - 1) * MEL.hop_length + MEL.n_fft)
    for t in range(T):
        place = slice(t * MEL.hop_length, t * MEL.hop_length + MEL.n_fft)
        wav[place] += frames[t]
        weight[place] += window.square()
    again = stft(wav / weight.clamp(min=1e-3))
    return float((again - spectrum).norm() / spectrum.norm())


def with_phases(magnitude: torch.Tensor, phases: np.ndarray) -> torch.Tensor:
    return torch.polar(magnitude, torch.from_numpy(phases))


@pytest.mark.parametrize("hop_length", [128, 256])
def test_a_sine_advances_by_its_frequency_and_neighbouring_bins_agree_as_in_its_stft(hop_length):
    mel, frequency = replace(MEL, hop_length=hop_length), 2 * math.pi * 1000 / 22050
    spectrum = stft(torch.sin(frequency * torch.arange(22050)), mel)
    phases = integrate_phase(spectrum.abs().clamp(min=1e-5).log(), mel).numpy()
    peak = round(1000 / 22050 * mel.n_fft)
    advance = np.diff(phases[5:-5, peak])
    error = np.angle(np.exp(1j * (advance - frequency * hop_length)))
    assert np.abs(error).max() < 0.05
    differences = (phases - spectrum.angle().numpy())[5:-5, peak - 1 : peak + 2]
    error = np.angle(np.exp(1j * (differences - differences[:, 1:2])))
    assert np.abs(error).max() < 0.3


def test_phases_of_speech_are_nearly_consistent():
    magnitude = stft(recording()[0]).abs()
    found = integrate_phase(magnitude.clamp(min=1e-5).log(), MEL).float().numpy()
    random = np.random.default_rng(0).uniform(0, 2 * math.pi, found.shape).astype(np.float32)
    assert inconsistency(with_phases(magnitude, found)) < 0.35
    assert inconsistency(with_phases(magnitude, random)) > 0.6


def test_frames_that_follow_known_ones_get_the_phases_of_the_whole():
    log_magnitude = torch.randn(20, 513, generator=torch.Generator().manual_seed(0))
    whole = integrate_phase(log_magnitude, MEL)
    rest = integrate_phase(log_magnitude[7:], MEL, whole[7])
    # the gradient of a first frame is one-sided: it changes the next one only
    before = integrate_phase(log_magnitude[:9], MEL)
    torch.testing.assert_close(before[:8], whole[:8])
    assert torch.equal(rest[0], whole[7])


@pytest.mark.parametrize("n_frames", [1, 2])
def test_short_signals_have_phases(n_frames):
    phases = integrate_phase(torch.zeros(n_frames, 513), MEL)
    assert phases.shape == (n_frames, 513)
    assert phases.isfinite().all()
