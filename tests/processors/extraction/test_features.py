"""Features of one utterance: cutting rules by hand, and a real recording as a whole."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch

from config.preprocess import CorpusConfig, PreprocessConfig, SplitConfig
from config.schema import Config
from modules.mel import MelConfig, MelSpectrogram
from preprocessors.manifest import Utterance, read_splits
from processors.audio.files import read_audio
from processors.audio.frames import from_pcm16
from processors.dataset.store import FeatureStore, MelWavStore
from processors.extraction.features import (
    FeatureError,
    FeatureExtractor,
    cut_aligned,
    feature_dependence,
    frame_durations,
)
from processors.extraction.shards import Trace
from processors.text.frontend import TextFrontend
from tests.processors import small_corpus
from tests.processors.small_corpus import DEMO, IDS, config_of, copy_corpus, prepare_dataset
from tests.processors.stores import damaged_ids
from utils.errors import InputError
from utils.files import read_json, read_jsonl

MEL = MelConfig()
HOP_S = 256 / 22050
CONFIG = PreprocessConfig(aligner="textgrid")
TEXT = "in being comparatively modern."  # LJ001-0002, 1.9 s
UTTERANCE = Utterance("LJ001-0002", DEMO / "wavs/LJ001-0002.flac", TEXT, "LJSpeech")


@pytest.fixture(scope="module")
def extractor() -> FeatureExtractor:
    return FeatureExtractor(CONFIG, DEMO)


def test_boundaries_are_rounded_so_that_errors_do_not_add_up():
    boundaries = 0.1 + np.array([0, 1.4, 2.8, 4.2, 5.6, 7.0]) * HOP_S  # frames
    durations = frame_durations(boundaries, MEL)
    assert durations.tolist() == [1, 2, 1, 2, 1]  # rounding durations would give 5 frames
    assert durations.dtype == np.int64
    # phones shorter than half a frame may vanish
    assert frame_durations(np.array([0, 1.0, 1.3, 3.0]) * HOP_S, MEL).tolist() == [1, 0, 2]


@pytest.mark.parametrize("boundaries", [[0.0, 0.5, 0.3], [-0.1, 0.5], [0.2]])
def test_impossible_boundaries_are_refused(boundaries):
    with pytest.raises(FeatureError, match="goes backwards"):
        frame_durations(np.array(boundaries), MEL)


def test_audio_is_cut_to_whole_frames_and_continued_by_reflection_up_to_a_frame():
    wav = np.arange(22050, dtype=np.float32)
    cut = cut_aligned(wav, 2205, 43, MEL)
    assert (cut[0], len(cut)) == (2205, 43 * 256)
    assert cut.dtype == np.float32
    cut = cut_aligned(wav[:2000], 0, 8, MEL)
    assert len(cut) == 2048
    assert cut[1998:2003].tolist() == [1998, 1999, 1998, 1997, 1996]


@pytest.mark.parametrize(
    ("start", "n_frames", "message"),
    [
        (0, 23, "lasts 23 frames, the recording 20"),
        (22050, 30, "lasts 30 frames, the recording 0"),
        (0, 3, "only 3 frames"),  # less than a window
    ],
)
def test_spans_that_the_recording_does_not_have_are_refused(start, n_frames, message):
    with pytest.raises(FeatureError, match=message):
        cut_aligned(np.zeros(256 * 20, dtype=np.float32), start, n_frames, MEL)


def test_all_parts_of_a_real_utterance_fit_together(extractor):
    features = extractor(UTTERANCE, Trace())
    T = features.mel.shape[1]
    assert 100 < T < 165  # 1.9 s with silence
    assert features.mel.shape == (80, T)
    assert features.f0.shape == features.energy.shape == (T,)
    assert features.durations.sum() == T
    assert len(features.phones) == len(features.durations)
    assert (features.phones[0], features.phones[-1]) == ("<sil>", "<.>")
    assert {features.mel.dtype, features.f0.dtype, features.energy.dtype} == {np.dtype(np.float32)}
    assert 150 < np.median(features.f0[features.f0 > 0]) < 280  # Hz: a woman's voice
    n_pause = features.durations[-1]
    assert n_pause > 3
    assert features.energy[-n_pause:].mean() < 0.02 * features.energy[:-n_pause].mean()  # quiet


def test_mel_and_energy_are_those_of_the_cut_audio(extractor):
    features = extractor(UTTERANCE, Trace())
    wav = read_audio(UTTERANCE.audio, CONFIG).wav
    spoken = TextFrontend(extractor.config.text, "en-us")(TEXT)
    start_s = extractor.align(UTTERANCE, wav, spoken).boundaries_s[0]
    start, T = round(start_s * 22050), features.mel.shape[1]
    assert features.start == start
    padded = np.pad(wav, (0, 256), mode="reflect")  # the recording ends within the last frame
    cut = torch.from_numpy(padded[start : start + T * 256])[None]
    mel, energy = MelSpectrogram(MEL).mel_and_energy(cut)
    np.testing.assert_allclose(features.mel, mel[0].numpy(), atol=1e-5)
    np.testing.assert_allclose(features.energy, energy[0].numpy(), rtol=1e-5)


@pytest.mark.parametrize(
    ("changes", "error", "part"),
    [
        ({"audio": Path("missing.wav")}, "missing.wav", "audio"),
        ({"text": "\U0001f600"}, "no word to say", "text"),
        ({"id": "LJ999-0000"}, "LJ999-0000", "alignment"),
    ],
)
def test_the_trace_says_in_which_part_an_utterance_failed(changes, error, part, extractor):
    trace = Trace()
    with pytest.raises(ValueError, match=error):
        extractor(replace(UTTERANCE, **changes), trace)
    assert trace.part == part


def test_the_trace_has_phones_length_and_a_notice_of_signs_that_are_not_spoken(extractor):
    trace = Trace()
    features = extractor(replace(UTTERANCE, text=f"{TEXT} \U0001f600"), trace)
    assert trace.phones == features.phones
    assert "M" in trace.text_phones
    assert trace.audio_seconds == pytest.approx(1.9, abs=0.05)
    assert trace.notices == ("the text holds the sign \U0001f600, which is not spoken",)


def test_phones_of_the_corpus_are_read_in_place_of_the_text(extractor):
    plain = replace(UTTERANCE, text="He read it.")
    marked = replace(plain, phones="{R IY1 D} {IH1 T}.")
    spoken = [extractor.reader.read(u, Trace())[1].phones for u in (plain, marked)]
    assert spoken[0][3:6] == ("R", "EH1", "D")
    assert spoken[1][1:] == ("R", "IY1", "D", "IH1", "T", "<.>")
    identity = feature_dependence(PreprocessConfig(), DEMO).identity
    assert identity(plain) != identity(marked)


def test_a_language_without_a_frontend_is_an_error_of_the_user(extractor):
    with pytest.raises(InputError):
        extractor.reader.prepare([replace(UTTERANCE, language="xx-none")])


def vocoder_config(root: Path, processed: Path, **keys: object) -> Config:
    return replace(config_of(root, processed, **keys), task="vocoder")


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


def test_the_dataset_folder_has_splits_and_nothing_of_text_and_a_part_is_read_alone(prepared):
    assert read_splits(prepared).test == ["LJ002-0035"]
    assert read_json(prepared / "speakers.json") == [{"name": "LJSpeech", "language": "en-us"}]
    report = read_json(prepared / "report.json")
    assert (report["utterances"], report["rejected"]) == (9, {})
    assert not {"phones.json", "oov.txt", "stats.json"} & {path.name for path in prepared.iterdir()}
    store = MelWavStore(prepared)
    whole, part = store.read("LJ001-0002"), store.read("LJ001-0002", first=7, n_frames=30)
    np.testing.assert_array_equal(part.mel, whole.mel[:, 7:37])
    np.testing.assert_array_equal(part.wav, whole.wav[7 * 256 : 37 * 256])
    assert part.start == 7 * 256
    T = whole.mel.shape[1]
    assert store.read("LJ001-0002", first=T - 3, n_frames=30).mel.shape == (80, 3)


def test_a_store_is_not_taken_for_the_other_kind_nor_overwritten(corpus, prepared, tmp_path):
    prepare_dataset(config_of(corpus, tmp_path), "LJSpeech", 1)
    with pytest.raises(InputError, match="holds features for acoustic models, and no audio"):
        MelWavStore(tmp_path / "LJSpeech")
    with pytest.raises(InputError, match="holds recordings for vocoders, and no phones"):
        FeatureStore(prepared)
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
    [{"aligner": "pocketsphinx"}, {"f0_min": 80.0}, {"edge_silence_s": 0.2},
     {"pitch_remove_outlier": False}, {"pitch_extractor": "pyworld"}],
    ids=lambda keys: next(iter(keys)),
)  # fmt: skip
def test_keys_of_text_alignment_and_pitch_change_nothing(keys, corpus, prepared):
    assert prepare_dataset(vocoder_config(corpus, prepared.parent, **keys), "LJSpeech", 1) is None


def test_a_new_text_makes_no_recording_again(tmp_path):
    corpus = copy_corpus(tmp_path / "corpus")
    config = vocoder_config(corpus, tmp_path / "data")
    prepare_dataset(config, "LJSpeech", 1)
    texts = {id: small_corpus.texts()[id] for id in IDS}
    small_corpus.write_texts(corpus, texts | {IDS[0]: "Something else."})
    assert prepare_dataset(config, "LJSpeech", 1).n_extracted == 0
    assert read_jsonl(tmp_path / "data/LJSpeech/manifest.jsonl")[0]["text"] == "Something else."


UNUSED = ("parselmouth", "pyworld", "phonemizer", "pocketsphinx", "praatio", "librosa")
WITHOUT_TEXT = """
import sys
for name in {unused!r}:
    sys.modules[name] = None
sys.path.insert(0, {root!r})
from pathlib import Path
from tests.processors.small_corpus import prepare_dataset
from tests.processors.extraction.test_features import vocoder_config
prepare_dataset(vocoder_config(Path({corpus!r}), Path({processed!r})), "LJSpeech", 1)
"""


def test_nothing_of_text_alignment_and_pitch_is_needed(corpus, tmp_path, monkeypatch):
    for name in UNUSED:
        monkeypatch.setitem(sys.modules, name, None)
    prepare_dataset(vocoder_config(corpus, tmp_path), "LJSpeech", 1)
    assert len(MelWavStore(tmp_path / "LJSpeech")) == 9


@pytest.mark.slow  # an interpreter that has imported nothing before
def test_a_fresh_interpreter_needs_nothing_of_text_alignment_and_pitch(corpus, tmp_path):
    root = str(Path(__file__).parents[3])
    names = {"unused": UNUSED, "root": root, "corpus": str(corpus), "processed": str(tmp_path)}
    subprocess.run([sys.executable, "-c", WITHOUT_TEXT.format(**names)], cwd=root, check=True)
    assert len(MelWavStore(tmp_path / "LJSpeech")) == 9


def test_any_folder_of_audio_will_do(tmp_path):
    corpus = tmp_path / "corpus"
    (corpus / "deep").mkdir(parents=True)
    wav, rate = soundfile.read(DEMO / "wavs/LJ001-0002.flac")
    for name in ("one.wav", "deep/Take 2.flac", "three.ogg", "four.mp3"):
        soundfile.write(corpus / name, wav, rate)
    options = {"LJSpeech": CorpusConfig(format="audio_folder")}
    config = vocoder_config(corpus, tmp_path / "data", corpus=options, split=SplitConfig())
    assert prepare_dataset(config, "LJSpeech", 1).n_usable == 4
    store = MelWavStore(tmp_path / "data/LJSpeech")
    assert [id[:8] for id in store.ids] == ["deep_Tak", "four", "one", "three"]
    assert store.frames[2] == len(wav) // 256
    with pytest.raises(InputError, match=r"recordings have no text.*LJSpeech\.format"):
        prepare_dataset(replace(config, task="tts"), "LJSpeech", 1)
