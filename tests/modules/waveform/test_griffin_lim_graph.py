import pytest
import torch

from modules.mel import MelConfig, MelSpectrogram
from modules.waveform.griffin_lim import GriffinLim
from modules.waveform.griffin_lim_graph import GriffinLimGraph, RealDft
from tests.modules.gradients import recording

NARROW = MelConfig(hop_length=300, win_length=800, padding="hifigan")  # hops do not fill a frame


def mel_of(config: MelConfig) -> torch.Tensor:
    return MelSpectrogram(config)(recording()).repeat(1, 1, 3)


# a window ends after 128 frames, the last one after 144; one window and several are traced apart
CASES = [
    (MelConfig(), 2, (145, 290)),
    (NARROW, 2, (144, 2)),
    (NARROW, 0, (1, 2, 144)),
    pytest.param(MelConfig(), 2, (1, 2, 144), marks=pytest.mark.slow),
    pytest.param(NARROW, 2, (1, 145, 290), marks=pytest.mark.slow),
    pytest.param(NARROW, 0, (145, 290), marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("config", "iterations", "lengths"), CASES)
def test_the_sound_is_that_of_the_vocoder(config, iterations, lengths):
    vocoder, mel = GriffinLim(config, iterations), mel_of(config)
    graph = GriffinLimGraph(vocoder)
    for n_frames in lengths:
        part = mel[..., :n_frames]
        with torch._dynamo.config.patch(assume_static_by_default=False):  # one trace for all
            wav = graph(part)
        # phases differ by rounding, which adds up from frame to frame
        torch.testing.assert_close(wav, vocoder.infer(part), rtol=0, atol=2e-4)


@pytest.mark.parametrize("n_fft", [1024, 400, 30, 6])
def test_bins_are_those_of_the_fft_or_their_conjugates_and_the_inverse_gives_frames_back(n_fft):
    frames = torch.randn(3, n_fft, generator=torch.Generator().manual_seed(0))
    transform = RealDft(n_fft)
    real, imaginary = transform(frames).chunk(2, dim=2)  # (C, T, D)
    expected = torch.fft.rfft(frames)[:, transform.bins].transpose(0, 1)
    near = {"rtol": 0, "atol": 1e-4}
    torch.testing.assert_close(real, expected.real, **near)
    torch.testing.assert_close(imaginary, expected.imag * transform.sign[:, None], **near)
    assert set(transform.bins.flatten().tolist()) == set(range(n_fft // 2 + 1))
    again = transform.inverse(transform(frames))
    torch.testing.assert_close(again, frames, rtol=0, atol=1e-5)
