import json
import logging
import shutil

import pytest
import torch
from huggingface_hub import ModelCard, constants
from safetensors.torch import load_file, save, save_file

from config.schema import InferenceConfig
from models.base.registry import config_of, find_model, load_config
from models.checkpoint.folders import fault_of, write_checkpoint
from models.checkpoint.history import History
from models.checkpoint.importers import hifigan_authors
from models.checkpoint.loading import load_model
from models.checkpoint.publish import (
    convert_to_experiment,
    export_experiment,
    publish,
    without_local_paths,
)
from models.synthesizer.vocoders import open_vocoder
from models.training.initialisation import initialise
from models.vocoder.hifigan.config import DiscriminatorConfig
from modules.layers.normalisation import fold
from tests.models.checkpoint.importers.hifigan_originals import (
    SIZES,
    folded,
    random_generator,
    scale_discriminators,
    write_authors,
)
from tests.models.checkpoint.importers.hifigan_originals import synthesise as synthesise_mel
from tests.models.vocoder.small_hifigan import MEL, make_gan
from tests.utils.hub_server import OWNER, READER
from tests.worlds.experiments import trained_vocoder, trained_voice
from utils.config_tree import overridden
from utils.errors import InputError
from utils.files import write_json
from utils.hub import Repository

TARGET = Repository("org/voice")
SCORES = {  # as stage 4 writes it
    "confidence": 0.95,
    "utterances": 9,
    "seconds": 40.5,
    "vocoder": "/models/v2",
    "scores": {
        "mel_l1": {"unit": "nat", "better": "lower", "mean": 0.25, "low": 0.2, "high": 0.3, "n": 9},
        "pesq": {"unit": "", "better": "higher", "mean": 3.5, "low": None, "high": None, "n": 1},
    },
    "skipped": {},
}

SCALE_CHANNELS = (4, 16, 16, 32, 16, 16, 16)
SMALL = {"period_channels": (2, 4, 4, 6, 6), "scale_channels": SCALE_CHANNELS}


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


def send(experiment, target=TARGET, *, dry_run=False, licence="mit", with_discriminators=False):
    publish(
        experiment,
        target,
        licence=licence,
        with_discriminators=with_discriminators,
        dry_run=dry_run,
    )


def synthesise(model):
    phones = torch.tensor([model.vocabulary.ids(["<sil>", "AA1", "S", "<.>"])])
    durations = torch.tensor([[2, 3, 1, 2]])
    return model.network.infer(phones, torch.tensor([4]), durations=durations).mel


def test_a_published_model_gives_the_same_samples_by_its_name(owner, voice):
    send(voice)
    assert set(owner.files("org/voice")) == {
        *("model.safetensors", "config.json", "audio.json", "vocabulary.json", "stats.json"),
        *("speakers.json", "trained_phones.json", "manifest.json"),
        *("README.md", "history.json", ".gitattributes"),
    }
    model = load_model("org/voice")
    assert torch.equal(synthesise(model), synthesise(load_model(voice)))
    assert model.speakers == load_model(voice).speakers
    assert model.origin == f"org/voice@{owner.repos['org/voice'].refs['main']}"


def test_a_vocoder_sounds_the_same_by_its_name(owner, vocoder):
    send(vocoder, Repository("org/vocoder"))
    mel = torch.randn(1, MEL.n_mels, 12)
    before = load_model(vocoder).network.infer(mel)
    assert torch.equal(load_model("org/vocoder").network.infer(mel), before)
    assert "discriminator.safetensors" not in owner.files("org/vocoder")


def test_discriminators_go_up_when_asked_and_come_down_for_training_alone(owner, vocoder):
    send(vocoder, Repository("org/vocoder"), with_discriminators=True)
    assert "discriminator.safetensors" in owner.files("org/vocoder")
    folder = load_model("org/vocoder").folder
    assert not (folder / "discriminator.safetensors").exists()
    task = make_gan()
    transfer = initialise(task, load_model(vocoder).assets, "org/vocoder")
    assert transfer.new == []
    assert transfer.source.startswith("org/vocoder@")
    assert (folder / "discriminator.safetensors").exists()
    # without them, those of other weights would stay behind
    send(vocoder, Repository("org/vocoder"))
    assert "discriminator.safetensors" not in owner.files("org/vocoder")


def test_the_checkpoint_that_was_given_goes_up(owner, voice):
    older = voice / "checkpoints" / "step-00000002"
    send(older)
    assert torch.equal(synthesise(load_model("org/voice")), synthesise(load_model(older)))
    card = owner.files("org/voice")["README.md"].decode()
    assert "for 2 updates." in card
    assert "| validation |" not in card, "that was measured on the newest weights"


@pytest.fixture
def averaged(voice):
    """A checkpoint whose raw weights are three times their average."""
    checkpoint = voice / "checkpoints" / "step-00000004"
    weights = load_file(checkpoint / "model.safetensors")
    raw = save({name: 3 * tensor for name, tensor in weights.items()})
    files = {p.name: p.read_bytes() for p in checkpoint.iterdir() if p.name != "manifest.json"}
    write_checkpoint(checkpoint.parent, 4, files | {"raw_model.safetensors": raw})
    write_config(voice, "train", ema_decay=0.9)
    return voice


def write_config(voice, section, **changes):
    plain = json.loads((voice / "config.json").read_text())
    plain[section] |= changes
    write_json(voice / "config.json", plain)


@pytest.mark.parametrize("ema", [True, False])
def test_of_averaged_weights_those_used_for_synthesis_go_up(owner, averaged, ema):
    write_config(averaged, "inference", ema=ema)
    send(averaged)
    assert "raw_model.safetensors" not in owner.files("org/voice")
    published, local = load_model("org/voice"), load_model(averaged)
    assert torch.equal(synthesise(published), synthesise(local))
    assert local.weights.name == ("model.safetensors" if ema else "raw_model.safetensors")
    assert ("moving average" in owner.files("org/voice")["README.md"].decode()) == ema
    with pytest.raises(InputError, match="published models do not have it"):
        load_model("org/voice", overrides=["inference.ema=false"])


def test_raw_weights_are_no_network_for_training(averaged):
    with pytest.raises(InputError, match="no networks for --with_discriminators"):
        send(averaged, with_discriminators=True)


def test_a_checkpoint_that_is_not_whole_does_not_go_up(owner, voice):
    newest = voice / "checkpoints" / "step-00000004" / "model.safetensors"
    newest.write_bytes(newest.read_bytes()[:-1])
    send(voice)
    assert "for 2 updates" in owner.files("org/voice")["README.md"].decode()


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
    assert f"{listed} v2 |" in owner.files("org/voice")["README.md"].decode()
    assert json.loads(owner.files("org/voice")["scores.json"])["vocoder"] == "v2"
    send(voice / "checkpoints" / "step-00000002")
    assert "scores.json" not in owner.files("org/voice")
    assert "mel_l1" not in owner.files("org/voice")["README.md"].decode()


@pytest.mark.parametrize("report", [3, {}, {"scores": {"mcd": 3}}, {"scores": {}}])
def test_scores_that_stage_4_did_not_write_are_named(owner, voice, report):
    write_json(voice / "scores.json", report)
    with pytest.raises(InputError, match=r"scores.json: not as stage 4 writes it .*run stage 4"):
        send(voice)


def test_a_branch_is_made_and_main_is_left_alone(owner, voice):
    owner.publish("org/voice", {"README.md": b"---\n---\nold"})
    send(voice, TARGET._replace(branch="v2"))
    assert owner.files("org/voice") == {"README.md": b"---\n---\nold"}
    assert torch.equal(synthesise(load_model("org/voice@v2")), synthesise(load_model(voice)))
    send(voice, TARGET._replace(branch="v2"))


def test_private_means_private(owner, voice, monkeypatch):
    send(voice, TARGET._replace(private=True))
    assert owner.repos["org/voice"].private
    send(voice, TARGET._replace(private=True))
    monkeypatch.setenv("HF_TOKEN", READER)
    with pytest.raises(InputError, match="neither a local folder nor a repository"):
        load_model("org/voice")


def test_nothing_goes_into_a_public_repository_that_should_be_private(owner, voice):
    owner.publish("org/voice", {"README.md": b""})
    with pytest.raises(InputError, match=r"^org/voice: exists and is public; make it private"):
        send(voice, TARGET._replace(private=True))
    assert owner.files("org/voice") == {"README.md": b""}


def test_a_dry_run_lists_the_files_without_a_request(hub, voice, caplog):
    with caplog.at_level(logging.INFO):
        send(voice, dry_run=True)
    assert hub.asked == []
    size = (voice / "checkpoints/step-00000004/model.safetensors").stat().st_size
    assert any(
        line.split() == ["model.safetensors", f"{size / 1e3:.1f}", "kB"] for line in caplog.messages
    )
    assert "--dry_run: nothing was sent to org/voice" in caplog.text


def test_no_file_holds_a_path_of_this_machine(owner, voice):
    write_config(voice, "preprocess", processed_dir=str(voice.parent / "data"))
    config = json.loads((voice / "config.json").read_text())
    send(voice)
    for name, content in owner.files("org/voice").items():
        assert str(voice.parent).encode() not in content, name
    published = json.loads(owner.files("org/voice")["config.json"])
    assert published["dataset_path"] == {}
    assert published["log_dir"] == "ckpts"
    assert published["model"] == config["model"]


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
    text = owner.files("org/voice")["README.md"].decode()
    assert ModelCard(text).data.license == "cc-by-4.0"
    assert json.loads(owner.files("org/voice")["history.json"])["licence"] == "cc-by-4.0"
    assert "# voice\n" in text
    assert 'Synthesizer("org/voice")' in text
    assert text.endswith("Anna has agreed.\n")


def test_unknown_licences_are_warned_of(hub, voice, caplog):
    send(voice, licence=None, dry_run=True)
    assert "no --license: the card says that the licence of the weights is unknown" in caplog.text
    assert "unknown licence of the recordings of mini: set preprocess.corpus.mini" in caplog.text
    config = json.loads((voice / "config.json").read_text())
    config["preprocess"]["corpus"] = {"mini": {"licence": "public domain"}}
    (voice / "config.json").write_text(json.dumps(config))
    caplog.clear()
    send(voice, dry_run=True)
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


def test_an_export_of_an_export_keeps_the_licence(voice, tmp_path):
    export_experiment(voice, tmp_path / "first", "first", licence="mit")
    export_experiment(tmp_path / "first", tmp_path / "second", "second", licence=None)
    assert json.loads((tmp_path / "second" / "history.json").read_text())["licence"] == "mit"


def test_an_imported_model_keeps_its_story(owner, voice):
    checkpoint = voice / "checkpoints" / "step-00000004" / "model.safetensors"
    shutil.move(checkpoint, voice)
    shutil.rmtree(voice / "checkpoints")
    History(imported_from="FastSpeech 2 of somebody", step=97902).save(voice)
    send(voice)
    card = owner.files("org/voice")["README.md"].decode()
    assert "FastSpeech 2 of somebody" in card
    assert "| updates | 97902 |" in card


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


def test_without_a_token_nothing_is_sent(hub, voice):
    with pytest.raises(InputError, match=r"^org/voice: .*login with a token that has write access"):
        send(voice)
    assert hub.asked == []


def test_a_token_that_may_not_write(hub, voice, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", READER)
    with pytest.raises(InputError, match=r"^org/voice: the request to the Hub failed: .*rights"):
        send(voice)
    hub.publish("org/voice", {"README.md": b""})
    with pytest.raises(InputError, match=r"^org/voice: the request to the Hub failed: .*rights"):
        send(voice)


def test_offline_nothing_is_sent(owner, voice, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(InputError, match=r"^org/voice: .*offline mode is enabled"):
        send(voice)


def test_weights_that_the_hub_does_not_take(owner, voice, monkeypatch):
    monkeypatch.setattr("tests.utils.hub_server.sha256", lambda _: "another")
    with pytest.raises(
        InputError, match=r"^org/voice: the request to the Hub failed: .*than announced"
    ):
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
        export_experiment(
            weights.parent, tmp_path / "out", "exported", licence="mit", weights="fp16"
        )


def test_an_export_leaves_a_folder_with_content_alone(voice, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="mine exists and is not empty"):
        export_experiment(voice, tmp_path / "mine", "exported", licence="mit")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["notes.txt"]


@pytest.fixture
def source(tmp_path, monkeypatch):
    """A generator of 100 steps with its scale discriminators, smaller than the published ones."""
    sizes = DiscriminatorConfig(**SMALL)
    monkeypatch.setattr(hifigan_authors, "DiscriminatorConfig", lambda: sizes)
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
    expected = synthesise_mel(random_generator(SIZES), SIZES, mel)
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
        task = find_model("vocoder", "hifigan").task.build(config, assets)
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
    task = find_model("vocoder", "hifigan").task.build(config, model.assets)

    with pytest.raises(InputError, match=r"infinity or NaN in msd\.discriminators\.1\.convs\.0\.b"):
        initialise(task, model.assets, source)


def test_a_folded_export_can_be_trained_on(tmp_path):
    exported = folded(random_generator(SIZES))
    model = load_model(write_authors(tmp_path, exported))
    task = find_model("vocoder", "hifigan").task.build(model.config, model.assets)
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
