import json
import logging
import sys
import types

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from models.checkpoint.loading import load_model
from tests.models.checkpoint.importers.reading import read_foreign
from tests.models.vocoder.plain_waveglow import (
    KERNEL,
    N_MELS,
    SIZES,
    STRIDE,
    decode,
    encode,
    folded,
    random_checkpoint,
    with_cond_layers,
)
from utils.errors import InputError

# config.json of NVIDIA/waveglow, for a mel as small as the network
DATA_CONFIG = {
    **{"sampling_rate": 8000, "filter_length": KERNEL, "hop_length": STRIDE, "win_length": KERNEL},
    **{"mel_fmin": 0.0, "mel_fmax": 4000.0, "segment_length": 16000},
}
T = 9


@pytest.fixture
def state():
    return random_checkpoint()


@pytest.fixture
def mel():
    torch.manual_seed(3)
    return torch.randn(2, N_MELS, T) - 2


def write(folder, content, name="waveglow.pt", **options):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps({"data_config": DATA_CONFIG}))
    torch.save(content, folder / name, **options)
    return folder / name


def folded_with_cond_layers(state):
    return with_cond_layers(folded(state))


@pytest.mark.parametrize("form", [dict, with_cond_layers, folded, folded_with_cond_layers])
@pytest.mark.parametrize("prefix", ["", "module."])
@pytest.mark.parametrize("config", [{"config": SIZES}, {}])
def test_it_gives_the_originals_numbers_both_ways(tmp_path, state, mel, form, prefix, config):
    tensors = {prefix + name: tensor for name, tensor in form(state).items()}
    network = load_model(write(tmp_path, {"epoch": 1000, "state_dict": tensors, **config})).network
    wav = 0.1 * torch.randn(2, T * STRIDE)
    z, log_s, log_det = encode(state, SIZES, wav, mel)
    with torch.no_grad():
        latent = network(wav, mel)
    assert (latent.z - z).abs().max() < 1e-4
    assert latent.log_scales.sum().item() == pytest.approx(log_s, rel=1e-4)
    assert latent.log_det.sum().item() == pytest.approx(log_det, rel=1e-4)
    z = torch.randn(2, 8, T * STRIDE // 8)
    expected = decode(state, SIZES, z, mel)
    assert expected.abs().max() > 0.5
    assert (network.inverse(z, mel) - expected).abs().max() < 1e-4 * expected.abs().max()
    assert (network.for_inference().inverse(z, mel) - expected).abs().max() < 1e-4


def numbers_are_right(path, state, mel):
    network, z = load_model(path).network, torch.randn(2, 8, T * STRIDE // 8)
    return torch.allclose(network.inverse(z, mel), decode(state, SIZES, z, mel), atol=1e-4)


def test_every_way_to_store_the_tensors_loads_and_unused_parts_are_listed(tmp_path, state, mel):
    halves = {name: tensor.half() for name, tensor in state.items()}
    widened = {name: tensor.float() for name, tensor in halves.items()}
    optimizer = {"state": {0: {"exp_avg": torch.ones(2)}}, "param_groups": [{"lr": 1e-4}]}
    whole = {"epoch": 3, "config": SIZES, "state_dict": state, "optimizer": optimizer}
    whole |= {"scaler": {"scale": 1.0}, "cuda_rng_state_all": [torch.zeros(3, dtype=torch.uint8)]}
    path = write(tmp_path / "whole", whole | {"iteration": 77})
    assert numbers_are_right(path, state, mel)
    unused = ("optimizer", "scaler", "cuda_rng_state_all")
    assert (read_foreign(path).unused, read_foreign(path).step) == (unused, 77)
    assert numbers_are_right(write(tmp_path / "half", {"state_dict": halves}), widened, mel)
    assert numbers_are_right(write(tmp_path / "bare", state, "any name"), state, mel)
    old = write(tmp_path / "old", whole, _use_new_zipfile_serialization=False)
    assert numbers_are_right(old, state, mel)
    save_file(folded(state), old.with_name("model.safetensors"))
    assert numbers_are_right(old.with_name("model.safetensors"), state, mel)


@pytest.mark.parametrize(
    "changes",
    [
        {"n_flows": 2, "n_early_every": 4},  # no early output
        {"n_flows": 4, "n_group": 16, "n_early_every": 1, "n_early_size": 2},
        {"WN_config": {"n_layers": 2, "kernel_size": 5, "n_channels": 4}},
    ],
)
def test_sizes_follow_from_the_tensors(tmp_path, changes, mel):
    sizes = SIZES | changes
    state = random_checkpoint(sizes)
    network = load_model(write(tmp_path, {"state_dict": state})).network
    z = torch.randn(2, sizes["n_group"], T * STRIDE // sizes["n_group"])
    assert torch.allclose(network.inverse(z, mel), decode(state, sizes, z, mel), atol=1e-3)
    assert network.config.channels == sizes["WN_config"]["n_channels"]


@pytest.mark.parametrize(
    "name", ["convinv.0.conv.weight", "WN.0.start.bias", "WN.0.in_layers.0.weight_v"]
)
def test_a_tensor_without_the_axis_of_a_size_is_named(tmp_path, state, name):
    path = write(tmp_path, {"state_dict": state | {name: torch.tensor(1.0)}})
    message = r"waveglow\.pt: the tensor flows\.0\..* of the shape \(\)"
    with pytest.raises(InputError, match=message):
        load_model(path)


def test_the_mel_is_that_of_the_recipe_unless_a_config_says_otherwise(tmp_path, caplog):
    state = random_checkpoint(SIZES, kernel=1024)
    path = tmp_path / "a" / "waveglow.pt"
    path.parent.mkdir()
    torch.save({"state_dict": state, "config": SIZES}, path)
    with caplog.at_level(logging.INFO, "arion"):
        model = load_model(path)
    assert (model.mel.sample_rate, model.mel.n_fft, model.mel.hop_length) == (22050, 1024, 256)
    assert (model.mel.n_mels, model.mel.f_max, model.mel.padding) == (N_MELS, 8000, "centre")
    assert "with the mel of NVIDIA's recipe" in caplog.text
    assert model.home == path.parent
    other = load_model(write(tmp_path / "b", {"state_dict": random_checkpoint(), "config": SIZES}))
    assert (other.mel.sample_rate, other.mel.hop_length, other.mel.f_max) == (8000, 64, 4000)
    incomplete = {key: DATA_CONFIG[key] for key in DATA_CONFIG if key != "mel_fmax"}
    (tmp_path / "b" / "config.json").write_text(json.dumps({"data_config": incomplete}))
    with pytest.raises(InputError, match=r"config\.json: data_config\.mel_fmax is missing"):
        load_model(tmp_path / "b")


def test_the_newest_checkpoint_of_a_folder_is_taken(tmp_path):
    for epoch in (9, 10):
        state = random_checkpoint(seed=epoch)
        write(tmp_path, {"state_dict": state}, f"checkpoint_WaveGlow_{epoch}")
    assert load_model(tmp_path).folder == tmp_path
    assert read_foreign(tmp_path).weights.name == "checkpoint_WaveGlow_10"
    tacotron2 = {"decoder.attention_rnn.weight_hh": torch.ones(1)}
    write(tmp_path, {"state_dict": tacotron2}, "checkpoint_Tacotron2_99")
    message = r"several models in it \(checkpoint_Tacotron2_99, checkpoint_WaveGlow_10"
    with pytest.raises(InputError, match=message):
        load_model(tmp_path)


@pytest.mark.filterwarnings("ignore:Couldn't retrieve source code")
def test_a_pickled_module_is_refused_with_the_way_out(tmp_path, monkeypatch):
    module = types.ModuleType("glow")
    module.WaveGlow = type("WaveGlow", (nn.Module,), {"__module__": "glow"})
    monkeypatch.setitem(sys.modules, "glow", module)
    network = module.WaveGlow()
    network.convinv = nn.Linear(2, 2)
    for is_zip in (True, False):
        folder = tmp_path / str(is_zip)
        path = write(folder, {"model": network}, _use_new_zipfile_serialization=is_zip)
        with pytest.raises(InputError, match=r"it names glow.WaveGlow.*'state_dict': net"):
            load_model(path)


def test_sizes_are_those_of_the_tensors_and_a_missing_one_is_named(tmp_path, state):
    wider = SIZES | {"WN_config": SIZES["WN_config"] | {"n_channels": 8}}
    path = write(tmp_path, {"state_dict": state, "config": wider})
    assert load_model(path).config.model.channels == SIZES["WN_config"]["n_channels"]
    del state["WN.3.end.bias"]
    path = write(tmp_path, {"state_dict": state, "config": SIZES})
    with pytest.raises(InputError, match=r"missing: flows\.3\.coupling\.end\.bias"):
        load_model(path)
