import json
from functools import partial

import librosa
import numpy as np
import pytest
import soundfile

from config.preprocess import PreprocessConfig
from config.text import TextConfig
from modules.mel import MelSpectrogram
from processors.tensorflowtts import layout
from processors.tensorflowtts.exporting import analyse, capped, mean_and_scale, split_of, trim
from tests.processors.small_corpus import DEMO, copy_corpus
from tests.processors.tensorflowtts.dumps import IDS, export, hashes
from utils.errors import InputError

CONFIG = PreprocessConfig(f_min=80.0, f_max=7600.0, log_floor=1e-10)


@pytest.mark.parametrize(
    ("n_cpus", "backend"),
    [(1, "sequential"), pytest.param(4, "loky", marks=[pytest.mark.slow, pytest.mark.processes])],
)
def test_the_same_bytes_come_again_from_any_number_of_processes(
    corpus, original, tmp_path, monkeypatch, n_cpus, backend
):
    monkeypatch.setattr("processors.tensorflowtts.exporting._CHUNK", 2)
    again = export(corpus, tmp_path / "again", n_cpus, backend=backend)
    assert hashes(again) == hashes(original)


def test_a_dump_has_the_files_of_the_layout(original):
    train, valid = (np.load(original / f"{split}_utt_ids.npy").tolist() for split in layout.SPLITS)
    assert (len(train), len(valid)) == (3, 2)
    assert sorted(train + valid) == IDS
    ends = ("ids/{}-ids", "raw-feats/{}-raw-feats", "norm-feats/{}-norm-feats", "raw-f0/{}-raw-f0")
    ends += ("raw-energies/{}-raw-energy", "wavs/{}-wave")
    files = {f"train/{end.format(id)}.npy" for id in train for end in ends}
    files |= {f"valid/{end.format(id)}.npy" for id in valid for end in ends}
    files |= {"vocab.txt", "ljspeech_mapper.json", "length.json", "audio.json", "stats.npy"}
    files |= {"stats_f0.npy", "stats_energy.npy", "train_utt_ids.npy", "valid_utt_ids.npy"}
    assert set(hashes(original)) == files


def test_arrays_have_the_types_and_sizes_of_the_layout(original):
    split = "valid" if "LJ001-0002" in np.load(original / "valid_utt_ids.npy") else "train"
    files = (layout.IDS, layout.RAW_MEL, layout.NORM_MEL, layout.F0, layout.ENERGY, layout.WAV)
    arrays = (np.load(file.path(original, split, "LJ001-0002")) for file in files)
    ids, raw, norm, f0, energy, wav = arrays
    T = len(raw)
    assert (ids.dtype, raw.dtype, norm.dtype, f0.dtype) == ("i4", "f4", "f4", "f4")
    assert raw.shape == norm.shape == (T, 80)
    assert f0.shape == energy.shape == (T,)
    assert (wav.dtype, wav.shape) == ("f4", (T * 256,))
    mean, scale = np.load(original / "stats.npy")
    np.testing.assert_allclose(norm * scale + mean, raw, atol=1e-5)
    symbols = (original / "vocab.txt").read_text().split("\n")[:-1]
    text = "in being comparatively modern."
    assert [symbols[id] for id in ids] == [*text, "eos"]


def test_symbols_are_the_149_of_ljspeech(original):
    symbols = (original / "vocab.txt").read_text().split("\n")[:-1]
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    assert symbols[:64] == ["pad", *"-!'(),.:;? ", *letters]
    assert (symbols[64], symbols[-2:], len(symbols)) == ("@AA", ["@ZH", "eos"], 149)
    mapper = json.loads((original / "ljspeech_mapper.json").read_text())
    assert mapper["symbol_to_id"]["a"] == symbols.index("a")
    assert mapper["id_to_symbol"]["148"] == "eos"
    lengths = json.loads((original / "length.json").read_text())
    assert lengths["vocab_size"] == 149


def test_statistics_are_of_the_nonzero_frames_of_train(original):
    train = np.load(original / "train_utt_ids.npy")
    for name, file in (("stats_f0", layout.F0), ("stats_energy", layout.ENERGY)):
        values = np.concatenate([np.load(file.path(original, "train", id)) for id in train])
        values = values[values != 0].astype("f8")
        expected = [[values.mean()], [values.std()]]
        np.testing.assert_allclose(np.load(original / f"{name}.npy"), expected, rtol=1e-5)
    mels = np.concatenate([np.load(layout.RAW_MEL.path(original, "train", id)) for id in train])
    expected = [mels.mean(axis=0, dtype="f8"), mels.std(axis=0, dtype="f8")]
    np.testing.assert_allclose(np.load(original / "stats.npy"), expected, rtol=1e-5)
    of_no_values = mean_and_scale(partial(iter, [np.zeros((0, 1))]))
    assert of_no_values.tolist() == [[0.0], [1.0]]


def test_the_split_is_that_of_scikit_learn():
    # train_test_split([...], test_size=0.3, random_state=42, shuffle=True) of ten items
    split = split_of(list("0123456789"), 0.3, 42)
    assert [id for id, name in split.items() if name == "valid"] == ["8", "1", "5"]
    assert [id for id, name in split.items() if name == "train"] == list("0729436")
    with pytest.raises(InputError, match=r"--test_size 0.9 puts 1 of 1 utterances into valid"):
        split_of(["a"], 0.9, 1)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"f_min": 0.0}, "not that of the dump: f_min 0.0 and 80.0"),
        ({"aligner": "imported", "pitch_extractor": "imported"}, "a dump has that of the record"),
        ({"text": TextConfig()}, "phone_extractor lexicon .* a dump tensorflowtts_english and 0"),
    ],
)
def test_another_mel_other_symbols_and_imported_pitch_are_refused(corpus, tmp_path, keys, message):
    with pytest.raises(InputError, match=message):
        export(corpus, tmp_path / "dump", **keys)
    assert not (tmp_path / "dump").exists()


def test_a_damaged_recording_is_left_out_and_named(tmp_path, caplog):
    corpus = copy_corpus(tmp_path / "LJSpeech", IDS)
    (corpus / "wavs/LJ001-0008.flac").write_bytes(b"nothing")
    dump = export(corpus, tmp_path / "dump")
    exported = [id for split in layout.SPLITS for id in np.load(layout.ids_file(dump, split))]
    assert sorted(exported) == [id for id in IDS if id != "LJ001-0008"]
    assert "LJ001-0008: LJ001-0008.flac: not readable as audio" in caplog.text


@pytest.mark.parametrize("n_samples", [20000, 20224, 20479])
def test_mel_energy_and_wave_are_those_of_librosa(n_samples):
    recording, rate = soundfile.read(DEMO / "wavs/LJ001-0002.flac", dtype="float32")
    wav = recording[:n_samples]
    spectrogram = MelSpectrogram(layout.DEFINITION)
    mel, f0, stored_energy, stored_wav = analyse(wav, spectrogram, CONFIG).values()
    magnitude = np.abs(librosa.stft(wav, n_fft=1024, hop_length=256, pad_mode="reflect"))
    filters = librosa.filters.mel(sr=rate, n_fft=1024, n_mels=80, fmin=80, fmax=7600)
    expected = np.log10(np.maximum(filters @ magnitude, 1e-10)).T
    assert CONFIG.mel == layout.DEFINITION
    assert mel.shape == (1 + n_samples // 256, 80)
    np.testing.assert_allclose(mel, expected, atol=1e-3)
    energy = np.sqrt((magnitude**2).sum(axis=0))
    np.testing.assert_allclose(stored_energy, capped(energy), rtol=1e-3)
    padded = np.pad(wav, (0, 1024), mode="edge")[: len(mel) * 256]
    assert np.array_equal(stored_wav, padded)
    assert f0.shape == stored_energy.shape == (len(mel),)


def test_silence_at_the_edges_is_cut():
    tone = np.sin(np.arange(22050) / 10).astype(np.float32)
    quiet = 1e-5 * np.ones(22050, dtype=np.float32)
    trimmed = trim(np.concatenate([quiet, tone, quiet]))
    assert 22050 <= len(trimmed) < 22050 + 4 * 2048


def test_outliers_take_the_largest_of_the_other_values():
    values = np.array([10.0, 11, 12, 13, 14, 15, 100, -80])
    assert capped(values).tolist() == [10, 11, 12, 13, 14, 15, 15, 15]


def test_the_change_of_logarithm_is_undone():
    mel = np.random.default_rng(0).normal(-5, 2, (80, 30)).astype(np.float32)
    np.testing.assert_allclose(layout.to_nats(layout.to_log10(mel)), mel, rtol=3e-7)
    assert layout.to_log10(mel).shape == (30, 80)
