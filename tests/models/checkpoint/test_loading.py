import json
import logging
import pickle
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from models.checkpoint.folders import step_folder
from models.checkpoint.loading import RAW_WEIGHTS, load_model
from tests.models.checkpoint.importers.reading import Command
from tests.models.training.small_tasks import PREPROCESS
from tests.worlds.experiments import average_weights, edit_config, mel_of, trained_voice
from utils.errors import InputError


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    return trained_voice(tmp_path_factory.mktemp("trained"))


@pytest.fixture
def experiment(trained, tmp_path):
    """A copy of the experiment in another place; the processed data is not there."""
    return Path(shutil.copytree(trained, tmp_path / "moved"))


def test_a_moved_experiment_loads_without_its_training_data(trained, experiment):
    before = mel_of(load_model(trained))
    hidden = trained.parents[1] / "data"
    hidden.rename(hidden.with_name("gone"))
    try:
        model = load_model(experiment)
    finally:
        hidden.with_name("gone").rename(hidden)
    assert torch.equal(mel_of(model), before)
    assert model.step == 4
    assert model.mel == PREPROCESS.mel
    assert [speaker.name for speaker in model.speakers] == ["anna"]
    assert model.assets.stats.speakers.keys() == {"anna"}
    assert not model.network.training


def test_a_checkpoint_and_a_published_folder_load_as_well(experiment, tmp_path):
    checkpoint = step_folder(experiment / "checkpoints", 2)
    published = tmp_path / "published"
    published.mkdir()
    shutil.copy(checkpoint / "model.safetensors", published)
    for path in experiment.glob("*.json"):
        shutil.copy(path, published)
    assert load_model(checkpoint).step == 2
    assert load_model(published).step is None
    assert load_model(published / "model.safetensors").folder == published
    assert torch.equal(mel_of(load_model(published)), mel_of(load_model(str(checkpoint))))


@pytest.mark.parametrize("name", ["audio.json", "vocabulary.json", "speakers.json", "stats.json"])
def test_an_asset_that_has_changed_or_is_missing_is_refused(experiment, name):
    path = experiment / name
    content = path.read_bytes()
    path.write_bytes(content.replace(b"0", b"1", 1) if b"0" in content else content + b" ")
    with pytest.raises(InputError, match=rf"moved: {name} has changed since it was written; copy"):
        load_model(experiment)
    path.unlink()
    with pytest.raises(InputError, match=rf"moved: incomplete .*{name}"):
        load_model(experiment)


def test_a_mel_that_the_config_does_not_have_is_refused_also_without_a_manifest(experiment):
    (experiment / "manifest.json").unlink()
    path = experiment / "audio.json"
    plain = json.loads(path.read_text())
    path.write_text(json.dumps(plain | {"hop_length": 26}))
    hop = plain["hop_length"]
    message = rf"moved: audio\.json and config\.json differ: hop_length 26 and {hop}; copy both"
    with pytest.raises(InputError, match=message):
        load_model(experiment)


def test_an_edited_config_is_used_with_a_notice(experiment, caplog):
    edit_config(experiment, inference={"sentence_pause_s": 0.5})
    with caplog.at_level(logging.INFO):
        assert load_model(experiment).config.inference.sentence_pause_s == 0.5
    assert "config.json has changed since it was written" in " ".join(caplog.text.split())


def test_an_experiment_without_a_manifest_loads_but_one_without_any_checksum_is_refused(experiment):
    before = mel_of(load_model(experiment))
    (experiment / "manifest.json").unlink()  # of an older version
    assert torch.equal(mel_of(load_model(experiment)), before)
    (experiment / "manifest.json").write_text("{}")
    with pytest.raises(InputError, match=r"manifest\.json lists no file; copy it again, or delete"):
        load_model(experiment)


def test_a_checkpoint_is_found_from_inside_and_through_a_link(experiment, tmp_path, monkeypatch):
    folder = experiment / "checkpoints"
    best = tmp_path / "best"
    best.symlink_to(step_folder(folder, 2))
    assert (load_model(best).step, load_model(best).home) == (2, experiment)
    assert (load_model(folder).step, load_model(folder).home) == (4, experiment)
    for inside in (folder, step_folder(folder, 4)):
        monkeypatch.chdir(inside)
        assert load_model(".").step == 4
        assert load_model(".").origin == "moved, 4 updates"
    assert load_model("../step-00000002/model.safetensors").step == 2


def test_settings_of_another_project_in_our_experiment_are_ignored(experiment, monkeypatch):
    (experiment / "args.json").write_text('{"model_type": "FastSpeech2"}')
    folder = experiment / "checkpoints"
    monkeypatch.chdir(step_folder(folder, 4))
    for path in (experiment, folder, step_folder(folder, 4), Path()):
        assert load_model(path).assets.stats.speakers.keys() == {"anna"}


def test_the_newest_whole_checkpoint_is_loaded(experiment):
    newest = step_folder(experiment / "checkpoints", 4) / "model.safetensors"
    newest.write_bytes(newest.read_bytes()[:-1])
    assert load_model(experiment).step == 2
    with pytest.raises(InputError, match=r"model\.safetensors has changed since it was written"):
        load_model(newest.parent)


@pytest.fixture
def averaged(experiment):
    return average_weights(experiment)


def weight_of(model):
    return model.network.state_dict()["phone_embedding.weight"]


def test_the_average_is_loaded_unless_a_key_asks_for_the_raw_weights(averaged, caplog):
    usual = load_model(averaged)
    with caplog.at_level(logging.INFO):
        raw = load_model(averaged, overrides=["inference.ema=false"])
    assert torch.equal(weight_of(raw), 2 * weight_of(usual))
    assert torch.equal(raw.stored("model")["phone_embedding.weight"], weight_of(raw))
    assert (usual.weights.name, raw.weights.name) == ("model.safetensors", RAW_WEIGHTS)
    assert f"inference.ema is false: {raw.weights}" in caplog.messages
    edit_config(averaged, inference={"ema": False})
    assert torch.equal(weight_of(load_model(averaged)), weight_of(raw))
    again = load_model(averaged, overrides=["inference.ema=true"])
    assert torch.equal(weight_of(again), weight_of(usual))


def test_raw_weights_that_are_missing_or_damaged_are_an_error(averaged):
    raw = step_folder(averaged / "checkpoints", 4) / RAW_WEIGHTS
    content = raw.read_bytes()
    raw.write_bytes(content[:-1])
    with pytest.raises(InputError, match=r"raw_model\.safetensors has changed since it was writt"):
        load_model(averaged, overrides=["inference.ema=false"])
    raw.unlink()
    with pytest.raises(InputError, match=r"inference\.ema is false, but raw_model\.safetensors, "):
        load_model(averaged, overrides=["inference.ema=false"])
    assert load_model(averaged).step == 4


def test_without_averaging_there_is_no_choice_of_weights(experiment):
    with pytest.raises(InputError, match=r"inference\.ema is false, but train.ema_decay is 0"):
        load_model(experiment, overrides=["inference.ema=false"])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("model.pt", "not a file of tensors that torch can read"),
        ("model.safetensors", "not a whole safetensors file"),
        ("model", "neither an experiment nor"),
    ],
)
def test_a_pickle_is_refused_and_not_run(experiment, tmp_path, name, message):
    marker = tmp_path / "marker"
    folder = step_folder(experiment / "checkpoints", 4)
    (folder / "manifest.json").unlink()
    (folder / name).write_bytes(pickle.dumps(Command(marker)))
    with pytest.raises(InputError, match=message):
        load_model(folder / name)
    assert not marker.exists()


def test_a_huge_header_is_refused(experiment):
    path = step_folder(experiment / "checkpoints", 4) / "model.safetensors"
    path.write_bytes((2**60).to_bytes(8, "little") + b"{}")
    (path.parent / "manifest.json").unlink()
    with pytest.raises(InputError, match="not a whole safetensors file"):
        load_model(path.parent)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mel_linear.bias": None}, r"missing: mel_linear\.bias$"),
        ({"surprise": torch.ones(1)}, r"left over: surprise$"),
        ({"mel_linear.bias": torch.ones(3)}, r"another shape: mel_linear\.bias \(3,\) instead of"),
        (
            {"surprise": torch.ones(8), "mel_linear.bias": None},
            r"config\.json: missing: mel_linear\.bias; left over: surprise$",
        ),
    ],
)
def test_every_tensor_is_used_and_none_is_missing(experiment, change, message):
    path = step_folder(experiment / "checkpoints", 4) / "model.safetensors"
    tensors = load_file(path) | change
    save_file({name: tensor for name, tensor in tensors.items() if tensor is not None}, path)
    (path.parent / "manifest.json").unlink()
    with pytest.raises(InputError, match=message):
        load_model(path.parent)


def test_a_folder_that_is_no_model_or_has_no_whole_config_is_refused(tmp_path, experiment):
    with pytest.raises(InputError, match="neither an experiment nor a folder with"):
        load_model(tmp_path)
    with pytest.raises(InputError, match="no such file or folder"):
        load_model(tmp_path / "missing")
    (experiment / "config.json").write_text('{"task": "tts"')
    with pytest.raises(InputError, match=r"config\.json: line 1 .*; correct the file$"):
        load_model(experiment)
    (experiment / "config.json").unlink()
    with pytest.raises(InputError, match=r"no config\.json"):
        load_model(experiment)


@pytest.mark.parametrize("name", ["voice.pt", "voice.pth", "voice.tar"])
@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 cut", b"\x80\x02}q\x00(X"])
def test_a_damaged_file_of_torch_is_named_as_such(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    message = rf"{name}: not a file of tensors .*; ask its author for a whole file"
    with pytest.raises(InputError, match=message):
        load_model(tmp_path / name)


def test_the_config_comes_back_also_without_the_training_state(experiment):
    (step_folder(experiment / "checkpoints", 4) / "training_state.pt").unlink()
    plain = json.loads((experiment / "config.json").read_text())
    model = load_model(experiment)
    assert (model.step, model.config.train.max_steps) == (4, plain["train"]["max_steps"]) == (4, 4)


def test_half_precision_is_loaded_as_float32(experiment):
    path = step_folder(experiment / "checkpoints", 4) / "model.safetensors"
    halves = {n: t.half() if t.is_floating_point() else t for n, t in load_file(path).items()}
    save_file(halves, path)
    (path.parent / "manifest.json").unlink()
    state = load_model(path).network.state_dict()
    assert {t.dtype for t in state.values() if t.is_floating_point()} == {torch.float32}
    assert all(torch.equal(state[name], tensor.to(state[name])) for name, tensor in halves.items())


def test_a_speaker_that_the_model_does_not_have_is_refused(experiment):
    assert load_model(experiment).default_speaker() == "anna"
    edit_config(experiment, inference={"speaker": "bob"})
    message = r"config\.json: the model has no speaker 'bob'.*; correct or remove its inference\.sp"
    with pytest.raises(InputError, match=message):
        load_model(experiment).default_speaker()


def test_a_network_that_fits_no_memory_is_refused(experiment):
    edit_config(experiment, model={"transformer": {"conv_filter_size": 10**15}})
    with pytest.raises(InputError, match=r"config\.json: its network cannot be built: "):
        load_model(experiment)
