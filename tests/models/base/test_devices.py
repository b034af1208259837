import logging

import numpy as np
import pytest
import torch

from config.schema import Config
from models.base import devices
from models.base.devices import chosen_precision, require_compiler, resolved_device
from models.synthesizer.synthesizer import Synthesizer
from tests.models.synthesizer.test_synthesizer import LONG_TEXT, make_voice
from tests.models.synthesizer.test_vocoders import make_vocoder
from utils.errors import InputError


def test_a_device_is_returned_by_its_name_and_a_number_is_that_of_a_gpu(monkeypatch):
    assert resolved_device("cpu") == resolved_device(torch.device("cpu")) == "cpu"
    gpu = torch.device("cuda:0")
    monkeypatch.setattr(torch, "device", {0: gpu}.get)  # as on a machine with one
    monkeypatch.setattr(torch, "empty", lambda *_, device: None)
    assert resolved_device(0) == "cuda:0"  # type: ignore[arg-type]  # as users write it


@pytest.mark.parametrize("name", ["gpu", None, 1.5])
def test_what_is_no_device_is_refused(name):
    with pytest.raises(InputError, match=r"^device .*; expected 'auto', 'cpu', 'cuda' or"):
        resolved_device(name)


def test_a_compiler_that_is_there_is_accepted_and_else_key_and_way_out_are_named(
    monkeypatch, tmp_path
):
    (tmp_path / "mine").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CXX", "mine")
    require_compiler("train.compile", torch.device("cpu"))
    monkeypatch.setenv("CXX", "another")
    with pytest.raises(InputError, match="no compiler"):
        require_compiler("train.compile", torch.device("cpu"))
    monkeypatch.delenv("CXX")
    with pytest.raises(InputError, match=r"^train\.compile: no compiler .*\+\+; .* set off$"):
        require_compiler("train.compile", torch.device("cpu"))
    monkeypatch.setattr(devices, "has_triton", lambda: False)
    with pytest.raises(InputError, match=r"^inference\.compile: no Triton for this GPU; .* off$"):
        require_compiler("inference.compile", torch.device("cuda"))


@pytest.fixture
def bfloat16(monkeypatch):
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: True)


def experiment(model_type: str, task: str = "tts") -> Config:
    return Config(task, model_type, ("a",), {"a": "a"}, "logs", None)


@pytest.mark.parametrize(
    ("model", "task", "expected"),
    [
        ("FastSpeech2", "tts", "bf16"),
        ("FastPitch", "tts", "bf16"),
        ("FlowSpeech", "tts", "bf16"),
        ("Matcha", "tts", "fp32"),
        ("Tacotron2", "tts", "fp32"),
        ("HiFiGAN", "vocoder", "mixed"),
        ("FreeVGL", "vocoder", "fp32"),
        ("WaveGlow", "vocoder", "fp32"),
    ],
)
def test_each_model_says_what_is_fast_on_a_cpu_with_bfloat16(
    model, task, expected, bfloat16, caplog
):
    caplog.set_level(logging.INFO, "arion")
    assert chosen_precision("auto", experiment(model, task), "cpu") == expected
    key = "acoustic" if task == "tts" else "vocoder"
    assert (f"inference.{key}_precision=fp32" in caplog.text) == (expected != "fp32")


def test_what_is_asked_for_is_chosen_and_other_machines_compute_in_fp32(
    bfloat16, monkeypatch, caplog
):
    caplog.set_level(logging.INFO, "arion")
    assert chosen_precision("fp32", experiment("FastSpeech2"), "cpu") == "fp32"
    assert not caplog.text
    assert chosen_precision("auto", experiment("FastSpeech2"), "cuda") == "fp32"
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)
    assert chosen_precision("auto", experiment("FastSpeech2"), "cpu") == "fp32"


def test_a_voice_speaks_in_the_precision_of_the_machine_and_its_wavs_are_of_that(
    tmp_path, monkeypatch
):
    home, found = make_voice(tmp_path), set()

    def mel_of(*overrides: str, supported: bool = True) -> np.ndarray:
        monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: supported)
        return Synthesizer(home, overrides=overrides)("Hello there.").mel

    auto = "inference.acoustic_precision=auto"
    half, exact = mel_of("inference.acoustic_precision=bf16"), mel_of()
    assert (mel_of(auto) == half).all()
    assert (mel_of(auto, supported=False) == exact).all()
    assert 0 < np.abs(half - exact).mean() < 0.01
    voice = Synthesizer(home)
    for supported in (True, False):
        monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda s=supported: s)
        found.add(voice.fingerprint())
    assert len(found) == 2


def test_batches_change_a_mel_in_bfloat16_by_less_than_its_rounding(tmp_path):
    home, half = make_voice(tmp_path / "voice"), "inference.acoustic_precision=bf16"
    vocoder = make_vocoder(tmp_path / "vocoder")
    alone, together = (
        Synthesizer(home, vocoder, overrides=[half, f"inference.batch_size={size}"])(LONG_TEXT)
        for size in (1, 8)
    )
    assert alone.durations.tolist() == together.durations.tolist()
    assert alone.mel == pytest.approx(together.mel, abs=0.02)
