import sys

import pytest
import torch

from models.checkpoint.foreign import find
from models.checkpoint.importers import matcha_authors
from models.checkpoint.loading import load_model
from models.checkpoint.publish import convert_to_experiment
from tests.models.checkpoint.importers.matcha_checkpoint import (
    N_MELS,
    Parts,
    weights_of,
    write_checkpoint,
)
from tests.models.checkpoint.importers.reading import Command
from utils.errors import InputError

IDS, LENGTHS = torch.tensor([[0, 61, 0, 72, 0, 5, 0]]), torch.tensor([7])
CONTROLS = {"steps": 3, "temperature": 0.8, "duration_control": 1.2}
VARIANTS = {
    "published": Parts(),
    "speakers": Parts(n_speakers=2),
    "one length": Parts(channels=(16,), n_blocks=2, prenet=False, kernel_size=5),
    "three lengths": Parts(channels=(8, 24, 16), duration_kernel_size=5),
}
# by the authors' code with the same weights and noise: all of a band or of a frame
DURATIONS = {
    "published": [2, 1, 1, 1, 1, 2, 0],
    "speakers": [2, 1, 1, 1, 4, 5, 2],
    "one length": [2, 1, 2, 3, 1, 1, 0],
    "three lengths": [2, 1, 2, 3, 2, 7, 16],
}
FIRST_BAND = {  # of the first 16 frames
    "published": [
        -6.029363, -5.334017, -8.146701, -4.996516, -5.648477, -7.603031, -4.593986, -6.459743,
    ],
    "speakers": [
        -3.577428, -8.186881, -4.838588, -5.175143, -4.497263, -6.021709, -3.187356, -6.006712,
        -5.037813, -3.968997, -5.881254, -4.631842, -4.101953, -6.270855, -0.711911, -3.404465,
    ],
    "one length": [
        -6.011823, -5.683222, -7.760195, -4.823825, -6.494573, -8.376553, -3.610387, -6.040697,
        -8.357504, -4.143302,
    ],
    "three lengths": [
        -5.694150, -4.062741, -8.378060, -5.610350, -4.444194, -6.919951, -3.741441, -5.966795,
        -6.177926, -3.331191, -6.590937, -4.965454, -4.143999, -7.408483, -4.729818, -5.013848,
    ],
}  # fmt: skip
LAST_FRAME = {
    "published": [-6.459743, -4.582577, -5.948176, -5.595358],
    "speakers": [-3.404465, -8.091015, -2.771919, -8.487080],
    "one length": [-4.143302, -6.696383, -6.170554, -3.021177],
    "three lengths": [-7.373900, -3.856092, -6.028370, -6.015017],
}
PRIOR_OF_SECOND_BAND = {  # of each phone, scaled
    "published": [-1.101320, -0.999218, -0.985805, -0.992525, -0.983732, -1.032996],
    "speakers": [1.684206, 0.959405, 0.741157, 1.391370, 0.901539, 1.992945, 0.591313],
    "one length": [-0.650569, 0.456232, 0.328144, -0.058903, -0.165875, 0.008912],
    "three lengths": [
        *(-1.101320, -0.999218, -0.985805, -0.992525, -0.983732, -1.032996, -1.097902)
    ],
}


# of the expected values, whose mels have fewer frames
NOISE = (torch.arange(N_MELS * 40, dtype=torch.float64) * 2.3).sin().float().view(1, N_MELS, 40)


@pytest.mark.parametrize("variant", VARIANTS)
def test_numbers_are_those_of_the_authors_code(tmp_path, monkeypatch, variant):
    parts = VARIANTS[variant]
    path = write_checkpoint(tmp_path / "matcha.ckpt", monkeypatch, parts)
    network, speakers = load_model(path).network, torch.tensor([parts.n_speakers - 1])
    spoken = network.infer(IDS, LENGTHS, speaker_ids=speakers, noise=NOISE, **CONTROLS)
    assert spoken.durations.tolist() == [DURATIONS[variant]]
    prior = torch.tensor(PRIOR_OF_SECOND_BAND[variant])
    expected_prior = prior.repeat_interleave(spoken.durations[0, : len(prior)])
    for values, expected in (
        (spoken.mel[0, 0, :16], FIRST_BAND[variant]),
        (spoken.mel[0, :, -1], LAST_FRAME[variant]),
        ((spoken.prior[0, 1] + 5.5) / 2.1, expected_prior),
    ):
        torch.testing.assert_close(values, torch.as_tensor(expected), rtol=0, atol=1e-4)


def test_it_has_the_settings_symbols_and_speakers_of_the_file_and_imports_nothing(
    tmp_path, monkeypatch
):
    path = write_checkpoint(tmp_path / "checkpoint_7.ckpt", monkeypatch, Parts(2))
    before = set(sys.modules)
    voice = load_model(path)
    assert not any(name.startswith("omegaconf") for name in set(sys.modules) - before)
    assert matcha_authors.read(path).unused == ("optimizer_states", "lr_schedulers")
    model, preprocess = voice.config.model, voice.config.preprocess
    assert (model.encoder.hidden, model.decoder.channels, model.out_size) == (8, (16, 16), 0)
    assert model.mel_mean == -5.5
    assert (preprocess.mel.padding, preprocess.mel.n_mels) == ("hifigan", N_MELS)
    assert preprocess.text.phone_extractor == "espeak_characters"
    assert len(voice.vocabulary) == 178
    ids = voice.vocabulary.ids(["<pad>", "ˈ", "<,>", "<space>", "'", "ᵻ"])
    assert ids == [0, 156, 3, 16, 176, 177]
    assert [speaker.name for speaker in voice.speakers] == ["speaker_0", "speaker_1"]
    assert voice.step == 1234


def test_converted_it_speaks_as_before(tmp_path, monkeypatch):
    path = write_checkpoint(tmp_path / "matcha.ckpt", monkeypatch)
    convert_to_experiment(path, tmp_path / "converted")
    networks = (load_model(place).network for place in (path, tmp_path / "converted"))
    assert torch.equal(*(network.infer(IDS, LENGTHS).mel for network in networks))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"scheduler": Command("harmed")}, "refused: it names posix.system"),
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
    tensors = weights_of(Parts())
    tensors["encoder.emb.weight"] = tensors["encoder.emb.weight"][:100]
    path = write_checkpoint(tmp_path / "matcha.ckpt", monkeypatch, tensors=tensors)
    with pytest.raises(InputError, match="100 symbols, expected the 178"):
        load_model(path)


def test_checkpoints_of_other_models_are_not_recognised(tmp_path):
    torch.save({"state_dict": {"weight": torch.ones(2)}}, tmp_path / "other.ckpt")
    assert find(tmp_path / "other.ckpt") is None
