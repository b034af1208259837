import json
import logging
import shutil

import pytest
import torch
from huggingface_hub import ModelCard, constants
from safetensors.torch import load_file, save_file

from config.schema import InferenceConfig
from models.base.registry import config_of, find_model, load_config
from models.checkpoint.folders import fault_of
from models.checkpoint.history import History
from models.checkpoint.loading import load_model
from models.checkpoint.publish import (
    convert_to_experiment,
    export_experiment,
    publish,
    without_local_paths,
)
from models.synthesizer.vocoders import open_vocoder
from models.training.initialisation import initialise
from modules.layers.normalisation import fold
from tests.models.checkpoint.importers import hifigan_originals as theirs
from tests.models.vocoder.small_hifigan import MEL, make_gan
from tests.utils.hub_server import OWNER, READER
from tests.worlds.experiments import (
    average_weights,
    edit_config,
    mel_of,
    trained_vocoder,
    trained_voice,
)
from utils.config_tree import overridden
from utils.errors import InputError
from utils.files import write_json
from utils.hub import Repository

TARGET = Repository("org/voice")
SCORES = {  # as stage 4 writes it
    **{"confidence": 0.95, "utterances": 9, "seconds": 40.5, "vocoder": "/models/v2"},
    "scores": {
        "mel_l1": {"unit": "nat", "better": "lower", "mean": 0.25, "low": 0.2, "high": 0.3, "n": 9},
        "pesq": {"unit": "", "better": "higher", "mean": 3.5, "low": None, "high": None, "n": 1},
    },
    "skipped": {},
}

OVERRIDES = [f"model.discriminator.{name}={list(n)}" for name, n in theirs.DISCRIMINATOR.items()]


@pytest.fixture
def voice(tmp_path):
    return trained_voice(tmp_path)


@pytest.fixture
def vocoder(tmp_path):
    return trained_vocoder(tmp_path)


@pytest.fixture
def owner(monkeypatch, hub):
    monkeypatch.setenv("HF_TOKEN", OWNER)
    return hub


def send(experiment, target=TARGET, *, licence="mit", **flags):
    publish(experiment, target, licence=licence, **flags)


def card_of(hub, repository="org/voice"):
    return hub.files(repository)["README.md"].decode()


def test_a_published_model_gives_the_same_samples_by_its_name(owner, voice):
    send(voice)
    assert set(owner.files("org/voice")) == {
        *("model.safetensors", "config.json", "audio.json", "vocabulary.json", "stats.json"),
        *("speakers.json", "trained_phones.json", "manifest.json"),
        *("README.md", "history.json", ".gitattributes"),
    }
    model = load_model("org/voice")
    assert torch.equal(mel_of(model), mel_of(load_model(voice)))
    assert model.speakers == load_model(voice).speakers
    assert model.origin == f"org/voice@{owner.repos['org/voice'].refs['main']}"


def test_discriminators_go_up_when_asked_and_come_down_for_training_alone(owner, vocoder):
    send(vocoder, Repository("org/vocoder"), with_discriminators=True)
    assert "discriminator.safetensors" in owner.files("org/vocoder")
    folder = load_model("org/vocoder").folder
    assert not (folder / "discriminator.safetensors").exists()
    transfer = initialise(make_gan(), load_model(vocoder).assets, "org/vocoder")
    assert transfer.new == []
    assert transfer.source.startswith("org/vocoder@")
    assert (folder / "discriminator.safetensors").exists()
    # without them, those of other weights would stay behind
    send(vocoder, Repository("org/vocoder"))
    assert "discriminator.safetensors" not in owner.files("org/vocoder")
    mel = torch.randn(1, MEL.n_mels, 12)
    wavs = (load_model(name).network.infer(mel) for name in (vocoder, "org/vocoder"))
    assert torch.equal(*wavs)


@pytest.mark.parametrize("is_damaged", [False, True])
def test_the_checkpoint_that_was_given_or_the_newest_whole_one_goes_up(owner, voice, is_damaged):
    given = older = voice / "checkpoints" / "step-00000002"
    if is_damaged:
        given, newest = voice, voice / "checkpoints" / "step-00000004" / "model.safetensors"
        newest.write_bytes(newest.read_bytes()[:-1])
    send(given)
    assert torch.equal(mel_of(load_model("org/voice")), mel_of(load_model(older)))
    card = card_of(owner)
    assert "for 2 updates." in card
    assert "| validation |" not in card, "that was measured on the newest weights"


@pytest.mark.parametrize("ema", [True, False])
def test_of_averaged_weights_those_used_for_synthesis_go_up(owner, voice, ema):
    edit_config(average_weights(voice), inference={"ema": ema})
    send(voice)
    assert "raw_model.safetensors" not in owner.files("org/voice")
    published, local = load_model("org/voice"), load_model(voice)
    assert torch.equal(mel_of(published), mel_of(local))
    assert local.weights.name == ("model.safetensors" if ema else "raw_model.safetensors")
    assert ("moving average" in card_of(owner)) == ema
    with pytest.raises(InputError, match="published models do not have it"):
        load_model("org/voice", overrides=["inference.ema=false"])
    # raw weights are no network for training
    with pytest.raises(InputError, match="no networks for --with_discriminators"):
        send(voice, with_discriminators=True)


def test_the_same_again_makes_no_commit_and_a_change_makes_one(owner, voice, caplog):
    send(voice)
    commits = len(owner.repos["org/voice"].messages)
    with caplog.at_level(logging.INFO):
        send(voice)
    assert "org/voice: nothing has changed, commit" in caplog.text
    assert len(owner.repos["org/voice"].messages) == commits
    owner.asked.clear()
    send(voice, TARGET._replace(message="Another licence"), licence="cc0-1.0")
    assert owner.repos["org/voice"].messages[commits:] == ["Another licence"]
    assert not any(asked.startswith("PUT") for asked in owner.asked), "the weights are there"


def test_what_an_earlier_push_left_is_removed_and_other_files_stay(owner, voice):
    (voice / "lexicon.txt").write_text("arion  AA1 R\n")
    write_json(voice / "scores.json", SCORES)
    send(voice)
    assert load_model("org/voice").assets.lexicon == "arion  AA1 R\n"
    owner.publish("org/voice", {"sample.wav": b"RIFF"})
    (voice / "lexicon.txt").unlink()
    (voice / "scores.json").unlink()
    send(voice)
    files = set(owner.files("org/voice"))
    assert {"lexicon.txt", "scores.json"} & files == set()
    assert "sample.wav" in files
    assert load_model("org/voice").assets.lexicon is None


def test_scores_of_stage_4_are_published_with_the_weights_they_are_of(owner, voice):
    write_json(voice / "result" / "scores.json", SCORES)
    send(voice)
    listed = "| scores | mel_l1 0.25 nat (9 utterances); pesq 3.5 (1 utterances); vocoder"
    assert f"{listed} v2 |" in card_of(owner)
    assert json.loads(owner.files("org/voice")["scores.json"])["vocoder"] == "v2"
    send(voice / "checkpoints" / "step-00000002")
    assert "scores.json" not in owner.files("org/voice")
    assert "mel_l1" not in card_of(owner)


@pytest.mark.parametrize("report", [3, {}, {"scores": {"mcd": 3}}, {"scores": {}}])
def test_scores_that_stage_4_did_not_write_are_named(owner, voice, report):
    write_json(voice / "scores.json", report)
    with pytest.raises(InputError, match=r"scores.json: not as stage 4 writes it .*run stage 4"):
        send(voice)


def test_a_branch_is_made_and_main_is_left_alone(owner, voice):
    owner.publish("org/voice", {"README.md": b"---\n---\nold"})
    send(voice, TARGET._replace(revision="v2"))
    assert owner.files("org/voice") == {"README.md": b"---\n---\nold"}
    assert torch.equal(mel_of(load_model("org/voice@v2")), mel_of(load_model(voice)))
    send(voice, TARGET._replace(revision="v2"))


def test_private_means_private(owner, voice, monkeypatch):
    private = TARGET._replace(private=True)
    send(voice, private)
    assert owner.repos["org/voice"].private
    send(voice, private)
    owner.publish("org/public", {"README.md": b""})
    with pytest.raises(InputError, match=r"^org/public: exists and is public; make it private"):
        send(voice, private._replace(name="org/public"))
    assert owner.files("org/public") == {"README.md": b""}
    monkeypatch.setenv("HF_TOKEN", READER)
    with pytest.raises(InputError, match="neither a local folder nor a repository"):
        load_model("org/voice")


def test_a_dry_run_lists_the_files_without_a_request(hub, voice, caplog):
    with caplog.at_level(logging.INFO):
        send(voice, dry_run=True)
    assert hub.asked == []
    size = (voice / "checkpoints/step-00000004/model.safetensors").stat().st_size
    expected = ["model.safetensors", f"{size / 1e3:.1f}", "kB"]
    assert expected in [line.split() for line in caplog.messages]
    assert "--dry_run: nothing was sent to org/voice" in caplog.text


def test_no_file_holds_a_path_of_this_machine(owner, voice):
    edit_config(voice, preprocess={"processed_dir": str(voice.parent / "data")})
    model = json.loads((voice / "config.json").read_text())["model"]
    send(voice)
    for name, content in owner.files("org/voice").items():
        assert str(voice.parent).encode() not in content, name
    published = json.loads(owner.files("org/voice")["config.json"])
    assert published["dataset_path"] == {}
    assert published["log_dir"] == "ckpts"
    assert published["model"] == model


def test_local_paths_are_cut_to_their_last_part():
    plain = {
        "dataset_path": {"a": "relative/to/it"},
        "textgrid_dir": "/corpora/a/TextGrid",
        "many": ["~/a/b.txt", "~anna/d.txt", "../anna/e.txt", r"C:\data\c.txt", "ckpts/tts", 3],
        "shares": [r"\\server\a\f.txt", "//server/a/g.txt"],
        "delimiter": "/",
        "name": "~",
    }
    assert without_local_paths(plain) == {
        "dataset_path": {},
        "textgrid_dir": "TextGrid",
        "many": ["b.txt", "d.txt", "e.txt", "c.txt", "ckpts/tts", 3],
        "shares": ["f.txt", "g.txt"],
        "delimiter": "/",
        "name": "~",
    }


def test_the_card_names_the_repository_and_the_licence_and_keeps_the_notes(owner, voice):
    readme = voice / "README.md"
    readme.write_text(readme.read_text() + "Anna has agreed.\n")
    send(voice, licence="cc-by-4.0")
    text = card_of(owner)
    assert ModelCard(text).data.license == "cc-by-4.0"
    assert json.loads(owner.files("org/voice")["history.json"])["licence"] == "cc-by-4.0"
    assert "# voice\n" in text
    assert 'Synthesizer("org/voice")' in text
    assert text.endswith("Anna has agreed.\n")


def test_unknown_licences_are_warned_of(hub, voice, caplog):
    send(voice, licence=None, dry_run=True)
    assert "no --license: the card says that the licence of the weights is unknown" in caplog.text
    assert "unknown licence of the recordings of mini: set preprocess.corpus.mini" in caplog.text
    edit_config(voice, preprocess={"corpus": {"mini": {"licence": "public domain"}}})
    caplog.clear()
    send(voice, dry_run=True)
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


def test_an_export_of_an_export_keeps_the_licence(voice, tmp_path):
    export_experiment(voice, tmp_path / "first", "first", licence="mit")
    export_experiment(tmp_path / "first", tmp_path / "second", "second", licence=None)
    assert json.loads((tmp_path / "second" / "history.json").read_text())["licence"] == "mit"


def test_an_imported_model_keeps_its_story(owner, voice):
    shutil.move(voice / "checkpoints" / "step-00000004" / "model.safetensors", voice)
    shutil.rmtree(voice / "checkpoints")
    History(imported_from="FastSpeech 2 of somebody", step=97902).save(voice)
    send(voice)
    assert "FastSpeech 2 of somebody" in card_of(owner)
    assert "| updates | 97902 |" in card_of(owner)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"licence": "CC BY"}, r"--license 'CC BY': expected an identifier"),
        ({"target": Repository("voice")}, "voice: expected the name of a repository"),
        ({"target": Repository("a/b/c")}, "a/b/c: the request to the Hub failed"),
        ({"target": Repository("org/a--b")}, "^org/a--b: the request to the Hub failed"),
        ({"with_discriminators": True}, "no networks for --with_discriminators"),
    ],
)
def test_what_cannot_go_is_refused(owner, voice, change, message):
    with pytest.raises(InputError, match=message):
        send(voice, **change)
    assert owner.repos == {}


def test_without_a_token_that_may_write_nothing_is_sent(hub, voice, monkeypatch):
    with pytest.raises(InputError, match=r"^org/voice: .*login with a token that has write access"):
        send(voice)
    assert hub.asked == []
    monkeypatch.setenv("HF_TOKEN", READER)
    message = r"^org/voice: the request to the Hub failed: .*rights"
    with pytest.raises(InputError, match=message):
        send(voice)
    hub.publish("org/voice", {"README.md": b""})
    with pytest.raises(InputError, match=message):
        send(voice)


def test_offline_nothing_is_sent(owner, voice, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(InputError, match=r"^org/voice: .*offline mode is enabled"):
        send(voice)


def test_weights_that_the_hub_does_not_take(owner, voice, monkeypatch):
    monkeypatch.setattr("tests.utils.hub_server.sha256", lambda _: "another")
    message = r"^org/voice: the request to the Hub failed: .*than announced"
    with pytest.raises(InputError, match=message):
        send(voice)
    assert set(owner.files("org/voice")) == {".gitattributes"}


def test_an_export_in_16_bits_sounds_nearly_the_same(vocoder, tmp_path):
    target = tmp_path / "exported"
    export_experiment(vocoder, target, "exported", licence="mit", weights="fp16")
    assert {path.name for path in target.iterdir()} == {
        *("model.safetensors", "config.json", "audio.json", "speakers.json", "README.md"),
        *("manifest.json", "history.json"),
    }
    assert fault_of(target) == ""
    stored = load_file(target / "model.safetensors")
    assert {tensor.dtype for tensor in stored.values()} == {torch.float16}
    assert "conv_pre.weight" in stored  # weight normalisation is folded
    mel = torch.randn(1, MEL.n_mels, 12)
    whole, short = (load_model(folder).network for folder in (vocoder, target))
    assert {p.dtype for p in short.parameters()} == {torch.float32}
    torch.testing.assert_close(short.infer(mel), whole.infer(mel), atol=1e-3, rtol=1e-2)


def test_weights_too_large_for_16_bits_are_not_exported(vocoder, tmp_path):
    weights = next(vocoder.rglob("model.safetensors"))
    (weights.parent / "manifest.json").unlink()
    tensors = load_file(weights)
    tensors["conv_post.bias"] = torch.tensor([1e6])
    save_file(tensors, weights)
    with pytest.raises(InputError, match=r"conv_post\.bias holds numbers too large for 16 bits"):
        export_experiment(weights.parent, tmp_path / "out", "out", licence="mit", weights="fp16")


@pytest.fixture
def source(tmp_path, small_discriminator):
    """A generator of 100 steps with its scale discriminators, smaller than the published ones."""
    folder = theirs.write_authors(tmp_path / "source", theirs.random_generator())
    with pytest.warns(FutureWarning, match="weight_norm"):
        discriminators = theirs.scale_discriminators()
    torch.save({"msd": discriminators.state_dict(), "optim_g": {}}, folder / "do_00000100")
    return folder


@pytest.fixture
def target(tmp_path, source):
    """The experiment that it becomes."""
    convert_to_experiment(str(source), tmp_path / "made" / "hifigan")
    return tmp_path / "made" / "hifigan"


def test_the_experiment_gives_the_samples_of_the_checkpoint(source, target):
    before, after = load_model(source), load_model(target)
    torch.manual_seed(1)
    mel = torch.randn(1, 8, 9) - 4
    expected = theirs.synthesise(theirs.random_generator(), theirs.SIZES, mel)
    assert torch.allclose(before.network.infer(mel), expected, atol=1e-5)
    assert torch.equal(after.network.infer(mel), before.network.infer(mel))
    assert (after.config, after.assets) == (before.config, before.assets)
    for reference in (source, target):
        precision = InferenceConfig(vocoder_precision="fp32")
        vocoder = open_vocoder(reference, before.mel).load(precision, "cpu")
        assert torch.equal(vocoder.infer(mel), before.network.infer(mel))


def test_the_experiment_is_an_ordinary_one_and_its_parts_are_logged(tmp_path, source, caplog):
    folder = tmp_path / "hifigan"
    with caplog.at_level(logging.INFO):
        convert_to_experiment(str(source), folder)

    assert {path.name for path in folder.iterdir()} == {
        *("README.md", "audio.json", "manifest.json", "config.json", "history.json"),
        *("discriminator.safetensors", "model.safetensors"),
    }
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
    assert load_config(folder / "config.json").model_type == "HiFiGAN"
    json.loads((folder / "config.json").read_text())
    assert len({path.stat().st_mode for path in folder.iterdir()}) == 1
    kind = "HiFi-GAN of its authors (g_* with config.json)"
    assert f"found: {kind}: {source / 'g_00000100'}" in caplog.text
    assert f"used: {len(theirs.random_generator())} tensors in model.safetensors" in caplog.text
    assert "used: 80 tensors in discriminator.safetensors" in caplog.text
    assert "not used: do_00000100: optim_g" in caplog.text
    card = (folder / "README.md").read_text()
    assert "HiFi-GAN trained by its authors' implementation (jik876/hifi-gan), g_00000100" in card
    assert "| updates | 100 |" in card
    assert "| not imported | do_00000100: optim_g |" in card
    assert 'vocoder="hifigan"' in card


def test_tensors_that_share_memory_or_lie_turned_in_it_are_written(tmp_path):
    state = theirs.random_generator()
    state["ups.1.bias"] = state["ups.0.bias"][:8]
    state["conv_post.weight_v"] = state["conv_post.weight_v"].mT.contiguous().mT
    source = theirs.write_authors(tmp_path / "source", state)
    convert_to_experiment(str(source), tmp_path / "hifigan")
    found = load_file(tmp_path / "hifigan" / "model.safetensors")
    assert torch.equal(found["ups.1.bias"], state["ups.0.bias"][:8])
    turned = found["conv_post.parametrizations.weight.original1"]
    assert torch.equal(turned, state["conv_post.weight_v"])


def test_fine_tuning_starts_the_same_from_both(source, target):
    config = load_config(target / "config.json", OVERRIDES)
    states = []
    for reference in (source, target):
        torch.manual_seed(5)
        assets = load_model(reference).assets
        task = find_model("vocoder", "hifigan").task.build(config, assets)
        fresh = {n: t.clone() for n, t in task.networks["discriminator"].state_dict().items()}
        transfer = initialise(task, assets, reference)
        discriminators = task.networks["discriminator"].state_dict()
        assert {name.split(".")[0] for name in transfer.new} == {"mpd"}
        assert transfer.dropped == []
        changed = [n for n, tensor in discriminators.items() if not torch.equal(tensor, fresh[n])]
        assert {name.split(".")[0] for name in changed} == {"msd"}
        states.append(discriminators | task.networks["generator"].state_dict())
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    state = theirs.random_generator()
    layer = "ups.1.parametrizations.weight"
    assert torch.equal(states[0][f"{layer}.original0"], state["ups.1.weight_g"])
    assert torch.equal(states[0][f"{layer}.original1"], state["ups.1.weight_v"])


def test_fine_tuning_does_not_start_from_a_discriminator_that_broke(source):
    path = source / "do_00000100"
    discriminators = torch.load(path, weights_only=True)["msd"]
    discriminators["discriminators.1.convs.0.bias"][0] = torch.inf
    torch.save({"msd": discriminators}, path)
    model = load_model(source)
    config = config_of(overridden(model.tree, OVERRIDES))
    task = find_model("vocoder", "hifigan").task.build(config, model.assets)
    with pytest.raises(InputError, match=r"infinity or NaN in msd\.discriminators\.1\.convs\.0\.b"):
        initialise(task, model.assets, source)


def test_a_folded_export_can_be_trained_on(tmp_path):
    exported = theirs.folded(theirs.random_generator())
    model = load_model(theirs.write_authors(tmp_path, exported))
    config = config_of(overridden(model.tree, OVERRIDES))
    task = find_model("vocoder", "hifigan").task.build(config, model.assets)
    transfer = initialise(task, model.assets, tmp_path)
    tensors = task.networks["generator"].state_dict()
    layer = "resblocks.2.convs1.0.parametrizations.weight"
    again = fold(tensors[f"{layer}.original0"], tensors[f"{layer}.original1"])
    assert torch.allclose(again, exported["resblocks.2.convs1.0.weight"], atol=1e-6)
    assert transfer.new == ["network discriminator"]


def test_a_folder_that_holds_something_is_left_alone(tmp_path, source, vocoder):
    target = tmp_path / "hifigan"
    target.mkdir()
    (target / "note").write_text("mine")
    message = r"hifigan exists and is not empty: choose another name"
    with pytest.raises(InputError, match=message):
        convert_to_experiment(str(source), target)
    with pytest.raises(InputError, match=message):
        export_experiment(vocoder, target, "exported", licence="mit")
    assert [path.name for path in target.iterdir()] == ["note"]
    (target / "note").unlink()
    convert_to_experiment(str(source), target)
    assert load_model(target).mel.n_mels == 8


def test_a_broken_checkpoint_leaves_nothing(tmp_path, source):
    state = theirs.random_generator()
    del state["conv_post.bias"]
    theirs.write_authors(source, state)
    with pytest.raises(InputError, match=r"conv_post\.bias"):
        convert_to_experiment(str(source), tmp_path / "hifigan")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["source"]


def test_only_checkpoints_of_others_are_imported(tmp_path, target):
    (tmp_path / "empty").mkdir()
    for reference in (target, tmp_path / "empty"):
        with pytest.raises(InputError, match="no checkpoint of another project that can be read"):
            convert_to_experiment(str(reference), tmp_path / "again")
    with pytest.raises(InputError, match="no such file or folder"):
        convert_to_experiment(str(tmp_path / "missing"), tmp_path / "again")
    with pytest.raises(InputError, match="source: not an experiment; first import a checkpoint of"):
        export_experiment(tmp_path / "source", tmp_path / "again", "again", licence="mit")
