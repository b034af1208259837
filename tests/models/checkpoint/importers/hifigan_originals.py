"""What the HiFi-GAN importers are tested against: the generator as the paper's equations say.

Written apart from the package, from the specification of the published checkpoints: tensors by
their published names, plain functions, no module of ours.
"""

import json
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

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


def convolutions(sizes):
    """Name, shape of the weight and length of the bias of every layer."""
    channels = sizes["upsample_initial_channel"]
    yield "conv_pre", (channels, N_MELS, 7), channels
    block = 0
    for stage, kernel in enumerate(sizes["upsample_kernel_sizes"]):
        yield f"ups.{stage}", (channels, channels // 2, kernel), channels // 2
        channels //= 2
        for size in sizes["resblock_kernel_sizes"]:
            for part, count in parts_of(sizes).items():
                for i in range(count):
                    name = f"resblocks.{block}.{part}.{i}"
                    yield name, (channels, channels, size), channels
            block += 1
    yield "conv_post", (1, channels, 7), 1


def parts_of(sizes):
    return {"convs1": 3, "convs2": 3} if sizes["resblock"] == "1" else {"convs": 2}


def random_generator(sizes, seed=0):
    """A state dict with weight normalisation under its old names."""
    torch.manual_seed(seed)
    state = {}
    for name, shape, n_bias in convolutions(sizes):
        state[f"{name}.bias"] = 0.1 * torch.randn(n_bias)
        state[f"{name}.weight_g"] = 0.3 + torch.rand(shape[0], 1, 1)
        state[f"{name}.weight_v"] = torch.randn(shape)
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


def synthesise(state, sizes, mel):
    """Mel (B, M, T) to wav (B, T * hop)."""

    def conv(name, x, dilation=1):
        w = weight(state, name)
        margin = dilation * (w.shape[2] - 1) // 2
        return F.conv1d(x, w, state[f"{name}.bias"], padding=margin, dilation=dilation)

    def residual(block, x, dilations):
        for i, dilation in enumerate(dilations[: parts_of(sizes).get("convs", 3)]):
            name = f"resblocks.{block}.convs"
            if sizes["resblock"] == "1":
                y = conv(f"{name}1.{i}", F.leaky_relu(x, 0.1), dilation)
                x = x + conv(f"{name}2.{i}", F.leaky_relu(y, 0.1))
            else:
                x = x + conv(f"{name}.{i}", F.leaky_relu(x, 0.1), dilation)
        return x

    x = conv("conv_pre", mel)
    n_kernels = len(sizes["resblock_kernel_sizes"])
    rates_and_kernels = zip(sizes["upsample_rates"], sizes["upsample_kernel_sizes"], strict=True)
    for stage, (rate, kernel) in enumerate(rates_and_kernels):
        name = f"ups.{stage}"
        bias, margin = state[f"{name}.bias"], (kernel - rate) // 2
        x = F.leaky_relu(x, 0.1)
        x = F.conv_transpose1d(x, weight(state, name), bias, stride=rate, padding=margin)
        outputs = [
            residual(stage * n_kernels + i, x, dilations)
            for i, dilations in enumerate(sizes["resblock_dilation_sizes"])
        ]
        x = sum(outputs) / n_kernels
    return torch.tanh(conv("conv_post", F.leaky_relu(x, 0.01)))[:, 0]


class SubDiscriminator(nn.Module):
    """Five convolutions over a waveform folded by a period, or seven over the waveform itself."""

    def __init__(self, convs, conv_post, norm, period=0):
        super().__init__()
        self.convs = nn.ModuleList(norm(conv) for conv in convs)
        self.conv_post = norm(conv_post)
        self.period = period

    def forward(self, wav):
        x = wav[:, None]
        if self.period:
            x = F.pad(x, (0, -x.shape[2] % self.period), mode="reflect")
            x = x.unflatten(2, (-1, self.period))
        for conv in self.convs:
            x = F.leaky_relu(conv(x), 0.1)
        return self.conv_post(x).flatten(1)


class Discriminators(nn.Module):
    def __init__(self, discriminators):
        super().__init__()
        self.discriminators = nn.ModuleList(discriminators)


def period_discriminators(channels):
    """MPD with the normalisation of torch before version 2."""
    norm = torch.nn.utils.weight_norm
    discriminators = []
    for period in (2, 3, 5, 7, 11):
        strides, inputs = (3, 3, 3, 3, 1), (1, *channels)
        convs = [
            nn.Conv2d(inputs[i], channels[i], (5, 1), (strides[i], 1), (2, 0)) for i in range(5)
        ]
        discriminators.append(
            SubDiscriminator(convs, nn.Conv2d(channels[4], 1, (3, 1), 1, (1, 0)), norm, period)
        )
    return Discriminators(discriminators)


def scale_discriminators(channels):
    """MSD: spectral normalisation for the first, weight normalisation for the others."""
    layers = [(15, 1, 1), (41, 2, 4), (41, 2, 16), (41, 4, 16), (41, 4, 16), (41, 1, 16), (5, 1, 1)]
    norms = [torch.nn.utils.spectral_norm, *[torch.nn.utils.weight_norm] * 2]
    discriminators = []
    for norm in norms:
        inputs = (1, *channels)
        convs = [
            nn.Conv1d(inputs[i], channels[i], kernel, stride, kernel // 2, groups=groups)
            for i, (kernel, stride, groups) in enumerate(layers)
        ]
        discriminators.append(SubDiscriminator(convs, nn.Conv1d(channels[6], 1, 3, 1, 1), norm))
    return Discriminators(discriminators)


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
