"""Sizes of all models: the published ones by default, and those that are refused."""

from dataclasses import replace

import pytest
import torch

from models.base.aligner import JointAlignerConfig
from models.tts.fastpitch import FastPitch, FastPitchConfig
from models.tts.fastpitch.config import FFTConfig, TemporalPredictorConfig
from models.tts.fastspeech2 import FastSpeech2, FastSpeech2Config
from models.tts.fastspeech2.config import TransformerConfig
from models.tts.fastspeech2.config import VarianceEmbeddingConfig as EmbeddingConfig
from models.tts.fastspeech2.config import VariancePredictorConfig as PredictorConfig
from models.tts.flowspeech import FlowSpeech, FlowSpeechConfig
from models.tts.flowspeech.config import EstimatorConfig, PhoneEncoderConfig, ProsodyConfig
from models.tts.matcha import Matcha, MatchaConfig
from models.tts.matcha.config import TextEncoderConfig, UNetConfig
from models.tts.tacotron2 import Tacotron2, Tacotron2Config
from models.tts.tacotron2.config import DecoderConfig, EncoderConfig, PostNetConfig
from models.vocoder.freevgl import FreeVGL, FreeVGLConfig
from models.vocoder.hifigan import HiFiGAN, WaveDiscriminator
from models.vocoder.hifigan.config import DiscriminatorConfig, GeneratorConfig, HiFiGANConfig
from models.vocoder.vocos import Vocos, VocosConfig
from models.vocoder.vocos.config import ResolutionsConfig
from models.vocoder.waveglow import WaveGlow, WaveGlowConfig
from modules.mel import MelConfig
from tests.models.tts.batches import ENERGY, PITCH
from tests.models.vocoder.small_hifigan import DISCRIMINATOR, GENERATOR

MEL, WIDE = MelConfig(), MelConfig(24000, n_mels=100, f_max=12000, scale="htk", log_floor=1e-7)
# magnitudes of weight normalisation, which NVIDIA counts, one for each output of a normalised layer
MAGNITUDES = 12 * (512 + 2 * 512 * 8 + 2 * 512 * 8 + 2 * 512 * 7 + 512)
SIZES = {
    "FastSpeech 2": (lambda: FastSpeech2(FastSpeech2Config(), 152, MEL, PITCH, ENERGY), 34_592_835),
    "FastPitch 1.0": (lambda: fastpitch("1.0"), 44_766_546),
    "FastPitch 1.1 less its aligner": (lambda: fastpitch("1.1"), 46_266_420 - 1_005_025),
    "FlowSpeech": (lambda: FlowSpeech(FlowSpeechConfig(), 80, MEL, PITCH, ENERGY), 8_600_356),
    "Matcha": (lambda: Matcha(MatchaConfig(), 178, 1, 80, -11.5), 18_204_193),
    "109 speakers": (lambda: Matcha(MatchaConfig(), 178, 109, 80, -11.5), 20_857_569),
    "Tacotron 2": (lambda: Tacotron2(Tacotron2Config(), 148, MEL), 28_193_153),
    "FreeVGL": (lambda: FreeVGL(FreeVGLConfig(), MEL), 2_261_761),
    "HiFi-GAN V1": (lambda: HiFiGAN(GeneratorConfig(), 80), pytest.approx(13.92e6, abs=1e4)),
    "periods": (lambda: WaveDiscriminator(DiscriminatorConfig()).mpd, pytest.approx(41.1e6, 1e-3)),
    "scales": (lambda: WaveDiscriminator(DiscriminatorConfig()).msd, pytest.approx(29.6e6, 1e-3)),
    "Vocos": (lambda: Vocos(VocosConfig(), WIDE), pytest.approx(13.53e6, abs=1e4)),
    "WaveGlow": (lambda: WaveGlow(WaveGlowConfig(), MEL), 268_294_760 - MAGNITUDES),
}
NOT_EMPTY = ("FlowSpeech", "FreeVGL", "periods", "scales")  # their weights need values


def fastpitch(variant: str) -> FastPitch:
    return FastPitch(FastPitchConfig(variant=variant), 148, MEL, PITCH)


@pytest.mark.parametrize("name", SIZES)
def test_the_default_sizes_are_those_of_the_authors(name):
    build, n_weights = SIZES[name]
    with torch.device("cpu" if name in NOT_EMPTY else "meta"):
        assert sum(weight.numel() for weight in build().parameters()) == n_weights


def of_fastspeech2(**sizes: object) -> FastSpeech2Config:
    return FastSpeech2Config(transformer=TransformerConfig(**sizes))


REFUSED = [
    (JointAlignerConfig, {"hidden": 0}, "hidden is 0, expected 1 or more"),
    (JointAlignerConfig, {"temperature": 0.0}, "temperature is 0, expected more than 0"),
    (
        JointAlignerConfig,
        {"binarization_start": -1},
        "binarization_start is -1, expected 0 or more",
    ),
    (of_fastspeech2, {"decoder_hidden": 128}, "256 and decoder_hidden 128"),
    (of_fastspeech2, {"encoder_head": 3}, "encoder_head 3 does not divide"),
    (of_fastspeech2, {"conv_kernel_size": (9, 2)}, "must be odd"),
    (of_fastspeech2, {"conv_kernel_size": (9, -1)}, "must be odd"),
    (of_fastspeech2, {"n_encoder_layers": -1}, "n_encoder_layers is -1, expected 1 or more"),
    (of_fastspeech2, {"decoder_dropout": 1.5}, "decoder_dropout is 1.5, expected a share"),
    (FastSpeech2Config, {"max_seq_len": 0}, "max_seq_len is 0, expected 1 or more"),
    (PredictorConfig, {"filter_size": 0}, "filter_size is 0, expected 1 or more"),
    (PredictorConfig, {"dropout": 1.0}, "dropout is 1, expected a share"),
    (PredictorConfig, {"kernel_size": 4}, "kernel_size is 4, expected an odd number"),
    (PredictorConfig, {"filter_size": 15, "own_encoder": True}, "15, expected an even number"),
    (EmbeddingConfig, {"n_bins": 1}, "n_bins is 1, expected 2 or more"),
    (EmbeddingConfig, {"dropout": 0.1}, "dropout is 0.1, but kind bins does not read"),
    (EmbeddingConfig, {"kind": "convolution", "n_bins": 9}, "n_bins is 9, but kind con"),
    (FFTConfig, {"kernel_size": 4}, "kernel_size is 4, expected an odd number"),
    (FFTConfig, {"heads": 0}, "heads is 0, expected 1 or more"),
    (FFTConfig, {"attention_dropout": 1.0}, "attention_dropout is 1, expected a share"),
    (TemporalPredictorConfig, {"kernel_size": -1}, "kernel_size is -1, expected an odd"),
    (FastPitchConfig, {"hidden": 15}, "hidden is 15, expected an even number"),
    (FastPitchConfig, {"energy_kernel_size": 2}, "energy_kernel_size is 2, expected an odd"),
    (FastPitchConfig, {"pitch_loss_weight": -1.0}, "pitch_loss_weight is -1, expected 0"),
    (FlowSpeechConfig, {"steps": 0}, "steps are 0 .*, expected 1 to 50"),
    (FlowSpeechConfig, {"temperature": -0.1}, "temperature is -0.1, expected .* 0 to 2"),
    (FlowSpeechConfig, {"steps": 51}, "steps are 51 .*, expected 1 to 50"),
    (FlowSpeechConfig, {"temperature": 2.5}, "temperature is 2.5, expected .* 0 to 2"),
    (FlowSpeechConfig, {"hidden": 33}, "hidden is 33, expected a multiple of encoder.heads, 2"),
    (PhoneEncoderConfig, {"kernel_size": 4}, "kernel_size is 4, expected an odd number"),
    (ProsodyConfig, {"channels": 15}, "channels is 15, expected an even number"),
    (EstimatorConfig, {"channels": 15}, "channels is 15, expected an even number"),
    (EstimatorConfig, {"dilations": ()}, r"dilations are \[\], expected numbers from 1 on"),
    (MatchaConfig, {"steps": 0}, "steps are 0 .*, expected 1 to 50"),
    (MatchaConfig, {"steps": 51}, "steps are 51 .*, expected 1 to 50 and 0 to 2"),
    (MatchaConfig, {"out_size": 6}, "out_size is 6, expected a multiple of 4"),
    (MatchaConfig, {"mel_std": 0.0}, "mel_std is 0, expected more than 0"),
    (MatchaConfig, {"encoder": TextEncoderConfig(hidden=33)}, "hidden is 33, expected a multiple"),
    (MatchaConfig, {"speaker_size": 3}, "speaker_size is 3, expected a multiple of .*, 2"),
    (TextEncoderConfig, {"kernel_size": 4}, "kernel_size is 4, expected an odd number"),
    (UNetConfig, {"channels": (12,)}, r"channels are \[12\], expected .* multiples of 8"),
    (UNetConfig, {"channels": (8,) * 4}, r"channels are .*, expected one to three"),
    (EncoderConfig, {"hidden": 5}, "hidden 5 must be even"),
    (EncoderConfig, {"kernel_size": 4}, "kernel_size is 4, expected an odd number"),
    (PostNetConfig, {"kernel_size": 4}, "kernel_size is 4, expected an odd number"),
    (DecoderConfig, {"location_kernel_size": 4}, "location_kernel_size is 4, expected an odd"),
    (DecoderConfig, {"n_frames_per_step": 0}, "n_frames_per_step is 0, expected 1 or more"),
    (Tacotron2Config, {"guided_width": 0.0}, "guided_width is 0, expected more than 0"),
    (Tacotron2Config, {"mel_std": 0.0}, "mel_std is 0, expected more than 0"),
    (FreeVGLConfig, {"bands": ()}, r"bands are .*expected one or more"),
    (FreeVGLConfig, {"bands": ((0.5, 0.5),)}, r"bands are .*expected one or more"),
    (FreeVGLConfig, {"bands": ((0.0, 1.1),)}, r"bands are .*expected one or more"),
    (FreeVGLConfig, {"bands": ((-0.1, 0.5),)}, r"bands are .*expected one or more"),
    (FreeVGLConfig, {"kernel_size": 2}, "kernel_size"),
    (FreeVGLConfig, {"kernel_size": 0}, "kernel_size"),
    (GENERATOR, {"upsample_rates": ()}, r"rates \[\] and upsample_kernel_sizes \[16, 16\]: expec"),
    (GENERATOR, {"upsample_kernel_sizes": (16,)}, "expected one kernel size for each rate"),
    (
        GENERATOR,
        {"upsample_kernel_sizes": (15, 16)},
        "15 for the rate 8; expected the rate plus an",
    ),
    (GENERATOR, {"upsample_kernel_sizes": (16, 6)}, "6 for the rate 8; expected the rate plus an"),
    (GENERATOR, {"upsample_rates": (0, 8)}, "16 for the rate 0"),
    (GENERATOR, {"resblock_kernel_sizes": (3, 5)}, "2 resblock_kernel_sizes, 1 resblock_dilation"),
    (GENERATOR, {"resblock_kernel_sizes": (4,)}, r"resblock_kernel_sizes must be odd, not \(4,\)"),
    (GENERATOR, {"upsample_initial_channel": 10}, "channel 10 cannot be halved 2 times"),
    (DISCRIMINATOR, {"scales": -1}, "scales"),
    (DISCRIMINATOR, {"period_channels": (4,) * 4}, "period_channels are 4 numbers, expected 5"),
    (DISCRIMINATOR, {"scale_channels": (4, 16)}, "scale_channels are 2 numbers, expected 7"),
    (DISCRIMINATOR, {"periods": ()}, r"periods are \[\], expected one or more above 0"),
    (DISCRIMINATOR, {"periods": (2, 0)}, r"periods are \[2, 0\]"),
    (DISCRIMINATOR, {"scale_channels": (6, *[16] * 6)}, "expected a multiple of 4, then multiples"),
    (DISCRIMINATOR, {"scale_channels": (4, 16, 24, *[16] * 4)}, "4, then multiples of 16"),
    (HiFiGANConfig, {"adversarial": False, "lambda_mel": 0}, "needs lambda_mel or lambda_stft"),
    (HiFiGANConfig, {"lambda_feature": -1}, "lambda_feature"),
    (ResolutionsConfig, {"period_channels": (4,)}, "period_channels are 1 numbers, expected 5"),
    (ResolutionsConfig, {"periods": ()}, r"periods are \[\], expected one or more above 0"),
    (ResolutionsConfig, {"windows": (30,)}, r"windows are \[30\], expected .* of 4 from 32"),
    (VocosConfig, {"adversarial": False, "lambda_mel": 0}, "adversarial false needs lambda_mel"),
    (WaveGlowConfig, {"groups": 7}, "groups 7 must be even"),
    (WaveGlowConfig, {"early_size": 3}, "early_size 3 must be even"),
    (WaveGlowConfig, {"kernel_size": 4}, "kernel_size is 4, expected an odd number"),
    (WaveGlowConfig, {"train_sigma": 0.0}, "train_sigma is 0, expected more than 0"),
    (WaveGlowConfig, {"flows": 13, "early_every": 2}, "no channels are left for the last step"),
]


@pytest.mark.parametrize(("section", "keys", "message"), REFUSED)
def test_sizes_that_do_not_fit_are_refused(section, keys, message):
    with pytest.raises(ValueError, match=message):
        section(**keys) if callable(section) else replace(section, **keys)


def test_what_an_encoder_of_the_prosody_needs_is_named():
    own, other = PredictorConfig(own_encoder=True), EmbeddingConfig(kind="convolution")
    for keys, message in (
        (
            {"energy_level": "frame"},
            "energy_level phone, not frame; change it or set own_encoder to false",
        ),
        ({"variance_embedding": other}, "variance_embedding.kind bins"),
    ):
        with pytest.raises(ValueError, match=f"own_encoder needs {message}"):
            FastSpeech2Config(variance_predictor=own, **keys)


def test_a_vocoder_may_learn_from_one_loss_alone():
    assert HiFiGANConfig(adversarial=False, lambda_mel=0, lambda_stft=1).lambda_stft == 1
