from pathlib import Path

import pytest
import soundfile
import torch

from modules.mel import MelConfig, MelSpectrogram
from modules.waveform.griffin_lim import GriffinLim
from modules.waveform.griffin_lim_graph import GriffinLimGraph

RECORDINGS = Path(__file__).parents[3] / "egs" / "_demo" / "LJSpeech-mini" / "wavs"
NARROW = MelConfig(hop_length=300, win_length=800, padding="hifigan")  # hops do not fill a frame


def mel_of(config: MelConfig) -> torch.Tensor:
    """Of 290 frames: two windows and a part of one."""
    wav, _ = soundfile.read(RECORDINGS / "LJ001-0002.flac", dtype="float32")
    mel = MelSpectrogram(config)(torch.from_numpy(wav)[None])
    return mel.repeat(1, 1, 3)[..., :290]


@pytest.mark.parametrize(("config", "iterations"), [(MelConfig(), 2), (NARROW, 2), (NARROW, 0)])
def test_the_sound_is_that_of_the_vocoder(config, iterations):
    vocoder, mel = GriffinLim(config, iterations), mel_of(config)
    graph = GriffinLimGraph(vocoder)
    for n_frames in (1, 2, 144, 145, 290):  # a window ends after 128 frames, the last after 144
        part = mel[..., :n_frames]
        # phases differ by rounding, which adds up from frame to frame
        torch.testing.assert_close(graph(part), vocoder.infer(part), rtol=0, atol=2e-4)
