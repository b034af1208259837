"""What the HiFi-GAN importers are tested against: the plain network under the published names."""

import json
from pathlib import Path

import torch
from torch import nn

from models.checkpoint.loading import load_model
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
DISCRIMINATOR = {"period_channels": (2, 4, 4, 6, 6), "scale_channels": (4, 16, 16, 32, 16, 16, 16)}
SIZES_OF_TYPE_2 = SIZES | {"resblock": "2", "resblock_dilation_sizes": [[1, 2], [2, 6]]}


def network_of(sizes):
    return PlainHiFiGAN(GeneratorConfig(**sizes), N_MELS)


def random_generator(sizes=SIZES, seed=0):
    """A state dict with weight normalisation under its old names."""
    torch.manual_seed(seed)
    state = {}
    for name, weights in network_of(sizes).named_parameters():
        layer, part = name.rsplit(".", 1)
        if part == "bias":
            state[name] = 0.1 * torch.randn(weights.shape)
        else:
            state[f"{layer}.weight_g"] = 0.3 + torch.rand(len(weights), 1, 1)
            state[f"{layer}.weight_v"] = torch.randn(weights.shape)
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
    tensors = {}
    for name, tensor in state.items():
        name = name.replace("weight_g", "parametrizations.weight.original0")
        tensors[name.replace("weight_v", "parametrizations.weight.original1")] = tensor
    return tensors


@torch.no_grad()
def synthesise(state, sizes, mel):
    """Mel (B, M, T) to wav (B, T * hop)."""
    network = network_of(sizes)
    network.load_state_dict(folded(state))
    return network(mel)


def check_wav(path, state, sizes=SIZES):
    """Loads a vocoder that gives the samples of the original; returns it."""
    torch.manual_seed(3)
    mel = torch.randn(1, N_MELS, 7) - 4
    model, expected = load_model(path), synthesise(state, sizes, mel)
    wav = model.network.infer(mel)
    assert expected.abs().max() > 0.1
    assert wav.dtype == torch.float32
    assert torch.allclose(wav, expected, atol=1e-5)
    return model


class Discriminators(nn.Module):
    def __init__(self, discriminators):
        super().__init__()
        self.discriminators = nn.ModuleList(discriminators)


def period_discriminators(channels=DISCRIMINATOR["period_channels"]):
    """MPD with the normalisation of torch before version 2."""
    norm = torch.nn.utils.weight_norm
    return Discriminators(PlainSubDiscriminator(n, channels, norm) for n in (2, 3, 5, 7, 11))


def scale_discriminators(channels=DISCRIMINATOR["scale_channels"]):
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


def amphion_args(sizes=SIZES, **audio):
    """The values in args.json of Amphion."""
    preprocess = {"n_mel": N_MELS, "n_fft": 256, "hop_size": HOP, "win_size": 256}
    preprocess |= {"sample_rate": 8000, "fmin": 0, "fmax": 4000, "cut_mel_frame": 16}
    generator = {"generator": "hifigan", "discriminators": ["msd", "mpd", "msstftd"]}
    optimizer = {"adamw": {"lr": 3e-4, "adam_b1": 0.6, "adam_b2": 0.8}}
    tree = {
        "base_config": "egs/vocoder/gan/exp_config_base.json",
        "model_type": "GANVocoder",
        "dataset": ["ljspeech"],
        "dataset_path": {"ljspeech": "/somewhere/else"},
        "preprocess": preprocess | {"extract_mel": True} | audio,
        "model": generator | {"hifigan": sizes},
        "train": optimizer | {"batch_size": 5, "exponential_lr": {"lr_decay": 0.98}},
    }
    return json.dumps(tree)


def write_amphion(root, state, older, args):
    """The layout of amphion/hifigan_ljspeech on the Hub: args.json is not next to the weights."""
    checkpoints = {
        "step-0560000_loss-51.2373.pt": {
            "generator_state_dict": state,
            "discriminators": {"mpd": {"convs.0.bias": torch.ones(3)}},
            "optimizer_state_dict": {"state": {0: {"exp_avg": torch.ones(1)}}},
        },
        "step-0100000_loss-11.0.pt": {"generator_state_dict": older},
    }
    (root / "checkpoints").mkdir(parents=True)
    for name, content in checkpoints.items():
        torch.save(content, root / "checkpoints" / name)
    (root / "checkpoints" / "checkpoint").write_text("step-0560000_loss-51.2373.pt")
    (root / "args.json").write_text(args)
    (root / "README.md").write_text("---\nlicense: mit\n---\n")
    return root
