import pytest

from config.preprocess import PreprocessConfig
from config.schema import Config
from models.tts.fastspeech2 import FastSpeech2Config
from models.tts.tacotron2 import Tacotron2Config
from processors.alignment import make_aligner
from processors.alignment.learned import SpeechTrimmer


def config_of(model: object, aligner: str) -> Config:
    return Config(
        task="tts",
        model_type="Model",
        dataset=("mine",),
        dataset_path={},
        log_dir="ckpts",
        model=model,
        preprocess=PreprocessConfig(aligner=aligner),
    )


def test_stage_1_only_trims_silence(tmp_path):
    aligner = make_aligner(PreprocessConfig(aligner="none"), tmp_path)
    assert isinstance(aligner, SpeechTrimmer)


def test_models_that_need_durations_refuse_it():
    with pytest.raises(ValueError, match=r"Model needs durations, and preprocess\.aligner none"):
        config_of(FastSpeech2Config(), "none")


@pytest.mark.parametrize("aligner", ["none", "learned", "pocketsphinx", "hmm"])
def test_models_that_need_none_accept_every_aligner(aligner):
    assert config_of(Tacotron2Config(), aligner).preprocess.aligner == aligner
