"""Vocos checkpoints in the layout of the author's package."""

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from models.checkpoint.loading import load_model
from modules.mel import MelConfig
from tests.models.vocoder.small_vocos import plain_wav
from utils.errors import InputError

CONFIG: dict[str, dict[str, Any]] = {
    "feature_extractor": {
        "class_path": "vocos.feature_extractors.MelSpectrogramFeatures",
        "init_args": {"sample_rate": 8000, "n_fft": 256, "hop_length": 64, "n_mels": 20}
        | {"padding": "center"},
    },
    "backbone": {
        "class_path": "vocos.models.VocosBackbone",
        "init_args": {"input_channels": 20, "dim": 8, "intermediate_dim": 12, "num_layers": 2},
    },
    "head": {
        "class_path": "vocos.heads.ISTFTHead",
        "init_args": {"dim": 8, "n_fft": 256, "hop_length": 64, "padding": "center"},
    },
}


def make_weights() -> dict[str, torch.Tensor]:
    """Random weights by their published names, and the buffers of the package."""
    generator = torch.Generator().manual_seed(0)
    shapes = {"backbone.embed.weight": (8, 20, 7), "backbone.embed.bias": (8,)}
    shapes |= {"head.out.weight": (258, 8), "head.out.bias": (258,)}
    for name in ("norm", "final_layer_norm", "convnext.0.norm", "convnext.1.norm"):
        shapes |= {f"backbone.{name}.weight": (8,), f"backbone.{name}.bias": (8,)}
    for n in range(2):
        block = f"backbone.convnext.{n}"
        shapes |= {f"{block}.gamma": (8,), f"{block}.dwconv.weight": (8, 1, 7)}
        shapes |= {f"{block}.dwconv.bias": (8,), f"{block}.pwconv1.weight": (12, 8)}
        shapes |= {f"{block}.pwconv1.bias": (12,), f"{block}.pwconv2.weight": (8, 12)}
        shapes |= {f"{block}.pwconv2.bias": (8,)}
    weights = {n: 0.4 * torch.randn(shape, generator=generator) for n, shape in shapes.items()}
    return weights | {
        "head.istft.window": torch.hann_window(256),
        "feature_extractor.mel_spec.spectrogram.window": torch.hann_window(256),
        "feature_extractor.mel_spec.mel_scale.fb": torch.zeros(129, 20),
    }


def write(folder: Path, **changes: object) -> Path:
    """A checkpoint; `changes` are values by section__key of its `init_args`, ... to remove one."""
    config = copy.deepcopy(CONFIG)
    for name, value in changes.items():
        section, key = name.split("__")
        values = config[section] if key == "class_path" else config[section]["init_args"]
        values[key] = value
        if value is ...:
            del values[key]
    folder.mkdir(exist_ok=True)
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    torch.save(make_weights(), folder / "pytorch_model.bin")
    return folder


@pytest.mark.parametrize("padding", ["center", "same"])
def test_samples_are_those_of_the_published_layers(tmp_path, padding):
    write(tmp_path, head__padding=padding, feature_extractor__padding=padding)
    vocoder = load_model(tmp_path)
    mel = torch.randn(1, 20, 30, generator=torch.Generator().manual_seed(1))
    expected = plain_wav(make_weights(), mel, 256, 64, padding).clamp(-1, 1)
    assert expected.std() > 1e-2
    for network in (vocoder.network, vocoder.network.for_inference()):
        wav = network.infer(mel)
        assert wav.shape == (1, 30 * 64)
        assert torch.allclose(wav[:, : expected.shape[1]], expected, atol=1e-5)
    assert vocoder.mel.padding == {"center": "centre", "same": "hifigan"}[padding]


def test_the_mel_is_that_of_torchaudio_with_the_floor_of_vocos(tmp_path):
    expected = MelConfig(8000, 256, 256, 64, 20, 0, 4000, "centre", 1e-7, "htk")
    assert load_model(write(tmp_path / "htk")).mel == expected
    slaney = {"feature_extractor__norm": "slaney", "feature_extractor__mel_scale": "slaney"}
    mel = load_model(write(tmp_path / "slaney", **slaney, feature_extractor__f_max=3000)).mel
    assert (mel.scale, mel.f_max) == ("slaney", 3000)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"feature_extractor__class_path": "vocos.feature_extractors.EncodecFeatures"},
            r"config\.yaml: feature_extractor is vocos\.feature_extractors\.EncodecFeatures,"
            " expected vocos' MelSpectrogramFeatures: only vocoders of mels are read",
        ),
        ({"head__class_path": "vocos.heads.IMDCTCosHead"}, "head is .*expected vocos' ISTFTHead"),
        ({"backbone__adanorm_num_embeddings": 4}, "adanorm_num_embeddings is set"),
        ({"head__padding": "same"}, "padding of feature_extractor and head differ"),
        ({"head__hop_length": 32}, "hop_length of feature_extractor and head differ"),
        ({"feature_extractor__norm": "slaney"}, "mel_scale, norm and padding are"),
        ({"backbone__dim": ...}, r"config\.yaml: backbone\.dim is missing"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_reason(tmp_path, changes, message):
    with pytest.raises(InputError, match=message):
        load_model(write(tmp_path, **changes))
