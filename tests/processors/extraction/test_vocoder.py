"""Stage 1 of vocoders: recordings and their mels, with nothing of text."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch

from config.preprocess import CorpusConfig, SplitConfig
from config.schema import Config
from modules.mel import MelConfig, MelSpectrogram
from preprocessors.manifest import read_splits
from processors.audio.pcm import from_pcm16
from processors.dataset.store import FeatureStore, MelWavStore
from tests.processors.small_corpus import (
    DEMO,
    IDS,
    config_of,
    copy_corpus,
    prepare_dataset,
    texts,
    write_texts,
)
from tests.processors.stores import damaged_ids
from utils.errors import InputError
from utils.files import read_json, read_jsonl


def vocoder_config(root: Path, processed: Path, **keys: object) -> Config:
    return replace(config_of(root, processed, **keys), task="vocoder")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    return copy_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def prepared(corpus, tmp_path_factory) -> Path:
    processed = tmp_path_factory.mktemp("prepared")
    prepare_dataset(vocoder_config(corpus, processed), "LJSpeech", 1)
    return processed / "LJSpeech"


def test_recordings_are_stored_whole_with_their_mel(prepared):
    store = MelWavStore(prepared, MelConfig())
    assert list(store.ids) == IDS
    assert damaged_ids(store) == []
    for id in IDS:
        samples, _ = soundfile.read(DEMO / f"wavs/{id}.flac", dtype="int16")
        recording = store.read(id)
        T = len(samples) // 256
        assert recording.mel.shape == (80, T) == (80, store.frames[store.index_of(id)])
        np.testing.assert_array_equal(recording.wav, samples[: T * 256])
        wav = torch.from_numpy(from_pcm16(recording.wav))[None]
        mel = MelSpectrogram(MelConfig())(wav)[0].numpy()
        np.testing.assert_allclose(recording.mel, mel, atol=1e-4)


def test_the_dataset_folder_has_splits_and_nothing_of_text(prepared):
    assert read_splits(prepared).test == ["LJ002-0035"]
    assert read_json(prepared / "speakers.json") == [{"name": "LJSpeech", "language": "en-us"}]
    report = read_json(prepared / "report.json")
    assert (report["utterances"], report["rejected"]) == (9, {})
    assert set(report["cpu_seconds"]) == {"audio", "mel", "store"}
    assert not {"phones.json", "oov.txt", "stats.json"} & {path.name for path in prepared.iterdir()}


def test_a_part_of_a_recording_is_read_alone(prepared):
    store = MelWavStore(prepared)
    whole, part = store.read("LJ001-0002"), store.read("LJ001-0002", first=7, n_frames=30)
    np.testing.assert_array_equal(part.mel, whole.mel[:, 7:37])
    np.testing.assert_array_equal(part.wav, whole.wav[7 * 256 : 37 * 256])
    assert part.start == 7 * 256
    T = whole.mel.shape[1]
    assert store.read("LJ001-0002", first=T - 3, n_frames=30).mel.shape == (80, 3)


def test_a_store_is_not_taken_for_one_of_the_other_kind(corpus, prepared, tmp_path):
    with pytest.raises(InputError, match="holds recordings for vocoders, and no phones"):
        FeatureStore(prepared)
    prepare_dataset(config_of(corpus, tmp_path), "LJSpeech", 1)
    with pytest.raises(InputError, match="holds features for acoustic models, and no audio"):
        MelWavStore(tmp_path / "LJSpeech")


def test_features_are_not_overwritten_by_recordings(corpus, prepared, tmp_path):
    prepare_dataset(config_of(corpus, tmp_path), "LJSpeech", 1)
    with pytest.raises(InputError, match="data of a tts experiment; set"):
        prepare_dataset(vocoder_config(corpus, tmp_path), "LJSpeech", 1)
    assert len(FeatureStore(tmp_path / "LJSpeech")) == 9
    with pytest.raises(InputError, match="data of a vocoder experiment"):
        prepare_dataset(config_of(corpus, prepared.parent), "LJSpeech", 1)


def test_half_made_features_are_not_overwritten_either(corpus, tmp_path, monkeypatch):
    def interrupt(*arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("processors.extraction.run.write_index", interrupt)
        with pytest.raises(KeyboardInterrupt):
            prepare_dataset(config_of(corpus, tmp_path), "LJSpeech", 1)
    with pytest.raises(InputError, match="data of a tts experiment; set"):
        prepare_dataset(vocoder_config(corpus, tmp_path), "LJSpeech", 1)
    assert prepare_dataset(config_of(corpus, tmp_path), "LJSpeech", 1).n_extracted == 0


@pytest.mark.parametrize(
    "keys",
    [
        {"aligner": "pocketsphinx"},
        {"f0_min": 80.0},
        {"edge_silence_s": 0.2},
        {"pitch_remove_outlier": False},
        {"pitch_extractor": "pyworld"},
    ],
    ids=lambda keys: next(iter(keys)),
)
def test_keys_of_text_alignment_and_pitch_change_nothing(keys, corpus, prepared):
    assert prepare_dataset(vocoder_config(corpus, prepared.parent, **keys), "LJSpeech", 1) is None


def test_a_new_text_makes_no_recording_again(tmp_path):
    corpus = copy_corpus(tmp_path / "corpus")
    config = vocoder_config(corpus, tmp_path / "data")
    prepare_dataset(config, "LJSpeech", 1)
    write_texts(corpus, {id: texts()[id] for id in IDS} | {IDS[0]: "Something else."})
    assert prepare_dataset(config, "LJSpeech", 1).n_extracted == 0
    manifest = read_jsonl(tmp_path / "data/LJSpeech/manifest.jsonl")
    assert manifest[0]["text"] == "Something else."


UNUSED = ("parselmouth", "pyworld", "phonemizer", "pocketsphinx", "praatio", "librosa")
WITHOUT_TEXT = """
import sys
for name in {unused!r}:
    sys.modules[name] = None
sys.path.insert(0, {root!r})
from pathlib import Path
from tests.processors.small_corpus import prepare_dataset
from tests.processors.extraction.test_vocoder import vocoder_config
prepare_dataset(vocoder_config(Path({corpus!r}), Path({processed!r})), "LJSpeech", 1)
"""


def test_nothing_of_text_alignment_and_pitch_is_needed(corpus, tmp_path):
    root = str(Path(__file__).parents[3])
    script = WITHOUT_TEXT.format(
        unused=UNUSED, root=root, corpus=str(corpus), processed=str(tmp_path)
    )
    subprocess.run([sys.executable, "-c", script], cwd=root, check=True)
    assert len(MelWavStore(tmp_path / "LJSpeech")) == 9


def test_any_folder_of_audio_will_do(tmp_path):
    corpus = tmp_path / "corpus"
    (corpus / "deep").mkdir(parents=True)
    wav, rate = soundfile.read(DEMO / "wavs/LJ001-0002.flac")
    for name in ("one.wav", "deep/Take 2.flac", "three.ogg", "four.mp3"):
        soundfile.write(corpus / name, wav, rate)
    config = vocoder_config(
        corpus,
        tmp_path / "data",
        corpus={"LJSpeech": CorpusConfig(format="audio_folder")},
        split=SplitConfig(),
    )
    assert prepare_dataset(config, "LJSpeech", 1).n_usable == 4
    store = MelWavStore(tmp_path / "data/LJSpeech")
    assert [id[:8] for id in store.ids] == ["deep_Tak", "four", "one", "three"]
    assert store.frames[2] == len(wav) // 256
    with pytest.raises(InputError, match=r"recordings have no text.*LJSpeech\.format"):
        prepare_dataset(replace(config, task="tts"), "LJSpeech", 1)
