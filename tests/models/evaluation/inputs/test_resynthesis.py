import dataclasses
import sys

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from config.preprocess import PreprocessConfig
from config.schema import InferenceConfig
from models.evaluation.inputs.options import EvaluationInputs
from models.evaluation.inputs.resynthesis import resynthesise
from models.synthesizer.runs import copy_synthesis
from models.synthesizer.vocoders import open_vocoder
from modules.mel import MelConfig, MelSpectrogram
from modules.waveform.griffin_lim import GriffinLim
from processors.metrics.utterance_scorer import EvaluatedUtterance, read_waveform
from tests.models.synthesizer.test_vocoders import make_vocoder
from utils.errors import InputError

MEL = MelConfig()
SETTINGS = InferenceConfig(griffin_lim_iterations=4)


def inputs_of(settings=SETTINGS):
    return EvaluationInputs((), PreprocessConfig(), inference=settings)


INPUTS = inputs_of()


def recording(seed, n_samples=20 * 256 + 100):
    return np.random.default_rng(seed).normal(0, 0.1, n_samples).astype(np.float32)


def item_of(id, wav):
    return EvaluatedUtterance(id, None if wav is None else lambda: wav, "", "", None, {})


ITEMS = [item_of("a", recording(0)), item_of("b", recording(1)), item_of("c", None)]


def griffin_lim(mel=MEL):
    return open_vocoder("griffin_lim", mel)


@pytest.fixture
def trained(tmp_path):
    return make_vocoder(tmp_path / "vocoder")


@pytest.fixture
def made(monkeypatch):
    """Files that were written since, by id."""
    written = []

    def write(path, *rest):
        written.append(path.stem)
        return original(path, *rest)

    original = copy_synthesis.write_wav_blocks
    monkeypatch.setattr(copy_synthesis, "write_wav_blocks", write)
    return written


def test_copies_are_what_griffin_lim_makes_of_the_mels_of_recordings(tmp_path):
    copies = resynthesise(ITEMS, griffin_lim(), INPUTS, tmp_path / "copies")

    assert copies == {id: tmp_path / "copies" / f"{id}.wav" for id in "ab"}
    whole = torch.from_numpy(recording(0)[: 20 * 256])[None]
    expected = GriffinLim(MEL, 4).infer(MelSpectrogram(MEL)(whole))[0].numpy()
    sound = read_waveform(copies["a"])
    assert (len(sound.wav), sound.sample_rate) == (20 * 256, MEL.sample_rate)
    assert np.allclose(sound.wav, expected, atol=2 / 32768)


def test_copies_are_what_a_trained_vocoder_makes_of_them(tmp_path, trained):
    vocoder = open_vocoder(trained, MEL)
    copies = resynthesise(ITEMS, vocoder, INPUTS, tmp_path / "copies")

    whole = torch.from_numpy(recording(1)[: 20 * 256])[None]
    network = vocoder.load(SETTINGS, "cpu")
    expected = network.infer(MelSpectrogram(MEL)(whole))[0].numpy()
    assert np.allclose(read_waveform(copies["b"]).wav, expected, atol=2 / 32768)


def test_what_is_there_is_kept(tmp_path, made):
    folder = tmp_path / "copies"
    resynthesise(ITEMS, griffin_lim(), INPUTS, folder)
    first = made.copy()
    (folder / "b.wav").unlink()
    again = resynthesise(ITEMS, griffin_lim(), INPUTS, folder)

    assert first == ["a", "b"]
    assert made == ["a", "b", "b"]
    assert again.keys() == {"a", "b"}


def test_another_recording_is_copied_again_and_the_others_are_kept(tmp_path, made):
    resynthesise(ITEMS, griffin_lim(), INPUTS, tmp_path)
    resynthesise([ITEMS[0], item_of("b", recording(2))], griffin_lim(), INPUTS, tmp_path)

    assert made == ["a", "b", "b"]


def test_another_mel_or_number_of_iterations_makes_all_again(tmp_path, made):
    one = [ITEMS[0]]
    resynthesise(one, griffin_lim(), INPUTS, tmp_path)
    resynthesise(
        one, griffin_lim(), inputs_of(dataclasses.replace(SETTINGS, batch_size=2)), tmp_path
    )
    assert made == ["a"]
    resynthesise(one, griffin_lim(), inputs_of(InferenceConfig(griffin_lim_iterations=5)), tmp_path)
    resynthesise(one, griffin_lim(MelConfig(padding="hifigan")), INPUTS, tmp_path)
    assert made == ["a"] * 3


def test_other_weights_of_the_same_vocoder_make_all_again(tmp_path, trained, made):
    one = [ITEMS[0]]
    resynthesise(one, open_vocoder(trained, MEL), INPUTS, tmp_path / "copies")
    resynthesise(one, open_vocoder(trained, MEL), INPUTS, tmp_path / "copies")
    assert made == ["a"]
    weights = load_file(trained / "model.safetensors")
    weights["conv_pre.bias"] += 1
    save_file(weights, trained / "model.safetensors")
    resynthesise(one, open_vocoder(trained, MEL), INPUTS, tmp_path / "copies")
    assert made == ["a", "a"]


def test_a_copy_that_was_being_replaced_is_made_again(tmp_path, made, monkeypatch):
    """Killed between the file and the note about it, the next run makes it again."""
    one = [ITEMS[0]]
    resynthesise(one, griffin_lim(), INPUTS, tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(copy_synthesis, "write_wav_blocks", lambda *_: sys.exit())
        with pytest.raises(SystemExit):
            resynthesise([item_of("a", recording(7))], griffin_lim(), INPUTS, tmp_path)
    resynthesise(one, griffin_lim(), INPUTS, tmp_path)

    assert made == ["a", "a"]


def test_a_vocoder_that_diverged_is_an_error_that_names_the_utterance(tmp_path, monkeypatch):
    monkeypatch.setattr(
        GriffinLim, "generate", lambda *_, **__: iter([torch.full((1, 9), float("nan"))])
    )
    with pytest.raises(InputError, match=r"a: the vocoder gives values that are not finite"):
        resynthesise(ITEMS, griffin_lim(), INPUTS, tmp_path)


@pytest.mark.parametrize("n_samples", [0, 100, 700])
def test_a_recording_that_is_too_short_for_a_mel_is_named(tmp_path, n_samples):
    with pytest.raises(InputError, match=rf"a has {n_samples} samples, too few .*--copies no"):
        resynthesise([item_of("a", recording(0, n_samples))], griffin_lim(), INPUTS, tmp_path)


def test_a_foreign_list_of_copies_is_refused(tmp_path):
    (tmp_path / "metadata.jsonl").write_text("[]")
    with pytest.raises(InputError, match=r"metadata\.jsonl was not written by stage 3"):
        resynthesise(ITEMS, griffin_lim(), INPUTS, tmp_path)
