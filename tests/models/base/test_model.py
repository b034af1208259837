from dataclasses import replace

import pytest

from config.preprocess import PreprocessConfig
from config.schema import Config
from models.base.registry import find
from models.vocoder.hifigan import HiFiGANConfig

FASTSPEECH2, TACOTRON2 = find("tts", "FastSpeech2"), find("tts", "Tacotron2")


def config_of(aligner: str) -> Config:
    return Config(
        task="tts",
        model_type="Mine",
        dataset=("mine",),
        dataset_path={},
        log_dir="ckpts",
        model=FASTSPEECH2.config(),
        preprocess=PreprocessConfig(aligner=aligner),
    )


def test_a_model_that_needs_durations_refuses_data_without():
    with pytest.raises(ValueError, match=r"Mine needs durations, and preprocess\.aligner none"):
        FASTSPEECH2.check_config(config_of("none"))


@pytest.mark.parametrize("aligner", ["none", "learned", "pocketsphinx", "hmm"])
def test_a_model_that_needs_none_accepts_every_aligner(aligner):
    config = replace(config_of(aligner), model=TACOTRON2.config())
    assert TACOTRON2.check_config(config) is None
    with pytest.raises(ValueError, match="Mine"):
        replace(TACOTRON2, needs_durations=True).check_config(config_of("none"))


def test_a_model_that_cannot_learn_durations_is_not_asked_to():
    FASTSPEECH2.check_config(config_of("learned"))
    with pytest.raises(ValueError, match="Mine cannot learn durations: choose another"):
        replace(FASTSPEECH2, aligner=None).check_config(config_of("learned"))


def test_aligners_do_not_matter_to_vocoders():
    config = replace(config_of("none"), task="vocoder", model=HiFiGANConfig())
    assert find("vocoder", "HiFiGAN").check_config(config) is None
