"""A vocoder from stage 1's recordings to an experiment that others can start from."""

import json
import logging
import re

import pytest
import torch
from safetensors.torch import load_file, save_file
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from models.base.assets import Assets
from models.checkpoint.loading import load_model
from models.training.initialisation import initialise
from modules.layers.normalisation import adapt_weight_norm
from tests.models.vocoder.small_hifigan import MEL, make_gan, make_recordings, write_vocoder_config
from tests.worlds.experiments import train_anew, trained_vocoder, trained_voice
from utils.errors import InputError


@pytest.fixture
def root(tmp_path):
    make_recordings(tmp_path / "data" / "mini")
    return tmp_path


@pytest.fixture
def trained(tmp_path):
    """The same folder with the experiment `voice` after two updates."""
    trained_vocoder(tmp_path)
    return tmp_path


def run(root, *overrides, name="voice", max_steps=1, **flags):
    train_anew(write_vocoder_config(root, max_steps=max_steps), *overrides, name=name, **flags)
    return root / "ckpts" / name


def tensors_of(folder):
    """All weights of the newest checkpoint, by network."""
    newest = max((folder / "checkpoints").iterdir())
    return {path.stem: load_file(path) for path in newest.glob("*.safetensors")}


def test_a_vocoder_becomes_an_experiment_with_curves_audio_and_figures(root):
    folder = run(root, "train.tracker=tensorboard", "train.valid_samples=1", "train.log_steps=1")
    tags = EventAccumulator(str(folder / "log")).Reload().Tags()
    curves = {"valid/mel_l1", "valid/stft", "train/disc_fake", "train/frames_per_s"}
    assert curves < set(tags["scalars"])
    assert {"train/grad_norm/generator", "train/grad_norm/discriminator"} < set(tags["scalars"])
    assert tags["audio"] == [f"samples/rec-008/{name}" for name in ("recorded", "synthesised")]
    assert tags["images"] == ["samples/rec-008/mels"]
    files = {path.name for path in folder.iterdir()}
    assert {"config.json", "audio.json", "speakers.json", "README.md"} < files
    assert not {"vocabulary.json", "stats.json"} & files


def test_half_precision_trains_both_networks_on_a_cpu(root):
    start = tensors_of(run(root, "train.adam.lr=0"))
    halves = tensors_of(run(root, "train.mixed_precision=bf16", name="halves"))
    for network, tensors in halves.items():
        assert all(tensor.dtype == torch.float32 for tensor in tensors.values())
        assert all(bool(tensor.isfinite().all()) for tensor in tensors.values())
        assert max((tensors[n] - t).abs().max() for n, t in start[network].items()) > 1e-3


def test_resynthesis_is_scored_and_the_card_has_the_scores(root, caplog):
    metrics = 'train.score_metrics=["mel_l1","mcd"]'
    with caplog.at_level(logging.INFO):
        folder = run(root, "train.score_steps=1", metrics, max_steps=2)
    assert " segments in " in caplog.text
    lines = [line for line in caplog.messages if "scores of 2 utterances: mel_l1 " in line]
    card = (folder / "README.md").read_text()
    assert [line.partition(":")[0] for line in lines] == ["update 1", "update 2"]
    assert re.search(r"mel_l1 [\d.]+, mcd [\d.]+ \([\d.]+ s\)$", lines[0])
    # both recordings are whole and about as long: the score is close to the loss of that name
    found = (re.search(rf" {name} ([\d.]+)", card)[1] for name in ("mel_l1", "score/mel_l1"))
    loss, score = map(float, found)
    assert score == pytest.approx(loss, rel=0.05)


def test_the_loaded_vocoder_gives_the_output_of_the_trained_one(trained):
    folder = trained / "ckpts" / "voice"
    task = make_gan()
    task.networks["generator"].load_state_dict(tensors_of(folder)["model"])
    mel = torch.randn(1, MEL.n_mels, 9) - 5
    with torch.no_grad():
        expected = task.networks["generator"](mel)
    assert torch.allclose(load_model(folder).network.infer(mel), expected, atol=1e-5)


@pytest.mark.parametrize(
    "change", ["model.lambda_mel=10", "train.cut_mel_frame=24", "model.adversarial=false"]
)
def test_keys_that_change_the_updates_cannot_change_on_resume(trained, change):
    key, _, _ = change.partition("=")
    with pytest.raises(InputError, match=rf"--resume with another config: {key} was .*, is \w+"):
        run(trained, change, resume=True)


@pytest.mark.parametrize(("before", "now"), [("", "voice, 8 updates"), ("voice, 8 updates", "")])
def test_resuming_on_mels_of_another_model_is_refused(root, before, now):
    report = root / "data" / "mini" / "report.json"
    report.write_text(json.dumps({"hours": 1.0, "mels_from": before}))
    run(root)
    report.write_text(json.dumps({"hours": 1.0, "mels_from": now}))
    message = r"--resume: voice was trained on mels .*(?:recordings|voice, 8 updates); run stage"
    with pytest.raises(InputError, match=message):
        run(root, resume=True)


def test_both_networks_start_from_those_of_another_run(trained):
    voice = trained / "ckpts" / "voice"
    source = tensors_of(voice)
    start = tensors_of(run(trained, "train.adam.lr=0", name="tuned", init_from=str(voice)))
    for network in ("model", "discriminator"):
        for name, tensor in source[network].items():
            if not name.endswith(("_u", "_v")):  # they follow the weights, rate or not
                assert torch.equal(start[network][name], tensor), name


def test_discriminators_missing_in_the_source_are_randomly_initialised_and_logged(root, caplog):
    folder = run(root, "model.adversarial=false", "model.lambda_stft=1", name="alone")
    task, fresh = make_gan(), make_gan()
    with caplog.at_level(logging.INFO):
        transfer = initialise(task, Assets(MEL), folder)
    assert tensors_of(folder).keys() == {"model"}
    assert (transfer.new, transfer.dropped) == (["network discriminator"], [])
    assert "1 new, initialised as without --init_from: network discriminator" in caplog.text
    assert equal(task.networks["discriminator"], fresh.networks["discriminator"].state_dict())
    assert equal(task.networks["generator"], tensors_of(folder)["model"])


def equal(network, tensors):
    own = network.state_dict()
    return own.keys() == tensors.keys() and all(torch.equal(own[n], tensors[n]) for n in own)


def test_folded_weights_initialise_a_generator_that_trains(trained):
    folder = trained / "ckpts" / "voice"
    newest = max((folder / "checkpoints").iterdir())
    plain = load_model(folder).network.state_dict()
    published = trained / "published"
    published.mkdir()
    weights = adapt_weight_norm(load_file(newest / "model.safetensors"), plain)
    save_file(weights, published / "model.safetensors")
    for name in ("config.json", "audio.json"):
        (published / name).write_bytes((folder / name).read_bytes())
    assert not any("original" in name for name in load_file(published / "model.safetensors"))
    task = make_gan()
    transfer = initialise(task, Assets(MEL), published)
    mel = torch.randn(1, MEL.n_mels, 9) - 5
    with torch.no_grad():
        wav = task.networks["generator"](mel)
    assert transfer.new == ["network discriminator"]
    assert torch.allclose(wav, load_model(folder).network.infer(mel), atol=1e-5)


def test_initial_weights_of_another_kind_of_model_are_refused(tmp_path):
    with pytest.raises(InputError, match="this is a FastSpeech2, and none of its tensors"):
        initialise(make_gan(), Assets(MEL), trained_voice(tmp_path))
