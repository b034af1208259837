import re
from itertools import repeat
from pathlib import Path

import pytest
import torch
from torch import nn

from models.checkpoint.foreign import find
from models.checkpoint.importers import tacotron2_nvidia, waveglow_nvidia
from models.checkpoint.loading import load_model
from models.checkpoint.publish import convert_to_experiment
from models.tts.tacotron2 import Tacotron2
from models.tts.tacotron2.config import Tacotron2Config
from modules.layers.basic import length_mask
from modules.mel import MelConfig
from tests.models.checkpoint.importers.reading import read_foreign
from tests.models.checkpoint.importers.tacotron2_originals import (
    FULL,
    SMALL,
    TacotronOriginal,
    original,
)
from utils.errors import InputError

IDS = torch.tensor([[38, 46, 49, 49, 52, 11, 60, 52, 55]])
LENGTHS = torch.tensor([9])


def write(path: Path, *, prefix: str = "", **parts: object) -> Path:
    tensors = {f"{prefix}{name}": t for name, t in original().state_dict().items()}
    torch.save({"epoch": 1500, "config": SMALL, "state_dict": tensors} | parts, path)
    return path


@pytest.mark.parametrize("prefix", ["", "module."])
def test_numbers_are_those_of_a_plain_computation(tmp_path, prefix):
    voice = load_model(write(tmp_path / "checkpoint_Tacotron2_1500.pt", prefix=prefix))
    spoken = voice.network.infer(IDS, LENGTHS, prenet_dropout=0.0, max_decoder_steps=60)
    mel, attention = original().speak(IDS, 60)
    assert 5 < mel.shape[2] < 60  # the gate opens
    assert spoken.mel_lengths.tolist() == [mel.shape[2]]
    torch.testing.assert_close(spoken.mel, mel, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(spoken.alignment[0], attention, rtol=1e-4, atol=1e-4)
    assert bool(spoken.stopped)


def test_speech_that_does_not_end_is_the_same_up_to_the_limit(tmp_path):
    network = load_model(write(tmp_path / "checkpoint_Tacotron2_1500.pt")).network
    limits = {"max_decoder_steps": 60, "gate_threshold": 1.0}
    spoken = network.infer(IDS, LENGTHS, prenet_dropout=0.0, **limits)
    mel, _ = original().speak(IDS, 60, threshold=1.0)
    assert spoken.mel_lengths.tolist() == [60]
    assert spoken.stopped.tolist() == [False]
    torch.testing.assert_close(spoken.mel, mel, rtol=1e-4, atol=1e-4)


def test_training_gives_the_gradients_of_a_plain_computation(tmp_path):
    network = load_model(write(tmp_path / "checkpoint_Tacotron2_1500.pt")).network
    plain = original()
    torch.manual_seed(0)
    mel = torch.randn(1, SMALL["n_mel_channels"], 7)
    memory = network.encoder(network.phone_embedding(IDS), LENGTHS)
    network.decoder.apply(lambda part: setattr(part, "training", False))
    undropped = type("Masks", (), {"steps": lambda self, device: repeat(torch.ones(2, 1, 1))})()
    output = network.decoder(memory, length_mask(LENGTHS), mel.mT, undropped)
    mel_hat, gate = plain.follow(IDS, mel)
    torch.testing.assert_close(output.mel_hat, mel_hat.mT, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(output.gate_logits[0], gate, rtol=1e-4, atol=1e-5)
    for made, logits in ((output.mel_hat, output.gate_logits), (mel_hat, gate)):
        (made.square().mean() + logits.sigmoid().sum()).backward()
    expected = {name: p.grad for name, p in plain.named_parameters() if p.grad is not None}
    expected = tacotron2_nvidia._NAMES.renamed(expected)
    found = {name: p.grad for name, p in network.named_parameters() if p.grad is not None}
    assert found.keys() == expected.keys()
    assert len(found) > 30
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-5)


def test_settings_are_those_of_nvidias_code(tmp_path):
    voice = load_model(write(tmp_path / "model.pt", config=SMALL | {"p_decoder_dropout": 0.2}))
    assert voice.config.model.decoder.decoder_dropout == 0.2
    assert voice.config.preprocess.text.phone_extractor == "nvidia_english"
    assert (voice.mel.sample_rate, voice.mel.padding, voice.mel.f_max) == (22050, "centre", 8000)
    symbols = voice.vocabulary.symbols
    assert (len(symbols), symbols[38], symbols[11]) == (148, "a", "<space>")


@pytest.mark.parametrize(
    ("other", "tensor"),
    [("nvidia_fastpitch_210824.pt", "pitch_predictor.w"), ("waveglow_256channels.pt", "WN.0.w")],
)
def test_a_folder_with_another_model_of_nvidia_is_not_guessed(tmp_path, other, tensor):
    path = write(tmp_path / "checkpoint_Tacotron2_1500.pt")
    torch.save({"state_dict": {tensor: torch.ones(1)}}, tmp_path / other)
    (tmp_path / "waveglow.log").write_text("not a checkpoint")
    names = ", ".join(sorted([path.name, other]))
    with pytest.raises(InputError, match=rf"several models in it \({re.escape(names)}\); give one"):
        load_model(tmp_path)
    assert load_model(path).config.model_type == "Tacotron2"


def test_sizes_are_those_of_the_tensors_whatever_a_config_says(tmp_path):
    path = write(tmp_path / "model.pt", config=SMALL | {"prenet_dim": 13})
    assert load_model(path).config.model.decoder.prenet_size == 12
    # the first code stores no config
    torch.save({"iteration": 25000, "state_dict": original().state_dict()}, path)
    voice = load_model(path)
    assert (voice.step, voice.config.model.decoder.attention_lstm_size) == (25000, 24)


def test_the_newest_of_a_folder_is_read_and_what_its_training_needs_is_listed(tmp_path):
    others = {"optimizer": {"state": {}}, "cuda_rng_state_all": torch.zeros(2)}
    for epoch in (50, 100):
        write(tmp_path / f"checkpoint_Tacotron2_{epoch}.pt", epoch=epoch, **others)
    (tmp_path / "checkpoint_Tacotron2_last.pt").symlink_to("checkpoint_Tacotron2_100.pt")
    assert load_model(tmp_path).network is not None
    imported = read_foreign(tmp_path)
    assert imported.weights.name == "checkpoint_Tacotron2_100.pt"
    assert imported.unused == ("optimizer", "cuda_rng_state_all")


def test_a_whole_pickled_network_is_refused_with_a_way_out(tmp_path):
    path = tmp_path / "tacotron2.pt"
    torch.save({"model": nn.Linear(1, 1)}, path)
    with pytest.raises(InputError, match=r"refused: it names .*network\.state_dict\(\)"):
        load_model(path)


def test_other_models_are_not_taken_for_it(tmp_path):
    torch.save({"state_dict": {"WN.0.start.bias": torch.zeros(3)}}, tmp_path / "waveglow.pt")
    torch.save({"weights": torch.zeros(3)}, tmp_path / "tacotron2.pt")
    assert find(write(tmp_path / "nvidia_tacotron2pyt_fp32.pt"))[1].KIND == tacotron2_nvidia.KIND
    assert find(tmp_path / "waveglow.pt")[1].KIND == waveglow_nvidia.KIND
    assert find(tmp_path / "tacotron2.pt") is None
    assert find(tmp_path / "missing") is None


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("decoder.attention_rnn.weight_hh", None, r"decoder\.attention_rnn\.weight_hh is missing"),
        ("embedding.weight", torch.tensor(1.0), r"a\.pt: .* embedding\.weight is of the sh"),
        ("decoder.linear_projection.linear_layer.weight", torch.ones(12, 36), "2 frames per step"),
    ],
)
def test_missing_tensors_and_those_of_other_shapes_are_named(tmp_path, name, change, message):
    tensors = original().state_dict() | {name: change}
    stored = {name: tensor for name, tensor in tensors.items() if tensor is not None}
    torch.save({"state_dict": stored}, tmp_path / "a.pt")
    with pytest.raises(InputError, match=message):
        load_model(tmp_path / "a.pt")


def test_names_of_the_published_size_are_all_known():
    with torch.device("meta"):
        own = Tacotron2(Tacotron2Config(), 148, MelConfig()).state_dict()
        theirs = tacotron2_nvidia._NAMES.renamed(TacotronOriginal(FULL).state_dict())
    assert {name: t.shape for name, t in own.items()} == {n: t.shape for n, t in theirs.items()}


def test_a_converted_checkpoint_speaks_the_same_text(tmp_path):
    path = write(tmp_path / "checkpoint_Tacotron2_1500", config=SMALL | {"n_mel_channels": 6})
    convert_to_experiment(str(path), tmp_path / "voice")
    limits = {"max_decoder_steps": 5, "gate_threshold": 1.0}
    networks = (load_model(place).network for place in (path, tmp_path / "voice"))
    assert torch.equal(*(network.infer(IDS, LENGTHS, **limits).mel for network in networks))
    ids = torch.tensor([load_model(path).vocabulary.ids(["a", "<space>", "@AA0"])])
    assert ids.tolist() == [[38, 11, 65]]
