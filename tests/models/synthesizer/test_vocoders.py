import dataclasses
import logging
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from config.schema import InferenceConfig
from models.base.assets import Assets
from models.checkpoint import loading as checkpoint
from models.synthesizer.resampling_vocoder import ResamplingVocoder
from models.synthesizer.vocoders import check_mel_contract, open_vocoder
from models.vocoder.hifigan import GeneratorConfig, HiFiGAN, HiFiGANConfig
from modules.griffin_lim import GriffinLim
from modules.mel import MelConfig
from utils.config import to_plain
from utils.errors import InputError
from utils.files import write_json

MEL = MelConfig()
SETTINGS = InferenceConfig(griffin_lim_iterations=4)
PREPROCESS_KEYS = {
    "sample_rate": "sample_rate",
    "hop_length": "hop_size",
    "n_fft": "n_fft",
    "win_length": "win_size",
    "n_mels": "n_mel",
    "f_min": "fmin",
    "f_max": "fmax",
    "padding": "mel_padding",
}


def make_vocoder(folder: Path, mel: MelConfig = MEL, rates: tuple[int, ...] = (8, 8, 4)) -> Path:
    """An untrained HiFi-GAN of some thousand weights."""
    generator = GeneratorConfig(
        resblock="2",
        upsample_rates=rates,
        upsample_kernel_sizes=tuple(3 * rate for rate in rates),
        upsample_initial_channel=16,
        resblock_kernel_sizes=(3,),
        resblock_dilation_sizes=((1, 3),),
    )
    preprocess = {key: getattr(mel, name) for name, key in PREPROCESS_KEYS.items()}
    config = {
        "task": "vocoder",
        "model_type": "HiFiGAN",
        "dataset": ["tiny"],
        "dataset_path": {"tiny": "data/tiny"},
        "log_dir": "ckpts/vocoder",
        "model": to_plain(HiFiGANConfig(generator)),
        "preprocess": preprocess,
        "train": {"max_steps": 1},
    }
    folder.mkdir(parents=True)
    write_json(folder / "config.json", config)
    Assets(mel).save(folder)
    torch.manual_seed(0)
    save_file(HiFiGAN(generator, mel.n_mels).state_dict(), folder / "model.safetensors")
    return folder


def test_without_a_name_there_is_griffin_lim_and_it_is_said(caplog):
    with caplog.at_level(logging.INFO):
        vocoder = open_vocoder(None, MEL).load(SETTINGS, "cpu")
    assert isinstance(vocoder, GriffinLim)
    assert "no vocoder given: Griffin-Lim, 4 iterations" in caplog.text


def test_a_vocoder_of_the_same_mel_speaks_silently(tmp_path, caplog):
    folder = make_vocoder(tmp_path / "v")
    with caplog.at_level(logging.INFO):
        vocoder = open_vocoder(folder, MEL).load(SETTINGS, "cpu")
    assert isinstance(vocoder, HiFiGAN)
    assert vocoder.infer(torch.randn(1, 80, 5)).shape == (1, 5 * 256)
    assert caplog.text == ""


def test_resampling_is_left_alone_where_it_is_not_needed(tmp_path, caplog):
    folder = make_vocoder(tmp_path / "v", dataclasses.replace(MEL, padding="hifigan"))
    with caplog.at_level(logging.INFO):
        vocoder = open_vocoder(folder, MEL, resample=True).load(SETTINGS, "cpu")
    assert isinstance(vocoder, HiFiGAN)
    assert "mel padding" in caplog.text


def test_the_settings_choose_the_precision(tmp_path):
    folder = make_vocoder(tmp_path / "v")
    settings = dataclasses.replace(SETTINGS, vocoder_precision="bf16")
    vocoder = open_vocoder(folder, MEL).load(settings, "cpu")
    assert next(vocoder.resblocks.parameters()).dtype == torch.bfloat16
    assert vocoder.infer(torch.randn(1, 80, 5)).dtype == torch.float32


def test_a_mismatch_is_found_before_the_weights_are_read(tmp_path, monkeypatch):
    folder = make_vocoder(tmp_path / "v")
    monkeypatch.setattr(checkpoint, "read_tensors", None)
    monkeypatch.setattr(checkpoint, "find", None)
    with pytest.raises(InputError, match="sample_rate 16000 and 22050"):
        open_vocoder(folder, dataclasses.replace(MEL, sample_rate=16000))


def test_a_vocoder_of_another_rate_speaks_when_it_is_resampled(tmp_path, caplog):
    mel = MelConfig(sample_rate=16000, hop_length=200, win_length=800)
    folder = make_vocoder(tmp_path / "v", mel, rates=(5, 5, 8))
    with pytest.raises(InputError, match=r"hop_length 256 and 200, .*or add --resample"):
        open_vocoder(folder, MEL)
    with caplog.at_level(logging.INFO):
        vocoder = open_vocoder(folder, MEL, resample=True).load(SETTINGS, "cpu")
    assert isinstance(vocoder, ResamplingVocoder)
    assert vocoder.infer(torch.randn(1, 80, 31) - 5).shape == (1, 31 * 256)
    assert "sample_rate 22050 and 16000, win_length 1024 and 800" in caplog.text


def test_a_vocoder_of_the_same_mel_is_accepted(caplog):
    with caplog.at_level(logging.INFO):
        check_mel_contract(MEL, MelConfig(), "v")
    assert caplog.text == ""


def test_a_vocoder_of_another_padding_is_accepted_and_said(caplog):
    with caplog.at_level(logging.INFO):
        check_mel_contract(MEL, dataclasses.replace(MEL, padding="hifigan"), "v")
    assert "the acoustic model has centre, the vocoder hifigan" in caplog.text


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("sample_rate", 16000),
        ("hop_length", 300),
        ("n_mels", 100),
        ("f_min", 40.0),
        ("f_max", 11025.0),
        ("log_floor", 1e-3),
        ("n_fft", 2048),
        ("win_length", 800),
    ],
)
def test_a_vocoder_of_another_mel_is_refused_with_both_values(key, value):
    other = dataclasses.replace(MEL, **{key: value, "padding": "hifigan"})
    with pytest.raises(InputError, match=f"{key} {getattr(MEL, key)} and {value}"):
        check_mel_contract(MEL, other, "org/vocoder")
