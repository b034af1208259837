"""WaveGlow as NVIDIA's checkpoints say it, in plain functions, without a module of ours.

Tensors have NVIDIA's names and weight normalisation in its old form. The layout is that of
NVIDIA/waveglow (one `cond_layer` for all layers of a coupling); `cond_layers` gives the other one.
"""

import torch
from torch.nn import functional as F

N_MELS, KERNEL, STRIDE = 8, 256, 64
SIZES = {
    "n_mel_channels": N_MELS,
    "n_flows": 5,
    "n_group": 8,
    "n_early_every": 2,
    "n_early_size": 2,
    "WN_config": {"n_layers": 3, "kernel_size": 3, "n_channels": 6},
}


def random_checkpoint(sizes=SIZES, kernel=KERNEL, seed=0):
    """A state dict of random weights."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape, std=1.0):
        return std * torch.randn(*shape, generator=generator)

    state = {}

    def layer(name, outputs, inputs, width):
        state[f"{name}.bias"] = normal(outputs, std=0.1)
        state[f"{name}.weight_g"] = 0.3 + torch.rand(outputs, 1, 1, generator=generator)
        state[f"{name}.weight_v"] = normal(outputs, inputs, width)

    n_mels, wn = sizes["n_mel_channels"], sizes["WN_config"]
    n_layers, width, hidden = wn["n_layers"], wn["kernel_size"], wn["n_channels"]
    state["upsample.weight"] = normal(n_mels, n_mels, kernel, std=0.05)
    state["upsample.bias"] = normal(n_mels, std=0.1)
    channels = sizes["n_group"]
    for k in range(sizes["n_flows"]):
        if k and k % sizes["n_early_every"] == 0:
            channels -= sizes["n_early_size"]
        rotation, _ = torch.linalg.qr(normal(channels, channels))
        stretched = rotation * (0.5 + torch.rand(channels, generator=generator))
        if torch.linalg.det(stretched) < 0:
            stretched[:, 0] *= -1
        state[f"convinv.{k}.conv.weight"] = stretched[:, :, None].contiguous()
        layer(f"WN.{k}.start", hidden, channels // 2, 1)
        layer(f"WN.{k}.cond_layer", 2 * hidden * n_layers, n_mels * sizes["n_group"], 1)
        for i in range(n_layers):
            layer(f"WN.{k}.in_layers.{i}", 2 * hidden, hidden, width)
            last = i == n_layers - 1
            layer(f"WN.{k}.res_skip_layers.{i}", hidden if last else 2 * hidden, hidden, 1)
        state[f"WN.{k}.end.weight"] = normal(channels, hidden, 1, std=0.1)
        state[f"WN.{k}.end.bias"] = normal(channels, std=0.1)
    return state


def with_cond_layers(state, sizes=SIZES):
    """The layout with a conditioning layer for each layer."""
    n_layers = sizes["WN_config"]["n_layers"]
    new = {}
    for name, tensor in state.items():
        head, found, tail = name.partition("cond_layer.")
        if found:
            parts = tensor.chunk(n_layers)
            new |= {f"{head}cond_layers.{i}.{tail}": part for i, part in enumerate(parts)}
        else:
            new[name] = tensor
    return new


def folded(state):
    """The same without weight normalisation."""
    plain = {}
    for name, tensor in state.items():
        if name.endswith("weight_v"):
            plain[name.replace("weight_v", "weight")] = weight_of(state, name[: -len(".weight_v")])
        elif not name.endswith("weight_g"):
            plain[name] = tensor
    return plain


def weight_of(state, name):
    v = state[f"{name}.weight_v"]
    return state[f"{name}.weight_g"] * v / v.flatten(1).norm(dim=1)[:, None, None]


def upsampled(state, sizes, mel):
    """Every sample's conditioning by the sum over frames, grouped: (B, M, T) -> (B, M * G, L)."""
    B, M, T = mel.shape
    weight, bias = state["upsample.weight"], state["upsample.bias"]
    result = torch.zeros(B, M, T * STRIDE) + bias[None, :, None]
    for frame in range(T):
        end = min(T * STRIDE, frame * STRIDE + weight.shape[2])
        spread = torch.einsum("bi,iok->bok", mel[:, :, frame], weight)
        result[:, :, frame * STRIDE : end] += spread[:, :, : end - frame * STRIDE]
    G = sizes["n_group"]
    groups = result.unfold(2, G, G).permute(0, 2, 1, 3)  # (B, L, M, G)
    return groups.reshape(B, groups.shape[1], M * G).permute(0, 2, 1)


def coupling(state, sizes, k, half, conditioning):
    """Shift and log scale."""

    def conv(name, signal, dilation=1):
        weight, bias = weight_of(state, f"WN.{k}.{name}"), state[f"WN.{k}.{name}.bias"]
        margin = dilation * (weight.shape[2] - 1) // 2
        return F.conv1d(signal, weight, bias, padding=margin, dilation=dilation)

    hidden_size = sizes["WN_config"]["n_channels"]
    n_layers = sizes["WN_config"]["n_layers"]
    hidden, total = conv("start", half), 0
    all_conditions = conv("cond_layer", conditioning)
    for i in range(n_layers):
        condition = all_conditions[:, i * 2 * hidden_size : (i + 1) * 2 * hidden_size]
        gates = conv(f"in_layers.{i}", hidden, 2**i) + condition
        acts = torch.tanh(gates[:, :hidden_size]) * torch.sigmoid(gates[:, hidden_size:])
        made = conv(f"res_skip_layers.{i}", acts)
        if i < n_layers - 1:
            hidden = hidden + made[:, :hidden_size]
            made = made[:, hidden_size:]
        total = total + made
    out = F.conv1d(total, state[f"WN.{k}.end.weight"], state[f"WN.{k}.end.bias"])
    return out[:, : half.shape[1]], out[:, half.shape[1] :]


def encode(state, sizes, wav, mel):
    """z, the sum of log s and the sum of log det W over a batch, as the loss adds them up."""
    conditioning = upsampled(state, sizes, mel)
    G = sizes["n_group"]
    signal = wav.unfold(1, G, G).permute(0, 2, 1)
    early, log_s_total, log_det_total = [], 0.0, 0.0
    for k in range(sizes["n_flows"]):
        if k and k % sizes["n_early_every"] == 0:
            early.append(signal[:, : sizes["n_early_size"]])
            signal = signal[:, sizes["n_early_size"] :]
        matrix = state[f"convinv.{k}.conv.weight"][:, :, 0]
        signal = torch.einsum("oc,bcl->bol", matrix, signal)
        log_det_total += len(wav) * signal.shape[2] * torch.logdet(matrix).item()
        half = signal.shape[1] // 2
        shift, log_s = coupling(state, sizes, k, signal[:, :half], conditioning)
        signal = torch.cat([signal[:, :half], log_s.exp() * signal[:, half:] + shift], dim=1)
        log_s_total += log_s.sum().item()
    return torch.cat([*early, signal], dim=1), log_s_total, log_det_total


def decode(state, sizes, z, mel):
    """z in the order of `encode` to a wav."""
    conditioning = upsampled(state, sizes, mel)
    size, every = sizes["n_early_size"], sizes["n_early_every"]
    n_early = (sizes["n_flows"] - 1) // every
    signal = z[:, n_early * size :]
    for k in reversed(range(sizes["n_flows"])):
        half = signal.shape[1] // 2
        shift, log_s = coupling(state, sizes, k, signal[:, :half], conditioning)
        changed = (signal[:, half:] - shift) / log_s.exp()
        matrix = torch.linalg.inv(state[f"convinv.{k}.conv.weight"][:, :, 0])
        both = torch.cat([signal[:, :half], changed], dim=1)
        signal = torch.einsum("oc,bcl->bol", matrix, both)
        if k and k % every == 0:
            n_early -= 1
            signal = torch.cat([z[:, n_early * size : (n_early + 1) * size], signal], dim=1)
    return signal.permute(0, 2, 1).reshape(len(z), -1)
