import json
import math
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch
from safetensors.torch import load_file, save_file

from config.preprocess import PreprocessConfig
from models.synthesizer.runs import copy_synthesis as copies
from modules.mel import MelConfig, MelSpectrogram
from processors.audio.files import write_wav
from processors.audio.frames import from_pcm16
from tests.models.checkpoint.importers import hifigan_originals
from tests.models.checkpoint.importers.reading import Command
from tests.models.stage_3 import make_store, preprocess_of
from tests.models.synthesizer.runs.test_text_synthesis import lines_of
from tests.models.synthesizer.test_vocoders import make_vocoder as write_vocoder
from tests.processors.mel_wavs import MEL
from utils.errors import InputError


class Echo:
    """Gives the recordings of a store back, by their length and at a level, in pieces."""

    def __init__(self, store, level: float = 1.0) -> None:
        recordings = [store.read(id) for id in store.ids]
        self.wavs = {r.mel.shape[1]: level * from_pcm16(r.wav) for r in recordings}

    def generate(self, mel, chunk_frames=None, *, seed=0):
        assert mel.shape[:2] == (1, MEL.n_mels)
        wav = torch.from_numpy(self.wavs[mel.shape[2]])[None]
        yield from wav.split((chunk_frames or 7) * MEL.hop_length, dim=1)


class Constant:
    """Gives one value."""

    def __init__(self, value: float) -> None:
        self.value = value

    def generate(self, mel, chunk_frames=None, *, seed=0):
        yield torch.zeros(1, MEL.hop_length)
        yield torch.full((1, (mel.shape[2] - 1) * MEL.hop_length), self.value)


def synthesise_audio(vocoder, path):
    copies.synthesise_files(vocoder, copies.sources_of_audio(path, vocoder.preprocess))


def synthesise_features(vocoder, path):
    copies.synthesise_files(vocoder, copies.sources_of_features(path, vocoder.mel))


def make_vocoder(tmp_path: Path, network) -> copies.CopySynthesis:
    of_vocoder = network, MEL, preprocess_of(tmp_path), "a vocoder"
    return copies.CopySynthesis(*of_vocoder, tmp_path / "out", "cpu", "weights")


@pytest.fixture
def store(tmp_path):
    """The dataset Anna, prepared."""
    return make_store(tmp_path)


def test_a_split_becomes_files_named_by_id_and_a_record_of_what_was_made_from_what(tmp_path, store):
    copies.synthesise_split(make_vocoder(tmp_path, Echo(store)), "Anna", "test")
    folder = tmp_path / "out"
    names = sorted(path.name for path in folder.iterdir())
    assert names == [".lock", "metadata.jsonl", "rec-008.wav", "rec-009.wav"]
    wav, rate = soundfile.read(folder / "rec-008.wav", dtype="int16")
    assert rate == 8000
    assert np.array_equal(wav, store.read("rec-008").wav)
    line = lines_of(folder)[0]
    assert line.pop("real_time_factor") > 0
    assert len(line.pop("fingerprint")) == 32
    assert line == {
        "id": "rec-008",
        "file": "rec-008.wav",
        "dataset": "Anna",
        "mel_source": str(tmp_path / "data" / "Anna"),
        "vocoder": "a vocoder",
        "seconds": 48 * 64 / 8000,
        "mel_l1": 0.0,
        "n_bytes": 44 + 2 * 48 * 64,
    }


def test_a_split_that_was_spoken_is_skipped_unless_the_model_changed(tmp_path, store, caplog):
    vocoder = make_vocoder(tmp_path, Echo(store))
    copies.synthesise_split(vocoder, "Anna", "test")
    (tmp_path / "data" / "Bert").symlink_to(tmp_path / "data" / "Anna")
    with pytest.raises(InputError, match="choose another --infer_output_dir"):
        copies.synthesise_split(vocoder, "Bert", "test")  # of the same ids
    quiet = make_vocoder(tmp_path, Echo(store, 0.5))
    with caplog.at_level("INFO", "arion"):
        copies.synthesise_split(quiet, "Anna", "test")
        assert "skipped 2 of 2 mels" in caplog.text
        assert "mel L1 to the recordings: 0.0000" in caplog.text
        copies.synthesise_split(quiet._replace(fingerprint="other weights"), "Anna", "test")
    for line in lines_of(tmp_path / "out"):
        assert line["mel_l1"] == pytest.approx(math.log(2), abs=1e-3)  # of half the level
    assert "mel L1 to the recordings: 0.693" in caplog.text


def test_loud_speech_is_scaled_down_and_logged(tmp_path, store, caplog):
    level = 4.0 / np.abs(from_pcm16(store.read("rec-008").wav)).max()
    with caplog.at_level("INFO", "arion"):
        copies.synthesise_split(make_vocoder(tmp_path, Echo(store, level)), "Anna", "test")
    wav, _ = soundfile.read(tmp_path / "out" / "rec-008.wav")
    expected = from_pcm16(store.read("rec-008").wav) * level * 0.99 / 4
    assert wav == pytest.approx(expected, abs=1e-4)
    assert "peak 4.00: scaled down by 12.1 dB" in caplog.text


def test_the_distance_of_pieces_is_that_of_the_whole(tmp_path, store, monkeypatch):
    wav = from_pcm16(store.read("rec-009").wav)
    noise = np.random.default_rng(0).normal(scale=0.02, size=len(wav))
    write_wav(tmp_path / "a.wav", wav + noise, 8000)
    whole = copies.mel_distance(tmp_path / "a.wav", wav, MelSpectrogram(MEL))
    monkeypatch.setattr("processors.metrics.families.copies._PIECE_FRAMES", 32)
    parts = copies.mel_distance(tmp_path / "a.wav", wav, MelSpectrogram(MEL))
    assert parts == pytest.approx(whole, rel=0.05)
    assert whole > 0.1


def test_audio_files_become_files_of_their_names_and_are_never_overwritten(tmp_path, store):
    vocoder = make_vocoder(tmp_path, Echo(store))
    for clips in (tmp_path / "my clips", tmp_path / "out" / "single"):
        for id in store.ids[4:6]:
            write_wav(clips / f"{id}.wav", from_pcm16(store.read(id).wav), 8000)
        if clips.name == "my clips":
            synthesise_audio(vocoder, clips)
    lines = lines_of(tmp_path / "out" / "single")
    found = [(x["id"], x["dataset"], x["mel_source"], x["mel_l1"]) for x in lines]
    assert found == [(id, "", f"{tmp_path}/my clips/{id}.wav", 0.0) for id in store.ids[4:6]]
    before = (clips / "rec-004.wav").read_bytes()
    with pytest.raises(InputError, match=r"rec-004\.wav would be overwritten; choose another"):
        synthesise_audio(vocoder, clips)
    assert (clips / "rec-004.wav").read_bytes() == before


def test_a_bad_clip_is_listed_and_the_others_are_spoken(tmp_path, store):
    clips = tmp_path / "clips"
    write_wav(clips / "good.wav", from_pcm16(store.read("rec-004").wav), 8000)
    (clips / "bad.wav").write_bytes(b"")
    with pytest.raises(InputError, match=r"1 of 2 mels .*\n  bad: bad\.wav: the file is empty"):
        synthesise_audio(make_vocoder(tmp_path, Echo(store)), clips)
    assert [line["id"] for line in lines_of(tmp_path / "out" / "single")] == ["good"]


def test_values_that_are_not_finite_leave_no_file(tmp_path, store):
    with pytest.raises(InputError, match="gives values that are not finite"):
        copies.synthesise_split(make_vocoder(tmp_path, Constant(math.nan)), "Anna", "test")
    assert list((tmp_path / "out").glob("*.wav")) == []


def test_wavs_say_that_they_are_synthetic_and_are_made_anew_without_that(tmp_path, store):
    vocoder, path = make_vocoder(tmp_path, Echo(store)), tmp_path / "out" / "rec-008.wav"
    for tag in ("Synthetic speech; model: a vocoder", ""):
        copies.synthesise_split(vocoder._replace(tag=tag), "Anna", "test")
        assert soundfile.SoundFile(path).comment == tag
        assert np.array_equal(soundfile.read(path, dtype="int16")[0], store.read("rec-008").wav)


class Noise:
    """Gives noise of a seed."""

    def generate(self, mel, chunk_frames=None, *, seed=0):
        generator = torch.Generator().manual_seed(seed)
        yield 0.1 * torch.randn(1, mel.shape[2] * MEL.hop_length, generator=generator)


def test_another_seed_is_another_speech(tmp_path, store, caplog):
    vocoder = make_vocoder(tmp_path, Noise())
    wavs = []
    for seed in (0, 1, 1):
        with caplog.at_level("INFO", "arion"):
            copies.synthesise_split(vocoder._replace(seed=seed), "Anna", "test")
        wavs.append((tmp_path / "out" / "rec-008.wav").read_bytes())
    assert wavs[0] != wavs[1] == wavs[2]
    assert "skipped 2 of 2 mels" in caplog.text


def test_a_mel_in_a_file_has_no_distance_and_is_spoken_again_if_changed(tmp_path, store, caplog):
    path = tmp_path / "a mel.npy"
    for id in ("rec-008", "rec-009"):
        mel = store.read(id).mel
        np.save(path, mel)
        with caplog.at_level("INFO", "arion"):
            synthesise_features(make_vocoder(tmp_path, Echo(store)), path)
        (line,) = lines_of(tmp_path / "out" / "single")
        assert (line["id"], line["file"], line["mel_l1"]) == ("a mel", "a mel.wav", None)
        assert line["seconds"] == pytest.approx(mel.shape[1] * 64 / 8000, abs=1e-4)
    assert "mel L1" not in caplog.text


@pytest.fixture
def experiment(tmp_path) -> Path:
    return write_vocoder(tmp_path / "ckpts" / "a", MEL, rates=(8, 8))


def test_the_fingerprint_is_that_of_weights_and_settings(experiment):
    def digest(*overrides):
        return copies.load_copy_synthesis(experiment, None, overrides).fingerprint

    whole = digest()
    assert digest() == whole
    assert digest("inference.vocoder_precision=bf16") != whole
    weights = load_file(experiment / "model.safetensors")
    next(iter(weights.values())).mul_(1.001)
    save_file(weights, experiment / "model.safetensors")
    assert digest() != whole


def test_a_vocoder_is_loaded_with_its_own_configuration(experiment):
    vocoder = copies.load_copy_synthesis(experiment, None, ["preprocess.processed_dir=elsewhere"])
    assert (vocoder.mel, vocoder.output) == (MEL, experiment / "result")
    assert vocoder.preprocess.processed_dir == "elsewhere"
    assert torch.cat([*vocoder.network.generate(torch.zeros(1, 8, 5))], dim=1).shape == (1, 320)
    assert f"model: {experiment.name}; licence of the voice: unknown" in vocoder.tag
    rounded = copies.load_copy_synthesis(experiment, None, ["inference.vocoder_precision=bf16"])
    assert {parameter.dtype for parameter in rounded.network.ups.parameters()} == {torch.bfloat16}
    for model, overrides, message in (
        (
            experiment,
            ["preprocess.f_max=3000"],
            r"--set changes the mel .*: f_max 4000.* and 3000\.0;",
        ),
        (experiment, ["inference.vocoder_options.sigma=0.6"], "has no option sigma"),
        ("egs/_voices/kathleen", [], "egs/_voices/kathleen is an acoustic model; expected a voc"),
    ):
        with pytest.raises(InputError, match=message):
            copies.load_copy_synthesis(model, None, overrides)


def test_a_checkpoint_of_the_authors_speaks_and_its_speech_lies_beside_it(tmp_path):
    weights = hifigan_originals.random_generator()
    hifigan_originals.write_authors(tmp_path / "theirs", weights)
    vocoder = copies.load_copy_synthesis(tmp_path / "theirs", None, [])
    soundfile.write(tmp_path / "a.wav", 0.1 * np.sin(np.arange(9000)), vocoder.mel.sample_rate)
    synthesise_audio(vocoder, tmp_path / "a.wav")
    (line,) = lines_of(tmp_path / "theirs" / "result" / "single")
    hop = vocoder.mel.hop_length
    assert line["seconds"] == pytest.approx(9000 // hop * hop / vocoder.mel.sample_rate, abs=1e-4)


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


def test_a_split_gives_its_recordings_with_the_mels_of_stage_1(tmp_path, store):
    sources = copies.sources_of_split(tmp_path / "data", "Anna", "test", MEL)
    assert [(source.id, source.dataset, source.path) for source in sources] == [
        ("rec-008", "Anna", store.folder),
        ("rec-009", "Anna", store.folder),
    ]
    (found_mel, wav), stored = sources[0].load(), store.read("rec-008")
    assert np.array_equal(found_mel, stored.mel)
    assert np.array_equal(wav, from_pcm16(stored.wav))
    with pytest.raises(InputError, match=r"another mel definition: f_max 4000.* and 8000\.0,"):
        copies.sources_of_split(tmp_path / "data", "Anna", "test", MelConfig())


def test_audio_of_any_length_and_rate_gives_whole_frames_and_their_mel(tmp_path, caplog):
    soundfile.write(tmp_path / "a.wav", tone(0.1), RATE)
    soundfile.write(tmp_path / "b.flac", tone(1.0, 16000), 16000)
    soundfile.write(tmp_path / "c.wav", np.zeros(RATE), RATE)
    source, other, silent = copies.sources_of_audio(tmp_path, CONFIG)
    found_mel, wav = source.load()
    assert (source.id, source.dataset, source.path) == ("a", "", tmp_path / "a.wav")
    assert wav.shape == (2205 // 256 * 256,)
    expected = MelSpectrogram(CONFIG.mel)(torch.from_numpy(wav)[None])[0].numpy()
    assert np.abs(found_mel - expected).max() < 1e-5
    with caplog.at_level("INFO", "arion"):
        assert other.load()[1].shape == (RATE // 256 * 256,)
    assert "b.flac: resampled from 16000 to 22050 Hz; nothing above 8000 Hz" in caplog.text
    with pytest.raises(InputError, match=r"c\.wav: the recording is silent"):
        silent.load()


def test_files_of_a_folder_are_sorted_and_others_left_alone(tmp_path):
    suffixes = ".wav", ".flac"
    with pytest.raises(InputError, match=r"no file in it ends in \.wav, \.flac"):
        copies.files_of(tmp_path, suffixes)
    with pytest.raises(InputError, match="none: no such file or folder"):
        copies.files_of(tmp_path / "none", suffixes)
    for name in ("b.wav", "a.FLAC", ".hidden.wav", "notes.txt"):
        (tmp_path / name).touch()
    (tmp_path / "more.wav").mkdir()
    assert [path.name for path in copies.files_of(tmp_path, suffixes)] == ["a.FLAC", "b.wav"]
    (tmp_path / "b.flac").touch()
    with pytest.raises(InputError, match=r"b\.flac and .*b\.wav would become the same file"):
        copies.files_of(tmp_path, suffixes)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])  # in memory
def test_a_mel_in_a_file_is_read_in_any_float_and_order(tmp_path, kind, order):
    mel = log_mel().astype(kind, order)
    save(tmp_path / "x.npy", mel)
    (source,) = copies.sources_of_features(tmp_path, MEL)
    found_mel, wav = source.load()
    assert source.id == "x"
    assert found_mel.dtype == np.float32
    assert np.array_equal(found_mel, mel.astype(np.float32))
    assert wav is None


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
        ((log_mel() - log_mel().mean()) / log_mel().std(), r"its mean is -?0\.00, .*tion 1\.00"),
    ],
)
def test_what_is_no_natural_log_mel_is_refused_with_the_reason(tmp_path, array, message):
    path = save(tmp_path / "x.npy", array)
    with pytest.raises(InputError, match=rf"x\.npy: .*{message}"):
        copies.read_mel(path, MEL)


def test_a_pickled_object_is_refused_and_not_run(tmp_path):
    path = save(tmp_path / "x.npy", np.array([Command(tmp_path / "evil")], dtype=object))
    with pytest.raises(InputError, match=r"x\.npy: not an array of numbers.*make the file again$"):
        copies.read_mel(path, MEL)
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
        copies.read_mel(tmp_path / "x.npy", MEL)
