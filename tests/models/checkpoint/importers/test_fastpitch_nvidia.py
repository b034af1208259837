import logging
from dataclasses import replace

import pytest
import torch

from models.base.registry import find_model
from models.checkpoint.foreign import find
from models.checkpoint.importers import fastpitch_nvidia
from models.checkpoint.loading import load_model
from models.checkpoint.publish import convert_to_experiment
from models.synthesizer.synthesizer import Synthesizer
from models.training.initialisation import initialise
from modules.variance.pitch_transform import PitchTransform
from processors.text.voice_phones import nvidia_vocabulary
from tests.models.checkpoint.importers.fastpitch_originals import (
    N_SYMBOLS,
    PITCH,
    SMALL,
    VERSION_1_0,
    aligner_tensors,
    speak,
    tensors_of,
    write_checkpoint,
)
from tests.models.checkpoint.importers.reading import read_foreign
from utils.errors import InputError

IDS = [41, 12, 9, 64, 147, 30, 11, 7, 7, 100]  # letters, signs and ARPAbet
SPEAKERS = {**SMALL, "n_speakers": 3}
NAME = "FastPitch_checkpoint_1000.pt"
VARIANTS = {
    "1.1": SMALL,
    "1.0": VERSION_1_0,
    "speakers": SPEAKERS,
    "without energy": {**SMALL, "energy_conditioning": False},
    "published sizes of kernels": SMALL
    | {"in_fft_n_heads": 1, "pitch_embedding_kernel_size": 3, "dur_predictor_n_layers": 2},
}


def write(folder, **others):
    """A checkpoint of the small network, and its tensors."""
    tensors = tensors_of(SMALL)
    return write_checkpoint(folder / NAME, tensors, SMALL, **others), tensors


def infer(network, ids=IDS, speaker=None, **controls):
    speakers = None if speaker is None else torch.tensor([speaker])
    lengths = torch.tensor([len(ids)])
    return network.infer(torch.tensor([ids]), lengths, speaker_ids=speakers, **controls)


def check(out, expected):
    assert out.durations[0].tolist() == expected.durations.tolist()
    torch.testing.assert_close(out.mel[0], expected.mel, rtol=0, atol=1e-4)
    mean, std = PITCH
    hz = (expected.pitch * std + mean).clamp(min=0)
    torch.testing.assert_close(out.pitch[0], hz, rtol=0, atol=1e-2)
    if expected.energy is not None:
        energy = expected.energy.expm1().clamp(min=0)
        torch.testing.assert_close(out.energy[0], energy, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("config", VARIANTS.values(), ids=VARIANTS)
def test_a_checkpoint_speaks_as_nvidias_code(tmp_path, config):
    tensors = tensors_of(config)
    network = load_model(write_checkpoint(tmp_path / "any name", tensors, config)).network
    for speaker in (0, 2) if config is SPEAKERS else (None,):
        expected = speak(tensors, config, IDS, speaker=speaker)
        assert len(set(expected.durations.tolist())) > 2
        check(infer(network, speaker=speaker), expected)


@pytest.mark.parametrize("pace", [0.7, 1.35])
def test_pace_is_the_inverse_of_the_duration_control(tmp_path, pace):
    path, tensors = write(tmp_path)
    out = infer(load_model(path).network, duration_control=1 / pace)
    check(out, speak(tensors, SMALL, IDS, pace=pace))


MEAN, STD = PITCH
TRANSFORMS = {  # in Hz, and as NVIDIA's options act on normalised pitch
    "flatten": (PitchTransform(flatten=True), lambda p: p * 0),
    "invert": (PitchTransform(invert=True), lambda p: -p),
    "amplify": (PitchTransform(amplify=2.5), lambda p: 2.5 * p),
    "shift": (PitchTransform(shift_hz=-30), lambda p: p - 30 / STD),
    "all": (PitchTransform(invert=True, amplify=1.5, shift_hz=20), lambda p: 1.5 * -p + 20 / STD),
    "custom": (
        PitchTransform(custom=lambda hz, _: hz * torch.linspace(0.5, 1.5, hz.shape[1])),
        lambda p: ((p * STD + MEAN) * torch.linspace(0.5, 1.5, len(p)) - MEAN) / STD,
    ),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_pitch_transforms_are_nvidias(tmp_path, name):
    path, tensors = write(tmp_path)
    transform, normalised = TRANSFORMS[name]
    expected = speak(tensors, SMALL, IDS, transform=normalised)
    check(infer(load_model(path).network, pitch_transform=transform), expected)
    assert not torch.allclose(expected.pitch, speak(tensors, SMALL, IDS).pitch)


def test_utterances_of_some_thousand_frames_are_the_same(tmp_path):
    path, tensors = write(tmp_path)
    ids = [1 + (7 * n) % (N_SYMBOLS - 1) for n in range(250)]
    expected = speak(tensors, SMALL, ids, pace=0.2)
    assert len(expected.mel.T) > 1500
    check(infer(load_model(path).network, ids, duration_control=5), expected)


@pytest.mark.parametrize("is_zip", [True, False], ids=["zip", "of 2020"])
def test_parallel_training_and_averaged_weights_are_recognised(tmp_path, caplog, is_zip):
    averaged, latest = tensors_of(SMALL), tensors_of(SMALL)
    latest["proj.bias"] = latest["proj.bias"] + 1
    path = tmp_path / "weights"
    others = {
        "iteration": 48_000,
        "ema_state_dict": {f"module.{name}": tensor for name, tensor in averaged.items()},
        "optimizer": {"state": {0: {"exp_avg": torch.zeros(2)}}, "param_groups": [{"lr": 0.1}]},
        "train_setup": {"sampling_rate": 22050, "speaker_ids": None, "p_arpabet": 1.0},
    }
    saved = {"epoch": 1000, "config": SMALL, "state_dict": latest, **others}
    torch.save(saved, path, _use_new_zipfile_serialization=is_zip)
    with caplog.at_level(logging.INFO):
        model = load_model(path)
    check(infer(model.network), speak(averaged, SMALL, IDS))
    assert model.step == 48_000
    assert "ema_state_dict, epoch 1000" in caplog.text


@pytest.mark.parametrize(
    ("averaged", "unused"),
    [(None, ()), ({}, ("ema_state_dict",)), (tensors_of(SMALL), ("state_dict",))],
    ids=["none", "empty", "some"],
)
def test_weights_that_are_not_used_are_listed_if_there_are_any(tmp_path, averaged, unused):
    path, tensors = write(tmp_path, ema_state_dict=averaged)
    check(infer(load_model(path).network), speak(tensors, SMALL, IDS))
    assert read_foreign(path).unused == unused


def test_a_file_describes_network_and_mel(tmp_path):
    setup = {"sampling_rate": 44100, "filter_length": 2048, "hop_length": 512, "win_length": 2048,
             "mel_fmin": 0.0, "mel_fmax": 22050.0}  # fmt: skip
    path = write_checkpoint(tmp_path / NAME, tensors_of(SPEAKERS), SPEAKERS, train_setup=setup)
    model = load_model(path)
    mel = model.mel
    assert (mel.sample_rate, mel.n_fft, mel.hop_length, mel.win_length) == (44100, 2048, 512, 2048)
    assert (mel.f_min, mel.f_max, mel.n_mels, mel.padding) == (0, 22050, 80, "centre")
    assert [speaker.name for speaker in model.speakers] == ["speaker_0", "speaker_1", "speaker_2"]
    sizes = model.config.model
    assert (sizes.hidden, sizes.energy, sizes.speaker_emb_weight) == (12, "log_mel", 0.7)
    assert (sizes.encoder.heads, sizes.encoder.head_size) == (2, 5)
    assert (sizes.encoder.attention_dropout, sizes.decoder.kernel_size) == (0.2, 5)
    assert (sizes.pitch_predictor.n_layers, sizes.pitch_predictor.dropout) == (3, 0.3)
    first = load_model(write_checkpoint(tmp_path / "old", tensors_of(VERSION_1_0), VERSION_1_0))
    assert (first.mel.sample_rate, first.mel.hop_length, first.mel.f_max) == (22050, 256, 8000)
    assert first.config.model.variant == "1.0"


@pytest.mark.parametrize(
    ("n_symbols", "setup", "extractor", "p_arpabet"),
    [
        (148, {"p_arpabet": 1.0, "symbol_set": "english_basic"}, "nvidia_english", 1),
        (123, {"p_arpabet": 0.5}, "nvidia_english_lowercase", 0.5),
        (148, {}, "nvidia_english", 0),
    ],
)
def test_the_symbols_are_nvidias(tmp_path, n_symbols, setup, extractor, p_arpabet):
    config = {**SMALL, "n_symbols": n_symbols}
    path = write_checkpoint(tmp_path / NAME, tensors_of(config), config, train_setup=setup)
    model = load_model(path)
    text = model.config.preprocess.text
    assert (text.phone_extractor, text.p_arpabet) == (extractor, p_arpabet)
    assert model.vocabulary == nvidia_vocabulary(extractor)


def test_a_text_is_spoken_in_nvidias_symbols(tmp_path):
    path, tensors = write(tmp_path, train_setup={"p_arpabet": 1.0})
    speech = Synthesizer(path, vocoder="griffin_lim")("The cats, 2!")
    # CMUdict has "the" twice
    names = ["t", "h", "e", "<space>", "@K", "@AE1", "@T", "@S", "<,>", "<space>", "@T", "@UW1"]
    assert [phone.name for phone in speech.phones] == [*names, "<!>"]
    ids = nvidia_vocabulary("nvidia_english").ids([*names, "<!>"])
    assert ids[:4] == [57, 45, 42, 11]
    expected = speak(tensors, SMALL, ids)
    assert len(speech.wav) == 256 * len(expected.mel.T)


def test_pitch_statistics_that_were_not_stored_are_those_of_ljspeech(tmp_path):
    tensors = tensors_of(SMALL)
    tensors |= {"pitch_mean": torch.zeros(1), "pitch_std": torch.zeros(1)}
    network = load_model(write_checkpoint(tmp_path / NAME, tensors, SMALL)).network
    flat = infer(network, pitch_transform=PitchTransform(flatten=True))
    assert flat.pitch[0].tolist() == pytest.approx([218.14] * len(IDS), abs=1e-3)
    shifted = infer(network, pitch_transform=PitchTransform(shift_hz=67.24))
    expected = speak(tensors, SMALL, IDS, transform=lambda pitch: pitch + 1)
    torch.testing.assert_close(shifted.mel[0], expected.mel, rtol=0, atol=1e-4)


def test_the_energy_of_nvidia_has_no_control(tmp_path):
    network = load_model(write(tmp_path)[0]).network
    assert "energy" not in network.controls
    with pytest.raises(ValueError, match="the energy of the log-mel and no energy_control"):
        infer(network, energy_control=1.2)


def test_what_is_not_used_is_listed_and_an_experiment_speaks_alike(tmp_path, caplog):
    tensors = tensors_of(SMALL) | aligner_tensors(12)
    path = write_checkpoint(tmp_path / NAME, tensors, SMALL, optimizer={"state": {}}, scaler={})
    with caplog.at_level(logging.INFO):
        convert_to_experiment(str(path), tmp_path / "experiment")
    lines = [line for line in caplog.messages if line.startswith("not used: ")]
    aligner = "not used: attention: the aligner; training starts with a new one"
    assert lines == [aligner, "not used: optimizer", "not used: scaler"]
    own = load_model(tmp_path / "experiment")
    assert torch.equal(infer(own.network).mel, infer(load_model(path).network).mel)


@pytest.mark.parametrize("energy", ["log_mel", "spectrum"])
def test_training_starts_from_its_weights_but_not_from_another_energy(tmp_path, energy):
    model = load_model(write(tmp_path)[0])
    config = replace(model.config, model=replace(model.config.model, energy=energy))
    task = find_model("tts", "fastpitch").task.build(config, model.assets)
    transfer = initialise(task, model.assets, tmp_path / NAME)
    own, stored = task.network.state_dict(), model.network.state_dict()
    different = {name for name in own if not torch.equal(own[name], stored[name])}
    energies = {name for name in own if name.startswith("energy.")}
    assert different == (set() if energy == "log_mel" else energies)
    assert set(transfer.new) == {"network aligner"} | different


def test_the_newest_file_of_a_folder_is_used(tmp_path):
    tensors = tensors_of(SMALL)
    for epoch in (90, 100):
        last = {**tensors, "proj.bias": tensors["proj.bias"] + epoch}
        write_checkpoint(tmp_path / f"FastPitch_checkpoint_{epoch}.pt", last, SMALL)
    expected = speak(tensors, SMALL, IDS).mel + 100
    found = infer(load_model(tmp_path).network).mel[0]
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 cut", b"\x80 cut", b"text"])
def test_files_of_other_kinds_are_left_to_other_importers(tmp_path, content):
    (tmp_path / "some.pt").write_bytes(content)
    assert not fastpitch_nvidia.recognises(tmp_path / "some.pt")
    assert find(tmp_path) is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"proj.weight": None}, r"missing: mel_linear\.weight"),
        ({"encoder.word_emb.weight": None}, r"tensor encoder\.word_emb\.weight is missing"),
        ({"formant_emb.weight": torch.ones(1)}, r"does not fit .*left over: formant\.embedding\.w"),
        ({"pitch_emb.weight": torch.ones(12, 3, 5)}, r"pitch\.embedding\.weight \(12, 3, 5\)"),
        ({"proj.bias": torch.full((80,), torch.nan)}, r"infinity or NaN: mel_linear\.bias"),
        (
            {"pitch_std": torch.ones(1), "pitch_mean": None},
            r"\.pt: pitch_mean and pitch_std are \[1\.0\], exp",
        ),
        ({"pitch_std": torch.ones(0)}, r"pitch_std are \[\d.*\], expected two numbers"),
        ({"pitch_std": torch.tensor([torch.nan])}, r"\.pt: .*, nan\], expected"),
        ({"pitch_mean": torch.tensor([torch.nan])}, r"\.pt: .* \[nan, .*, expected"),
        ({"pitch_std": -torch.ones(1)}, r"pitch_std are \[.*-1\.0\], .* 0 or more"),
        ({"encoder.word_emb.weight": torch.tensor(1.0)}, r"word_emb\.weight is of the shape \(\)"),
        ({"speaker_emb.weight": torch.tensor(1.0)}, r"speaker_emb\.weight is of the shape \(\)"),
    ],
)
def test_tensors_that_do_not_fit_are_named(tmp_path, change, message):
    tensors = {n: t for n, t in (tensors_of(SMALL) | change).items() if t is not None}
    with pytest.raises(InputError, match=message):
        load_model(write_checkpoint(tmp_path / NAME, tensors, SMALL))


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"n_symbols": 220}, r"has 220 symbols, expected the 148 of nvidia_english or"),  # Mandarin
        ({"in_fft_n_heads": None}, r"config\.in_fft_n_heads is missing; expected the set"),
    ],
)
def test_other_symbols_and_missing_sizes_are_named(tmp_path, config, message):
    tensors = tensors_of({**SMALL, "n_symbols": config.get("n_symbols", N_SYMBOLS)})
    config = {key: value for key, value in {**SMALL, **config}.items() if value is not None}
    with pytest.raises(InputError, match=message):
        load_model(write_checkpoint(tmp_path / NAME, tensors, config))
