import dataclasses
import logging
import math
from pathlib import Path

import pytest
import torch

from config.schema import InferenceConfig
from models.base.assets import Assets
from models.synthesizer.vocoders import ResamplingVocoder, check_mel_contract, open_vocoder
from models.vocoder.freevgl import FreeVGL
from models.vocoder.hifigan import HiFiGAN
from models.vocoder.hifigan.config import GeneratorConfig, HiFiGANConfig
from modules.mel import MelConfig, MelSpectrogram
from modules.waveform.griffin_lim import GriffinLim
from tests.worlds.untrained import save_weights, write_model
from utils.config import to_plain
from utils.errors import InputError

MEL = MelConfig()
OTHER_MELS = [
    MelConfig(sample_rate=24000, hop_length=240, padding="hifigan"),
    MelConfig(sample_rate=16000, hop_length=200, win_length=800),
    MelConfig(hop_length=200),
]
SETTINGS = InferenceConfig(griffin_lim_iterations=4, vocoder_precision="fp32")


def preprocess_of(mel: MelConfig) -> dict[str, object]:
    keys = dataclasses.asdict(mel)
    keys |= {f"mel_{name}": keys.pop(name) for name in ("padding", "scale")}
    return keys


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
    sizes, preprocess = to_plain(HiFiGANConfig(generator=generator)), preprocess_of(mel)
    of_model = "vocoder", "HiFiGAN", sizes, Assets(mel)
    return save_weights(write_model(folder, *of_model, preprocess=preprocess), folder)


def test_the_default_is_the_bundled_vocoder_or_griffin_lim(tmp_path, monkeypatch, caplog):
    with caplog.at_level(logging.INFO):
        opened = open_vocoder(None, MelConfig())
        assert isinstance(opened.load(SETTINGS, "cpu"), FreeVGL)
        assert opened.name == "freevgl"
        assert "no vocoder given: the bundled freevgl" in caplog.text
        vocoder = open_vocoder(None, OTHER_MELS[1]).load(SETTINGS, "cpu")
        asked = open_vocoder("griffin_lim", MelConfig()).load(SETTINGS, "cpu")
        monkeypatch.setattr("models.synthesizer.vocoders.BUNDLED", tmp_path / "none")
        assert open_vocoder(None, MelConfig()).name == "Griffin-Lim"
        assert f"no vocoder given, and {tmp_path}/none is missing: Griffin-Lim" in caplog.text
    assert isinstance(vocoder, GriffinLim)
    assert "another mel (hop_length 200 and 256, sample_rate 16000 and 22050" in caplog.text
    assert "Griffin-Lim, 4 iterations" in caplog.text
    assert isinstance(asked, GriffinLim)
    assert asked.iterations == 4


def test_a_vocoder_of_the_same_mel_logs_nothing_and_has_the_precision_asked_for(tmp_path, caplog):
    opened = open_vocoder(make_vocoder(tmp_path / "v"), MEL)
    with caplog.at_level(logging.INFO):
        vocoder = opened.load(SETTINGS, "cpu")
    assert isinstance(vocoder, HiFiGAN)
    assert vocoder.infer(torch.randn(1, 80, 5)).shape == (1, 5 * 256)
    assert caplog.text == ""
    half = opened.load(dataclasses.replace(SETTINGS, vocoder_precision="bf16"), "cpu")
    assert next(half.resblocks.parameters()).dtype == torch.bfloat16
    assert half.infer(torch.randn(1, 80, 5)).dtype == torch.float32


def test_a_vocoder_of_another_rate_speaks_when_it_is_resampled(tmp_path, caplog):
    folder = make_vocoder(tmp_path / "v", OTHER_MELS[1], rates=(5, 5, 8))
    with pytest.raises(InputError, match=r"hop_length 256 and 200, .*or add --resample"):
        open_vocoder(folder, MEL)
    with caplog.at_level(logging.INFO):
        vocoder = open_vocoder(folder, MEL, resample=True).load(SETTINGS, "cpu")
    assert isinstance(vocoder, ResamplingVocoder)
    assert vocoder.infer(torch.randn(1, 80, 31) - 5).shape == (1, 31 * 256)
    assert "sample_rate 22050 and 16000, win_length 1024 and 800" in caplog.text


def test_a_vocoder_of_another_padding_is_accepted_and_that_is_logged(tmp_path, caplog):
    other = dataclasses.replace(MEL, padding="hifigan")
    with caplog.at_level(logging.INFO):
        check_mel_contract(MEL, MelConfig(), "v")
        assert caplog.text == ""
        check_mel_contract(MEL, other, "v")
        assert "the acoustic model has centre, the vocoder hifigan" in caplog.text
        caplog.clear()
        folder = make_vocoder(tmp_path / "v", other)  # which needs no resampling
        vocoder = open_vocoder(folder, MEL, resample=True).load(SETTINGS, "cpu")
    assert isinstance(vocoder, HiFiGAN)
    assert "mel padding" in caplog.text


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("sample_rate", 16000), ("hop_length", 300), ("n_mels", 100), ("f_min", 40.0)),
        *(("f_max", 11025.0), ("log_floor", 1e-3), ("n_fft", 2048), ("win_length", 800)),
    ],
)
def test_a_vocoder_of_another_mel_is_refused_with_both_values(key, value):
    other = dataclasses.replace(MEL, **{key: value, "padding": "hifigan"})
    with pytest.raises(InputError, match=f"{key} {getattr(MEL, key)} and {value}"):
        check_mel_contract(MEL, other, "org/vocoder")


class Tone:
    """Speaks a tone of 440 Hz as long as its mel, piece by piece."""

    def __init__(self, mel: MelConfig) -> None:
        self.mel = mel

    def infer(self, mel, mel_lengths, *, seed=0):
        n_samples = mel.shape[2] * self.mel.hop_length
        wav = torch.sin(2 * math.pi * 440 * torch.arange(n_samples) / self.mel.sample_rate)
        valid = torch.arange(n_samples) < mel_lengths[:, None] * self.mel.hop_length
        return 0.5 * wav * valid

    def generate(self, mel, chunk_frames=None, *, seed=0):
        whole = self.infer(mel, torch.tensor([mel.shape[2]]))
        yield from whole.split((chunk_frames or 7) * self.mel.hop_length, dim=1)


def vocoder_of(target):
    return ResamplingVocoder(Tone(target), MEL, target)


@pytest.mark.parametrize("target", OTHER_MELS)
def test_the_wav_is_as_long_as_the_mel_and_items_of_a_batch_are_spoken_as_if_alone(target):
    vocoder, mel, lengths = vocoder_of(target), torch.randn(4, 80, 100) - 5, [1, 2, 37, 100]
    together = vocoder.infer(mel, torch.tensor(lengths))
    for item, n_frames in enumerate(lengths):
        alone = mel[item : item + 1, :, :n_frames]
        wav, pieces = vocoder.infer(alone), list(vocoder.generate(alone))
        assert wav.shape == (1, n_frames * 256)
        assert sum(piece.shape[1] for piece in pieces) == n_frames * 256
        assert torch.allclose(together[item, : n_frames * 256], wav[0], atol=1e-6)
        assert not together[item, n_frames * 256 :].any()


@pytest.mark.parametrize("target", OTHER_MELS)
def test_a_tone_keeps_its_pitch_and_level_and_pieces_join_up_to_the_whole(target):
    mel = torch.randn(1, 80, 100) - 5
    pieces = list(vocoder_of(target).generate(mel))
    whole = vocoder_of(target).infer(mel)
    expected = 0.5 * torch.sin(2 * math.pi * 440 * torch.arange(whole.shape[1]) / 22050)
    middle = slice(2000, -2000)
    assert (whole[0] - expected)[middle].abs().max() < 1e-3
    assert len(pieces) > 5
    assert (torch.cat(pieces, dim=1) - whole).abs().max() < 1e-6
    few = list(vocoder_of(target).generate(mel.split(30, dim=2), 50))
    assert 1 < len(few) < len(pieces)
    assert (torch.cat(few, dim=1) - whole).abs().max() < 1e-6


def test_the_sound_has_the_mel_that_was_given():
    """A chord by Griffin-Lim at 24 kHz; at 22.05 kHz itself it comes to 0.35."""
    times = torch.arange(22050) / 22050
    chord = sum(torch.sin(2 * math.pi * 200 * k * times) / k for k in range(1, 30))
    wav = 0.1 * chord[None] + 0.003 * torch.randn(1, 22050)
    mel = MelSpectrogram(MEL)(wav)
    target = OTHER_MELS[0]
    vocoder = ResamplingVocoder(GriffinLim(target, iterations=30), MEL, target)
    spoken = MelSpectrogram(MEL)(vocoder.infer(mel))
    middle = slice(5, -5)
    assert (spoken - mel)[:, :, middle].abs().mean() < 0.5


def make_waveglow(folder: Path) -> Path:
    """An untrained WaveGlow of a few weights."""
    of_model = "vocoder", "WaveGlow", {"flows": 2, "channels": 4, "n_layers": 2}, Assets(MEL)
    return save_weights(write_model(folder, *of_model, preprocess=preprocess_of(MEL)), folder)


def test_options_of_the_vocoder_are_taken_from_the_settings_and_facts_of_the_sound(tmp_path):
    opened = open_vocoder(make_waveglow(tmp_path / "v"), MEL)
    mel = torch.randn(1, 80, 5)
    settings = dataclasses.replace(
        SETTINGS, vocoder_options={"sigma": 0.0, "denoiser_strength": 0.0}
    )
    default, silent = (opened.load(given, "cpu") for given in (SETTINGS, settings))
    assert default.config.sigma == 0.9
    assert (silent.config.sigma, silent.config.denoiser_strength) == (0.0, 0.0)
    # before training the flow is a rotation, which leaves nothing if there is no noise
    assert default.infer(mel).abs().max() > 0.5
    assert not silent.infer(mel).any()
    assert opened.facts(default, SETTINGS) != opened.facts(silent, settings)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sigmoid": 0.6}, r"no option sigmoid; did you mean sigma\? \(its options: sigma, denois"),
        ({"channels": 8.0}, r"no option channels \(its options: sigma, denoiser_strength\)"),
        ({"sigma": -0.1}, r"inference\.vocoder_options: sigma is -0\.1, expected 0 or more"),
        ({"denoiser_strength": 1e9}, r"denoiser_strength is 1e\+09, expected 0 to 1"),
    ],
)
def test_options_that_a_vocoder_does_not_have_are_refused(tmp_path, options, message):
    opened = open_vocoder(make_waveglow(tmp_path / "v"), MEL)
    with pytest.raises(InputError, match=message):
        opened.load(dataclasses.replace(SETTINGS, vocoder_options=options), "cpu")
    settings = dataclasses.replace(SETTINGS, vocoder_options={"sigma": 0.6})
    for other, name in (("griffin_lim", "Griffin-Lim"), (make_vocoder(tmp_path / "h"), "h")):
        with pytest.raises(InputError, match=rf"{name} has no option sigma \(it has none\)"):
            open_vocoder(other, MEL).load(settings, "cpu")


@pytest.mark.parametrize("source", [MEL, OTHER_MELS[0]])
def test_the_seed_decides_the_noise_also_through_resampling(tmp_path, source):
    vocoder = open_vocoder(make_waveglow(tmp_path / "v"), MEL).load(SETTINGS, "cpu")
    if source != MEL:
        vocoder = ResamplingVocoder(vocoder, source, MEL)
    mel = torch.randn(1, 80, 9)
    first, again, other = (vocoder.infer(mel, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert (first - other).abs().max() > 0.1
    pieces = [*vocoder.generate(mel, 4, seed=1)]
    assert (torch.cat(pieces, dim=1) - first).abs().max() < 1e-5
