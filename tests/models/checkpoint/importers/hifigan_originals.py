"""What the HiFi-GAN importers are tested against: the plain network under the published names."""

import json
from pathlib import Path

import torch
from torch import nn

from models.vocoder.hifigan.config import GeneratorConfig
from tests.models.vocoder.plain_hifigan import PlainHiFiGAN, PlainSubDiscriminator

N_MELS, HOP = 8, 64
SIZES = {
    "resblock": "1",
    "upsample_rates": [8, 4, 2],
    "upsample_kernel_sizes": [16, 8, 4],
    "upsample_initial_channel": 32,
    "resblock_kernel_sizes": [3, 5],
    "resblock_dilation_sizes": [[1, 3, 5], [1, 2, 4]],
}
SIZES_OF_TYPE_2 = SIZES | {"resblock": "2", "resblock_dilation_sizes": [[1, 2], [2, 6]]}


def network_of(sizes):
    return PlainHiFiGAN(GeneratorConfig(**sizes), N_MELS)


def random_generator(sizes, seed=0):
    """A state dict with weight normalisation under its old names."""
    torch.manual_seed(seed)
    state = {}
    for name, shape in (
        (name, weight.shape) for name, weight in network_of(sizes).named_parameters()
    ):
        layer, part = name.rsplit(".", 1)
        if part == "bias":
            state[name] = 0.1 * torch.randn(shape)
        else:
            state[f"{layer}.weight_g"] = 0.3 + torch.rand(shape[0], 1, 1)
            state[f"{layer}.weight_v"] = torch.randn(shape)
    return state


def weight(state, name):
    v = state[f"{name}.weight_v"]
    return state[f"{name}.weight_g"] * v / v.flatten(1).norm(dim=1)[:, None, None]


def folded(state):
    """The same without weight normalisation, as exports have it."""
    names = [name.removesuffix(".bias") for name in state if name.endswith(".bias")]
    plain = {f"{name}.weight": weight(state, name) for name in names}
    return plain | {f"{name}.bias": state[f"{name}.bias"] for name in names}


def renamed(state):
    """The same under the names of torch's parametrizations."""
    new = {"weight_g": "parametrizations.weight.original0"}
    new["weight_v"] = "parametrizations.weight.original1"
    return {
        ".".join([*name.split(".")[:-1], new.get(name.split(".")[-1], name.split(".")[-1])]): tensor
        for name, tensor in state.items()
    }


@torch.no_grad()
def synthesise(state, sizes, mel):
    """Mel (B, M, T) to wav (B, T * hop)."""
    network = network_of(sizes)
    network.load_state_dict(folded(state))
    return network(mel)


class Discriminators(nn.Module):
    def __init__(self, discriminators):
        super().__init__()
        self.discriminators = nn.ModuleList(discriminators)


def period_discriminators(channels):
    """MPD with the normalisation of torch before version 2."""
    norm = torch.nn.utils.weight_norm
    return Discriminators(PlainSubDiscriminator(n, channels, norm) for n in (2, 3, 5, 7, 11))


def scale_discriminators(channels):
    """MSD: spectral normalisation for the first, weight normalisation for the others."""
    norms = [torch.nn.utils.spectral_norm, *[torch.nn.utils.weight_norm] * 2]
    msd = Discriminators(PlainSubDiscriminator(0, channels, norm) for norm in norms)
    with torch.no_grad():
        msd.discriminators[0](torch.rand(1, 700))  # estimates the spectral norms
    return msd


def write_authors(folder: Path, state, sizes=SIZES, step=100, **changes):
    """`g_<step>` and config.json."""
    folder.mkdir(parents=True, exist_ok=True)
    audio = {"num_mels": N_MELS, "n_fft": 256, "hop_size": HOP, "win_size": 256}
    audio |= {"sampling_rate": 8000, "fmin": 0, "fmax": 4000, "fmax_for_loss": None}
    training = {"batch_size": 3, "learning_rate": 1e-4, "adam_b1": 0.7, "adam_b2": 0.9}
    training |= {"lr_decay": 0.99, "seed": 12, "segment_size": 512, "num_gpus": 0, "num_workers": 4}
    (folder / "config.json").write_text(json.dumps(sizes | audio | training | changes))
    torch.save({"generator": state}, folder / f"g_{step:08d}")
    return folder


def amphion_args(sizes=SIZES):
    """args.json as Amphion writes it: json5 with a comma after the last of everything."""
    audio = {"n_mel": N_MELS, "n_fft": 256, "hop_size": HOP, "win_size": 256, "sample_rate": 8000}
    audio |= {"fmin": 0, "fmax": 4000, "cut_mel_frame": 16, "extract_mel": True}
    tree = {
        "base_config": "egs/vocoder/gan/exp_config_base.json",
        "model_type": "GANVocoder",
        "dataset": ["ljspeech"],
        "dataset_path": {"ljspeech": "/somewhere/else"},
        "preprocess": audio,
        "model": {
            "generator": "hifigan",
            "discriminators": ["msd", "mpd", "msstftd"],
            "hifigan": sizes,
        },
        "train": {
            "batch_size": 5,
            "adamw": {"lr": 3e-4, "adam_b1": 0.6, "adam_b2": 0.8},
            "exponential_lr": {"lr_decay": 0.98},
        },
    }
    text = json.dumps(tree, indent=4, sort_keys=True)
    lines = text.splitlines()
    ends = [*(line.strip() for line in lines[1:]), ""]
    with_commas = [
        line + "," if after[:1] in ("]", "}") and line[-1] not in "[{," else line
        for line, after in zip(lines, ends, strict=True)
    ]
    return "\n".join(with_commas)
