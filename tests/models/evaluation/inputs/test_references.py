import dataclasses
import sys

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from config.preprocess import PreprocessConfig
from config.schema import InferenceConfig
from models.evaluation.inputs.evaluation_set import pair_files
from models.evaluation.inputs.options import EvaluationInputs
from models.evaluation.inputs.references import resynthesise
from models.evaluation.inputs.systems import read_system_files
from models.synthesizer.runs import copy_synthesis
from models.synthesizer.vocoders import open_vocoder
from modules.mel import MelConfig, MelSpectrogram
from modules.waveform.griffin_lim import GriffinLim
from preprocessors.manifest import Utterance, write_manifest
from processors.audio.files import write_wav
from processors.audio.frames import from_pcm16
from processors.dataset.store import FEATURES, write_index, write_mel_config
from processors.metrics.utterance_scorer import EvaluatedUtterance, read_waveform
from processors.records import Features
from tests.models import stage_3
from tests.models.stage_3 import RATE, copy_line, make_store, text_line, write_copies, write_results
from tests.models.synthesizer.test_vocoders import make_vocoder
from tests.processors.stores import write_shard
from utils.errors import InputError

MEL = MelConfig()
SETTINGS = InferenceConfig(griffin_lim_iterations=4)


def items(folder, root, **changes):
    inputs = EvaluationInputs((), stage_3.preprocess_of(root), **changes)
    return pair_files({"mine": read_system_files(folder)}, inputs)


def test_a_copy_belongs_to_what_stage_1_stored_and_its_text_to_the_manifest(tmp_path):
    store = make_store(tmp_path)
    found = items(write_copies(tmp_path, store), tmp_path)
    assert [item.id for item in found] == ["rec-008", "rec-009"]
    for item in found:
        assert item.spoken["mine"].file == tmp_path / "out" / f"{item.id}.wav"
        assert item.spoken["mine"].is_copy
        assert np.array_equal(item.recorded(), from_pcm16(store.read(item.id).wav))
        assert (item.text, item.language) == (stage_3.TEXT, "en-us")


def test_a_copy_of_a_file_belongs_to_that_file(tmp_path):
    wav = np.random.default_rng(0).uniform(-0.5, 0.5, 4000)
    write_wav(tmp_path / "mine.wav", wav, RATE)
    write_results(tmp_path / "out", [copy_line("mine", tmp_path / "mine.wav", dataset="")], [wav])
    (item,) = items(tmp_path / "out", tmp_path)
    assert item.recorded() == pytest.approx(wav, abs=1e-4)
    assert (item.text, item.language) == ("", "")
    texts = {"texts": {"mine": "Hi."}, "languages": {"": "en-gb"}}
    (item,) = items(tmp_path / "out", tmp_path, **texts)
    assert (item.text, item.language) == ("Hi.", "en-gb")


def test_a_synthesised_sentence_belongs_to_its_recording_in_the_corpus(tmp_path):
    store = make_store(tmp_path)
    write_results(tmp_path / "out", [text_line("rec-003")], [np.full(9, 0.1)])
    (item,) = items(tmp_path / "out", tmp_path)
    assert np.array_equal(item.recorded(), from_pcm16(store.read("rec-003").wav))
    assert (item.text, item.language) == ("one two, three!", "en-us")


def write_aligned(root, id: str, audio) -> None:
    """An utterance whose phones stage 1 has aligned, from a hundredth of a second on."""
    folder, mel = root / "data" / "Carl", stage_3.preprocess_of(root).mel
    log_mel, durations = np.zeros((mel.n_mels, 5), dtype=np.float32), np.array([1, 3, 1])
    content = ("<sil>", "AY1", "<.>"), durations, log_mel, log_mel[0], log_mel[0]
    features = Features(id, "carl", *content, start=RATE // 100)
    shard = folder / FEATURES / "shard-00000.safetensors"
    write_index(folder, write_shard(shard, [features], mel))
    write_mel_config(folder, mel)
    write_manifest(folder / "manifest.jsonl", [Utterance(id, audio, "I.", "carl")])


def test_phones_of_recordings_are_those_that_stage_1_aligned(tmp_path):
    audio = tmp_path / "corpus" / "c.wav"
    write_wav(audio, np.full(500, 0.1), RATE)
    write_aligned(tmp_path, "c", audio)
    write_results(tmp_path / "out", [text_line("c", dataset="Carl")], [np.full(9, 0.1)])
    (item,) = items(tmp_path / "out", tmp_path)
    assert item.phones() == (
        ("<sil>", pytest.approx(0.01), pytest.approx(0.018)),
        ("AY1", pytest.approx(0.018), pytest.approx(0.042)),
        ("<.>", pytest.approx(0.042), pytest.approx(0.05)),
    )
    (same,) = items(tmp_path / "out", tmp_path, recordings=audio.parent)
    assert same.phones() == item.phones()
    write_wav(tmp_path / "others" / "c.wav", np.full(500, 0.1), RATE)
    (other,) = items(tmp_path / "out", tmp_path, recordings=tmp_path / "others")
    assert other.phones() == ()  # of another recording


def test_recordings_may_lie_in_a_folder_and_have_another_rate(tmp_path):
    wav = np.sin(np.arange(8000) / 20) / 2
    write_wav(tmp_path / "given" / "wavs" / "text-0001.wav", wav, 2 * RATE)
    write_results(tmp_path / "out", [text_line("text-0001", dataset="")], [np.full(9, 0.1)])
    languages = {"anna": "en-gb", "bert": "de"}
    given = tmp_path / "given"
    (item,) = items(tmp_path / "out", tmp_path, recordings=given, languages=languages)
    assert len(item.recorded()) == 4000
    assert item.language == "en-gb"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (copy_line("x", "DATA"), "x: not in .*data/Anna"),
        (copy_line("x", "mels/x.npy", dataset=""), "x: mels/x.npy holds none; give --recordings"),
        (text_line("x"), "x: not in .*data/Anna; give --recordings"),
        (text_line("x", dataset="Bert"), "x: not in .*data/Bert; give --recordings"),
        (text_line("rec-001"), r"rec-001: .*corpus/rec-001\.wav is missing"),
    ],
)
def test_a_missing_recording_is_named(tmp_path, line, message):
    make_store(tmp_path)
    (tmp_path / "corpus" / "rec-001.wav").unlink()
    if getattr(line, "mel_source", "") == "DATA":
        line = copy_line("x", tmp_path / "data" / "Anna")
    write_results(tmp_path / "out", [line], [np.full(9, 0.1)])
    with pytest.raises(InputError, match="1 of 1 files have no recording to be compared with"):
        items(tmp_path / "out", tmp_path)
    with pytest.raises(InputError, match=message):
        items(tmp_path / "out", tmp_path)


def test_no_recording_of_that_name_in_the_folder_is_an_error_that_names_it(tmp_path):
    folder = write_copies(tmp_path, make_store(tmp_path))
    with pytest.raises(InputError, match=r"rec-008: no rec-008\.wav in .*empty or in its wavs"):
        items(folder, tmp_path, recordings=tmp_path / "empty")


def test_a_broken_recording_is_named_when_it_is_read(tmp_path):
    folder = write_copies(tmp_path, make_store(tmp_path))
    for id in ("rec-008", "rec-009"):
        (tmp_path / f"{id}.wav").write_bytes(b"")
    item = items(folder, tmp_path, recordings=tmp_path)[0]
    with pytest.raises(InputError, match=r"rec-008\.wav: the file is empty"):
        item.recorded()


def test_what_stage_3_did_not_write_is_refused(tmp_path):
    path = tmp_path / "metadata.jsonl"
    with pytest.raises(InputError, match=r"metadata\.jsonl is missing: run stage 3"):
        read_system_files(tmp_path)
    path.write_text("")
    with pytest.raises(InputError, match=r"metadata\.jsonl is empty: run stage 3"):
        read_system_files(tmp_path)
    for line in ('{"id": "a"}', '{"mel_source": "b"}', '["a"]'):
        path.write_text(f"{line}\n")
        with pytest.raises(InputError, match=r"metadata\.jsonl: not what .*\); run it again$"):
            read_system_files(tmp_path)
    path.write_text('{"id": "a\n')
    with pytest.raises(InputError, match=r"metadata\.jsonl:1: not JSON.*: run stage 3 again$"):
        read_system_files(tmp_path)


def inputs_of(settings=SETTINGS):
    return EvaluationInputs((), PreprocessConfig(), inference=settings)


INPUTS = inputs_of()


def recording(seed, n_samples=20 * 256 + 100):
    return np.random.default_rng(seed).normal(0, 0.1, n_samples).astype(np.float32)


def item_of(id, wav):
    return EvaluatedUtterance(id, None if wav is None else lambda: wav, "", "", tuple, {})


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
    wav, sample_rate = read_waveform(copies["a"])
    assert (len(wav), sample_rate) == (20 * 256, MEL.sample_rate)
    assert np.allclose(wav, expected, atol=2 / 32768)


def test_copies_are_what_a_trained_vocoder_makes_of_them(tmp_path, trained):
    vocoder = open_vocoder(trained, MEL)
    copies = resynthesise(ITEMS, vocoder, INPUTS, tmp_path / "copies")
    whole = torch.from_numpy(recording(1)[: 20 * 256])[None]
    network = vocoder.load(SETTINGS, "cpu")
    expected = network.infer(MelSpectrogram(MEL)(whole))[0].numpy()
    assert np.allclose(read_waveform(copies["b"])[0], expected, atol=2 / 32768)


def test_what_is_there_is_kept_unless_its_recording_is_another(tmp_path, made):
    folder = tmp_path / "copies"
    resynthesise(ITEMS, griffin_lim(), INPUTS, folder)
    first = made.copy()
    (folder / "b.wav").unlink()
    again = resynthesise(ITEMS, griffin_lim(), INPUTS, folder)
    assert first == ["a", "b"]
    assert made == ["a", "b", "b"]
    assert again.keys() == {"a", "b"}
    resynthesise([ITEMS[0], item_of("b", recording(2))], griffin_lim(), INPUTS, folder)
    assert made == ["a", "b", "b", "b"]  # another recording of b


def test_another_mel_or_number_of_iterations_makes_all_again(tmp_path, made):
    one = [ITEMS[0]]
    resynthesise(one, griffin_lim(), INPUTS, tmp_path)
    other_batches = inputs_of(dataclasses.replace(SETTINGS, batch_size=2))
    resynthesise(one, griffin_lim(), other_batches, tmp_path)
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
    nan = torch.full((1, 9), float("nan"))
    monkeypatch.setattr(GriffinLim, "generate", lambda *_, **__: iter([nan]))
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
