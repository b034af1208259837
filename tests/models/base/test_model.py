from dataclasses import replace

import pytest
import torch

from config.preprocess import PreprocessConfig
from config.schema import Config
from models.base.model import TtsOutput
from models.base.registry import find_model
from models.vocoder.hifigan.config import HiFiGANConfig

FASTSPEECH2, TACOTRON2 = find_model("tts", "FastSpeech2"), find_model("tts", "Tacotron2")


def config_of(aligner: str) -> Config:
    model, preprocess = FASTSPEECH2.config(), PreprocessConfig(aligner=aligner)
    return Config("tts", "Mine", ("mine",), {}, "ckpts", model, preprocess=preprocess)


@pytest.mark.parametrize("aligner", ["none", "learned", "pocketsphinx", "hmm"])
def test_models_that_need_none_and_vocoders_accept_every_aligner(aligner):
    config = replace(config_of(aligner), model=TACOTRON2.config())
    assert TACOTRON2.check_config(config) is None
    with pytest.raises(ValueError, match="Mine"):
        replace(TACOTRON2, needs_durations=True).check_config(config_of("none"))
    config = replace(config, task="vocoder", model=HiFiGANConfig())
    assert find_model("vocoder", "HiFiGAN").check_config(config) is None


def test_a_model_that_needs_durations_or_cannot_learn_them_refuses_data_without():
    message = r"Mine needs durations, .* preprocess\.aligner none: choose"
    with pytest.raises(ValueError, match=message):
        FASTSPEECH2.check_config(config_of("none"))
    FASTSPEECH2.check_config(config_of("learned"))
    with pytest.raises(ValueError, match=r"preprocess\.aligner learned: choose another"):
        replace(FASTSPEECH2, aligner=None).check_config(config_of("learned"))


def output(pitch_level: str, n_frames: int) -> TtsOutput:
    """Two items of three phones; the second one has two phones of no frames and one of two."""
    return TtsOutput(
        mel=torch.zeros(2, 4, n_frames),
        mel_lengths=torch.tensor([3, 2]),
        durations=torch.tensor([[2, 0, 1], [0, 0, 2]]),
        pitch=torch.tensor([[10.0, 20, 30], [40, 50, 60]]),
        energy=torch.arange(2.0 * n_frames).view(2, n_frames),
        pitch_level=pitch_level,
        energy_level="frame",
    )


def test_values_of_a_phone_are_repeated_over_its_frames_and_those_of_frames_stay():
    # as many frames as phones: the shapes do not tell one from the other
    pitch, energy = output("phone", n_frames=3).contours_per_frame()
    assert pitch.tolist() == [[10, 10, 30], [60, 60, 0]]
    assert energy.tolist() == [[0, 1, 2], [3, 4, 5]]
    pitch, _ = output("frame", n_frames=3).contours_per_frame()
    assert pitch.tolist() == [[10, 20, 30], [40, 50, 60]]
