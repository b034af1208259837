import os
import sys

import pytest
import torch

from models.checkpoint.foreign import find
from models.checkpoint.importers import matcha_authors
from models.checkpoint.loading import load_model
from tests.models.checkpoint.importers.matcha_checkpoint import (
    N_MELS,
    weights_of,
    write_checkpoint,
)
from utils.errors import InputError

IDS, LENGTHS = torch.tensor([[0, 61, 0, 72, 0, 5, 0]]), torch.tensor([7])
CONTROLS = {"steps": 3, "temperature": 0.8, "duration_control": 1.2}
# by the authors' code with the same weights and noise: all of a band or of a frame
DURATIONS = {1: [2, 1, 1, 1, 1, 2, 0], 2: [2, 1, 1, 1, 4, 5, 2]}
FIRST_BAND = {
    1: [-6.029363, -5.334017, -8.146701, -4.996516, -5.648477, -7.603031, -4.593986, -6.459743],
    2: [
        -3.577428, -8.186881, -4.838588, -5.175143, -4.497263, -6.021709, -3.187356, -6.006712,
        -5.037813, -3.968997, -5.881254, -4.631842, -4.101953, -6.270855, -0.711911, -3.404465,
    ],
}  # fmt: skip
LAST_FRAME = {
    1: [-6.459743, -4.582577, -5.948176, -5.595358],
    2: [-3.404465, -8.091015, -2.771919, -8.487080],
}
PRIOR_OF_SECOND_BAND = {  # of each phone, scaled
    1: [-1.101320, -0.999218, -0.985805, -0.992525, -0.983732, -1.032996],
    2: [1.684206, 0.959405, 0.741157, 1.391370, 0.901539, 1.992945, 0.591313],
}


# of the expected values, whose mels have fewer frames
NOISE = (torch.arange(N_MELS * 40, dtype=torch.float64) * 2.3).sin().float().view(1, N_MELS, 40)


@pytest.mark.parametrize("n_speakers", [1, 2])
def test_numbers_are_those_of_the_authors_code(tmp_path, monkeypatch, n_speakers):
    path = write_checkpoint(tmp_path / "matcha.ckpt", monkeypatch, n_speakers)
    network, speakers = load_model(path).network, torch.tensor([n_speakers - 1])
    spoken = network.infer(IDS, LENGTHS, speaker_ids=speakers, noise=NOISE, **CONTROLS)
    assert spoken.durations.tolist() == [DURATIONS[n_speakers]]
    prior = torch.tensor(PRIOR_OF_SECOND_BAND[n_speakers])
    expected_prior = prior.repeat_interleave(spoken.durations[0, : len(prior)])
    for values, expected in (
        (spoken.mel[0, 0], FIRST_BAND[n_speakers]),
        (spoken.mel[0, :, -1], LAST_FRAME[n_speakers]),
        ((spoken.prior[0, 1] + 5.5) / 2.1, expected_prior),
    ):
        torch.testing.assert_close(values, torch.as_tensor(expected), rtol=0, atol=1e-4)


def test_it_has_the_settings_symbols_and_speakers_of_the_file(tmp_path, monkeypatch):
    voice = load_model(write_checkpoint(tmp_path / "checkpoint_7.ckpt", monkeypatch, 2))
    model, preprocess = voice.config.model, voice.config.preprocess
    assert (model.encoder.hidden, model.decoder.channels, model.out_size) == (8, (16, 16), 0)
    assert model.mel_mean == -5.5
    assert (preprocess.mel.padding, preprocess.mel.n_mels) == ("hifigan", N_MELS)
    assert preprocess.text.phone_extractor == "espeak_characters"
    assert len(voice.vocabulary) == 178
    assert voice.vocabulary.ids(["<pad>", "ˈ", "<,>", "<space>", "'", "ᵻ"]) == [
        *(0, 156, 3, 16, 176, 177)
    ]
    assert [speaker.name for speaker in voice.speakers] == ["speaker_0", "speaker_1"]
    assert voice.step == 1234


def test_nothing_that_a_file_names_is_imported(tmp_path, monkeypatch):
    path = write_checkpoint(tmp_path / "matcha.ckpt", monkeypatch)
    before = set(sys.modules)
    voice = matcha_authors.read(path)
    assert not any(name.startswith("omegaconf") for name in set(sys.modules) - before)
    assert voice.unused == ("optimizer_states", "lr_schedulers")


class Harmful:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("touch harmed",)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"scheduler": Harmful()}, "refused: it names posix.system"),
        ({"decoder": {"act_fn": "snake"}}, "decoder.act_fn is snake; only snakebeta"),
        ({"decoder": {}}, "decoder.channels, .* is missing"),
        ({"spk_emb_dim": "${model.size}"}, r"model.speaker_size is .*, expected a whole number"),
    ],
)
def test_what_needs_more_is_refused(tmp_path, monkeypatch, changes, message):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "matcha.ckpt"
    write_checkpoint(path, monkeypatch, changes=changes)
    with pytest.raises(InputError, match=message):
        load_model(path)
    assert not (tmp_path / "harmed").exists()


def test_other_numbers_of_symbols_are_refused(tmp_path, monkeypatch):
    tensors = weights_of(1)
    tensors["encoder.emb.weight"] = tensors["encoder.emb.weight"][:100]
    path = write_checkpoint(tmp_path / "matcha.ckpt", monkeypatch, tensors=tensors)
    with pytest.raises(InputError, match="100 symbols, expected the 178"):
        load_model(path)


def test_checkpoints_of_other_models_are_not_recognised(tmp_path):
    torch.save({"state_dict": {"weight": torch.ones(2)}}, tmp_path / "other.ckpt")
    assert find(tmp_path / "other.ckpt") is None
