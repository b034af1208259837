import json
import logging
from functools import partial

import pytest
import torch
from safetensors.torch import load_file

from config.schema import InferenceConfig
from models.base.registry import config_of, find, load_config
from models.checkpoint.conversion import convert_to_experiment
from models.checkpoint.importers import hifigan_authors
from models.checkpoint.loading import load_model
from models.synthesizer.vocoders import open_vocoder
from models.training.initialisation.finetune import initialise
from models.vocoder._hifigan_discriminators import PERIODS, WaveDiscriminator
from modules.layers.normalisation import fold
from tests.models.checkpoint.importers.hifigan_originals import (
    SIZES,
    folded,
    random_generator,
    scale_discriminators,
    synthesise,
    write_authors,
)
from utils.config_tree import overridden
from utils.errors import InputError

SCALE_CHANNELS = (4, 16, 16, 32, 16, 16, 16)
SMALL = {"period_channels": (2, 4, 4, 6, 6), "scale_channels": SCALE_CHANNELS}


@pytest.fixture
def source(tmp_path, monkeypatch):
    """A generator of 100 steps with its scale discriminators, smaller than the published ones."""
    monkeypatch.setattr(
        hifigan_authors, "WaveDiscriminator", partial(WaveDiscriminator, PERIODS, **SMALL)
    )
    folder = write_authors(tmp_path / "source", random_generator(SIZES))
    with pytest.warns(FutureWarning, match="weight_norm"):
        discriminators = scale_discriminators(SCALE_CHANNELS)
    torch.save({"msd": discriminators.state_dict(), "optim_g": {}}, folder / "do_00000100")
    return folder


def test_the_experiment_gives_the_samples_of_the_checkpoint(tmp_path, source):
    target = tmp_path / "made" / "hifigan"
    convert_to_experiment(str(source), target)
    before, after = load_model(source), load_model(target)

    torch.manual_seed(1)
    mel = torch.randn(1, 8, 9) - 4
    expected = synthesise(random_generator(SIZES), SIZES, mel)
    assert torch.allclose(before.network.infer(mel), expected, atol=1e-5)
    assert torch.equal(after.network.infer(mel), before.network.infer(mel))
    assert (after.config, after.assets) == (before.config, before.assets)
    for reference in (source, target):
        vocoder = open_vocoder(reference, before.mel).load(
            InferenceConfig(vocoder_precision="fp32"), "cpu"
        )
        assert torch.equal(vocoder.infer(mel), before.network.infer(mel))


def test_the_experiment_is_an_ordinary_one(tmp_path, source):
    convert_to_experiment(str(source), tmp_path / "hifigan")
    names = {path.name for path in (tmp_path / "hifigan").iterdir()}

    assert names == {
        "README.md",
        "audio.json",
        "manifest.json",
        "config.json",
        "discriminator.safetensors",
        "history.json",
        "model.safetensors",
    }
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
    assert load_config(tmp_path / "hifigan" / "config.json").model_type == "HiFiGAN"
    json.loads((tmp_path / "hifigan" / "config.json").read_text())
    assert len({path.stat().st_mode for path in (tmp_path / "hifigan").iterdir()}) == 1
    card = (tmp_path / "hifigan" / "README.md").read_text()
    assert "HiFi-GAN trained by its authors' implementation (jik876/hifi-gan), g_00000100" in card
    assert "| updates | 100 |" in card
    assert "| not imported | do_00000100: optim_g |" in card
    assert 'vocoder="hifigan"' in card


def test_tensors_that_share_memory_or_lie_turned_in_it_are_written(tmp_path):
    state = random_generator(SIZES)
    state["ups.1.bias"] = state["ups.0.bias"][:8]
    state["conv_post.weight_v"] = state["conv_post.weight_v"].mT.contiguous().mT
    source = write_authors(tmp_path / "source", state)
    convert_to_experiment(str(source), tmp_path / "hifigan")
    found = load_file(tmp_path / "hifigan" / "model.safetensors")

    assert torch.equal(found["ups.1.bias"], state["ups.0.bias"][:8])
    turned = found["conv_post.parametrizations.weight.original1"]
    assert torch.equal(turned, state["conv_post.weight_v"])


def test_fine_tuning_starts_the_same_from_both(tmp_path, source):
    convert_to_experiment(str(source), tmp_path / "hifigan")
    config = load_config(
        tmp_path / "hifigan" / "config.json",
        [f"model.discriminator.{name}={list(value)}" for name, value in SMALL.items()],
    )
    states = []
    for reference in (source, tmp_path / "hifigan"):
        torch.manual_seed(5)
        assets = load_model(reference).assets
        task = find("vocoder", "hifigan").build_task(config, assets)
        fresh = {n: t.clone() for n, t in task.networks["discriminator"].state_dict().items()}
        transfer = initialise(task, assets, reference)
        discriminators = task.networks["discriminator"].state_dict()

        assert {name.split(".")[0] for name in transfer.new} == {"mpd"}
        assert transfer.dropped == []
        changed = {
            n.split(".")[0] for n, t in discriminators.items() if not torch.equal(t, fresh[n])
        }
        assert changed == {"msd"}
        states.append(discriminators | task.networks["generator"].state_dict())

    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    state = random_generator(SIZES)
    layer = "ups.1.parametrizations.weight"
    assert torch.equal(states[0][f"{layer}.original0"], state["ups.1.weight_g"])
    assert torch.equal(states[0][f"{layer}.original1"], state["ups.1.weight_v"])


def test_fine_tuning_does_not_start_from_a_discriminator_that_broke(source):
    path = source / "do_00000100"
    discriminators = torch.load(path, weights_only=True)["msd"]
    discriminators["discriminators.1.convs.0.bias"][0] = torch.inf
    torch.save({"msd": discriminators}, path)
    model = load_model(source)
    config = config_of(
        overridden(
            model.tree, [f"model.discriminator.{name}={list(n)}" for name, n in SMALL.items()]
        )
    )
    task = find("vocoder", "hifigan").build_task(config, model.assets)

    with pytest.raises(InputError, match=r"infinity or NaN in msd\.discriminators\.1\.convs\.0\.b"):
        initialise(task, model.assets, source)


def test_a_folded_export_can_be_trained_on(tmp_path):
    exported = folded(random_generator(SIZES))
    model = load_model(write_authors(tmp_path, exported))
    task = find("vocoder", "hifigan").build_task(model.config, model.assets)
    transfer = initialise(task, model.assets, tmp_path)
    tensors = task.networks["generator"].state_dict()
    layer = "resblocks.2.convs1.0.parametrizations.weight"
    again = fold(tensors[f"{layer}.original0"], tensors[f"{layer}.original1"])

    assert torch.allclose(again, exported["resblocks.2.convs1.0.weight"], atol=1e-6)
    assert transfer.new == ["network discriminator"]


def test_found_used_and_unused_parts_are_logged(tmp_path, source, caplog):
    with caplog.at_level(logging.INFO):
        convert_to_experiment(str(source), tmp_path / "hifigan")
    n_tensors = len(random_generator(SIZES))

    assert f"found: HiFi-GAN of its authors (g_* with config.json): {source / 'g_00000100'}" in (
        caplog.text
    )
    assert f"used: {n_tensors} tensors in model.safetensors" in caplog.text
    assert "used: 80 tensors in discriminator.safetensors" in caplog.text
    assert "not used: do_00000100: optim_g" in caplog.text


def test_a_folder_that_holds_something_is_left_alone(tmp_path, source):
    target = tmp_path / "hifigan"
    target.mkdir()
    (target / "note").write_text("mine")

    with pytest.raises(InputError, match=r"hifigan exists and is not empty: choose another name"):
        convert_to_experiment(str(source), target)
    assert [path.name for path in target.iterdir()] == ["note"]
    (target / "note").unlink()
    convert_to_experiment(str(source), target)
    assert load_model(target).mel.n_mels == 8


def test_a_broken_checkpoint_leaves_nothing(tmp_path, source):
    state = random_generator(SIZES)
    del state["conv_post.bias"]
    write_authors(source, state)

    with pytest.raises(InputError, match=r"conv_post\.bias"):
        convert_to_experiment(str(source), tmp_path / "hifigan")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["source"]


def test_only_checkpoints_of_others_are_imported(tmp_path, source):
    convert_to_experiment(str(source), tmp_path / "hifigan")

    (tmp_path / "empty").mkdir()
    for reference in (tmp_path / "hifigan", tmp_path / "empty"):
        with pytest.raises(InputError, match="no checkpoint of another project that can be read"):
            convert_to_experiment(str(reference), tmp_path / "again")
    with pytest.raises(InputError, match="no such file or folder"):
        convert_to_experiment(str(tmp_path / "missing"), tmp_path / "again")
