import json
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch

from config.preprocess import PreprocessConfig
from models.synthesizer.runs.mel_sources import (
    files_of,
    read_mel,
    sources_of_audio,
    sources_of_features,
    sources_of_split,
)
from modules.mel import MelConfig, MelSpectrogram
from preprocessors.manifest import Utterance, write_manifest
from processors.audio.frames import from_pcm16
from tests.processors.mel_wavs import MEL, make_mel_wav_store
from utils.errors import InputError

RATE = 22050
CONFIG = PreprocessConfig(mel_padding="hifigan", min_seconds=5.0, max_seconds=6.0)


def tone(seconds: float, rate: int = RATE) -> np.ndarray:
    return 0.3 * np.sin(2 * np.pi * 220 * np.arange(round(seconds * rate)) / rate)


def log_mel(n_frames: int = 7) -> np.ndarray:
    generator = np.random.default_rng(0)
    return generator.uniform(-11, 1, (MEL.n_mels, n_frames)).astype(np.float32)


def save(path: Path, array: object) -> Path:
    np.save(path, array, allow_pickle=True)
    return path


def test_a_split_gives_its_recordings_with_the_mels_of_stage_1(tmp_path):
    store = make_mel_wav_store(tmp_path / "Anna")
    utterances = [Utterance(id, Path(f"{id}.wav"), "", "anna") for id in store.ids]
    write_manifest(tmp_path / "Anna" / "manifest.jsonl", utterances)
    sources = sources_of_split(tmp_path, "Anna", "test", MEL)
    assert [(source.id, source.dataset, source.path) for source in sources] == [
        ("rec-008", "Anna", tmp_path / "Anna"),
        ("rec-009", "Anna", tmp_path / "Anna"),
    ]
    content, stored = sources[0].load(), store.read("rec-008")
    assert np.array_equal(content.mel, stored.mel)
    assert np.array_equal(content.wav, from_pcm16(stored.wav))


def test_a_split_with_another_mel_is_refused(tmp_path):
    store = make_mel_wav_store(tmp_path / "Anna")
    utterances = [Utterance(id, Path(f"{id}.wav"), "", "anna") for id in store.ids]
    write_manifest(tmp_path / "Anna" / "manifest.jsonl", utterances)
    with pytest.raises(InputError, match=r"another mel definition: f_max 4000.* and 8000\.0,"):
        sources_of_split(tmp_path, "Anna", "test", MelConfig())


def test_audio_of_any_length_gives_whole_frames_and_their_mel(tmp_path):
    soundfile.write(tmp_path / "a.wav", tone(0.1), RATE)
    (source,) = sources_of_audio(tmp_path / "a.wav", CONFIG)
    content = source.load()
    assert (source.id, source.dataset, source.path) == ("a", "", tmp_path / "a.wav")
    assert content.wav.shape == (2205 // 256 * 256,)
    expected = MelSpectrogram(CONFIG.mel)(torch.from_numpy(content.wav)[None])[0].numpy()
    assert np.abs(content.mel - expected).max() < 1e-5


def test_audio_of_another_rate_is_resampled_and_that_is_said(tmp_path, caplog):
    soundfile.write(tmp_path / "a.flac", tone(1.0, 16000), 16000)
    (source,) = sources_of_audio(tmp_path, CONFIG)
    with caplog.at_level("INFO", "arion"):
        assert source.load().wav.shape == (RATE // 256 * 256,)
    assert "a.flac: resampled from 16000 to 22050 Hz; nothing above 8000 Hz" in caplog.text


def test_audio_that_cannot_be_used_says_why(tmp_path):
    soundfile.write(tmp_path / "a.wav", np.zeros(RATE), RATE)
    (source,) = sources_of_audio(tmp_path, CONFIG)
    with pytest.raises(InputError, match=r"a\.wav: the recording is silent"):
        source.load()


def test_files_of_a_folder_are_sorted_and_others_left_alone(tmp_path):
    for name in ("b.wav", "a.FLAC", ".hidden.wav", "notes.txt"):
        (tmp_path / name).touch()
    (tmp_path / "more.wav").mkdir()
    found = files_of(tmp_path, (".wav", ".flac"))
    assert [path.name for path in found] == ["a.FLAC", "b.wav"]


def test_two_files_that_would_become_one_are_named(tmp_path):
    for name in ("a.wav", "a.flac"):
        (tmp_path / name).touch()
    with pytest.raises(InputError, match=r"a\.flac and .*a\.wav would become the same file"):
        files_of(tmp_path, (".wav", ".flac"))


def test_a_folder_without_such_files_and_a_missing_one_are_errors(tmp_path):
    with pytest.raises(InputError, match=r"no file in it ends in \.wav, \.flac"):
        files_of(tmp_path, (".wav", ".flac"))
    with pytest.raises(InputError, match="none: no such file or folder"):
        files_of(tmp_path / "none", (".wav",))


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_a_mel_in_a_file_is_read_in_any_float(tmp_path, kind):
    mel = log_mel().astype(kind)
    save(tmp_path / "x.npy", mel)
    (source,) = sources_of_features(tmp_path, MEL)
    content = source.load()
    assert source.id == "x"
    assert content.mel.dtype == np.float32
    assert np.array_equal(content.mel, mel.astype(np.float32))
    assert content.wav is None


def test_a_mel_that_lies_turned_in_memory_is_read_as_it_is_meant(tmp_path):
    path = save(tmp_path / "x.npy", np.asfortranarray(log_mel()))
    assert np.array_equal(read_mel(path, MEL).mel, log_mel())


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (log_mel().T, r"the shape is \(7, 8\), expected \(M, T\) with M 8; transpose it"),
        (log_mel()[:5], r"the shape is \(5, 7\), expected \(M, T\) with M 8$"),
        (log_mel()[None], r"the shape is \(1, 8, 7\)"),
        (log_mel()[:, :0], r"the shape is \(8, 0\)"),
        (log_mel().astype(np.int64), "expected an array of floats"),
        (np.where(log_mel() < -9, np.nan, log_mel()), "holds NaN or infinity"),
        (np.where(log_mel() < -9, -np.inf, log_mel()), "holds NaN or infinity"),
        (log_mel() * 20 / np.log(10), "no decibels, no linear or normalised"),
        (np.exp(log_mel()), "values from .*; expected the natural log"),
        (log_mel() + 5, "expected the natural log of magnitudes"),
    ],
)
def test_what_is_no_natural_log_mel_is_refused_with_the_reason(tmp_path, array, message):
    path = save(tmp_path / "x.npy", array)
    with pytest.raises(InputError, match=rf"x\.npy: .*{message}"):
        read_mel(path, MEL)


class Evil:
    """Writes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return (Path.touch, (self.path,))


def test_a_pickled_object_is_refused_and_not_run(tmp_path):
    path = save(tmp_path / "x.npy", np.array([Evil(tmp_path / "evil")], dtype=object))
    with pytest.raises(InputError, match=r"x\.npy: not an array of numbers.*make the file again$"):
        read_mel(path, MEL)
    assert not (tmp_path / "evil").exists()


def with_header(text: str) -> bytes:
    """A file of np.save that says so of itself, and holds 100 bytes."""
    line = text.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(line).to_bytes(2, "little") + line + bytes(100)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"RIFF1234",
        json.dumps([1]).encode(),
        b"PK\x03\x04 of an archive",
        with_header("{'descr': '<f4', 'fortran_order': False, 'shape': (8, 1000000000000000)}"),
        with_header("{'descr': '<f4', 'fortran_order': False, 'shape': (8, 1" + 30 * "0" + ")}"),
        with_header("{'descr': "),
        with_header("{[]: 1}"),
    ],
)
def test_a_file_that_is_no_array_is_refused(tmp_path, content):
    (tmp_path / "x.npy").write_bytes(content)
    with pytest.raises(InputError, match=r"x\.npy: not an array of numbers"):
        read_mel(tmp_path / "x.npy", MEL)
