"""Features of one utterance: cutting rules by hand, and a real recording as a whole."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from config.preprocess import PreprocessConfig
from modules.mel import MelConfig, MelSpectrogram
from preprocessors.manifest import Utterance
from processors.audio.files import read_audio
from processors.extraction.shards import Trace
from processors.extraction.tts import FeatureError, FeatureTools, cut_aligned, frame_durations
from processors.text.frontend import TextFrontend
from utils.errors import InputError

DEMO = Path(__file__).parents[3] / "egs/_demo/LJSpeech-mini"
MEL = MelConfig()
HOP_S = 256 / 22050
CONFIG = PreprocessConfig(aligner="textgrid")
TEXT = "in being comparatively modern."  # LJ001-0002, 1.9 s
UTTERANCE = Utterance("LJ001-0002", DEMO / "wavs/LJ001-0002.flac", TEXT, "LJSpeech")


@pytest.fixture(scope="module")
def tools() -> FeatureTools:
    return FeatureTools(CONFIG, DEMO)


def test_boundaries_are_rounded_so_that_errors_do_not_add_up():
    boundaries = 0.1 + np.array([0, 1.4, 2.8, 4.2, 5.6, 7.0]) * HOP_S  # frames
    durations = frame_durations(boundaries, MEL)
    assert durations.tolist() == [1, 2, 1, 2, 1]  # rounding durations would give 5 frames
    assert durations.dtype == np.int64


def test_phones_shorter_than_half_a_frame_may_vanish():
    assert frame_durations(np.array([0, 1.0, 1.3, 3.0]) * HOP_S, MEL).tolist() == [1, 0, 2]


@pytest.mark.parametrize("boundaries", [[0.0, 0.5, 0.3], [-0.1, 0.5], [0.2]])
def test_impossible_boundaries_are_refused(boundaries):
    with pytest.raises(FeatureError, match="goes backwards"):
        frame_durations(np.array(boundaries), MEL)


def test_audio_is_cut_to_whole_frames_from_the_first_boundary():
    wav = np.arange(22050, dtype=np.float32)
    cut = cut_aligned(wav, 2205, 43, MEL)
    assert (cut[0], len(cut)) == (2205, 43 * 256)
    assert cut.dtype == np.float32


def test_audio_up_to_a_frame_too_short_is_continued_by_its_reflection():
    wav = np.arange(2000, dtype=np.float32)
    cut = cut_aligned(wav, 0, 8, MEL)
    assert len(cut) == 2048
    assert cut[1998:2003].tolist() == [1998, 1999, 1998, 1997, 1996]


def test_an_alignment_longer_than_its_recording_is_refused_with_both_lengths():
    wav = np.zeros(256 * 20, dtype=np.float32)
    with pytest.raises(FeatureError, match="lasts 23 frames, the recording 20"):
        cut_aligned(wav, 0, 23, MEL)
    with pytest.raises(FeatureError, match="lasts 30 frames, the recording 0"):
        cut_aligned(wav, 22050, 30, MEL)


def test_a_span_shorter_than_a_window_is_refused():
    with pytest.raises(FeatureError, match="only 3 frames"):
        cut_aligned(np.zeros(9000, dtype=np.float32), 0, 3, MEL)


def test_all_parts_of_a_real_utterance_fit_together(tools):
    features = tools.extract(UTTERANCE, Trace())
    T = features.mel.shape[1]
    assert 100 < T < 165  # 1.9 s with silence
    assert features.mel.shape == (80, T)
    assert features.f0.shape == features.energy.shape == (T,)
    assert features.durations.sum() == T
    assert len(features.phones) == len(features.durations)
    assert (features.phones[0], features.phones[-1]) == ("<sil>", "<.>")
    assert {features.mel.dtype, features.f0.dtype, features.energy.dtype} == {np.dtype(np.float32)}
    assert 150 < np.median(features.f0[features.f0 > 0]) < 280  # Hz: a woman's voice


def test_mel_and_energy_are_those_of_the_cut_audio(tools):
    features = tools.extract(UTTERANCE, Trace())
    wav = read_audio(UTTERANCE.audio, CONFIG).wav
    spoken = TextFrontend(tools.config.text, "en-us")(TEXT)
    start_s = tools.align(UTTERANCE, wav, 22050, spoken).boundaries_s[0]
    start, T = round(start_s * 22050), features.mel.shape[1]
    assert features.start == start
    padded = np.pad(wav, (0, 256), mode="reflect")  # the recording ends within the last frame
    cut = torch.from_numpy(padded[start : start + T * 256])[None]
    mel, energy = MelSpectrogram(MEL).mel_and_energy(cut)
    np.testing.assert_allclose(features.mel, mel[0].numpy(), atol=1e-5)
    np.testing.assert_allclose(features.energy, energy[0].numpy(), rtol=1e-5)


def test_frames_of_a_pause_are_those_that_are_quiet(tools):
    features = tools.extract(UTTERANCE, Trace())
    n_pause = features.durations[-1]
    assert n_pause > 3
    assert features.energy[-n_pause:].mean() < 0.02 * features.energy[:-n_pause].mean()


@pytest.mark.parametrize(
    ("changes", "error", "part"),
    [
        ({"audio": Path("missing.wav")}, "missing.wav", "audio"),
        ({"text": "\U0001f600"}, "no word to say", "text"),
        ({"id": "LJ999-0000"}, "LJ999-0000", "alignment"),
    ],
)
def test_the_trace_says_in_which_part_an_utterance_failed(changes, error, part, tools):
    trace = Trace()
    utterance = Utterance(**{**vars(UTTERANCE), **changes})
    with pytest.raises(ValueError, match=error):
        tools.extract(utterance, trace)
    assert trace.part == part


def test_the_trace_measures_every_part(tools):
    trace = Trace()
    features = tools.extract(UTTERANCE, trace)
    assert trace.phones == features.phones
    assert "M" in trace.text_phones
    assert set(trace.cpu_seconds) == {"audio", "text", "alignment", "mel", "f0"}
    assert trace.audio_seconds == pytest.approx(1.9, abs=0.05)


def test_signs_that_are_not_spoken_are_a_notice(tools):
    trace = Trace()
    tools.extract(Utterance(**{**vars(UTTERANCE), "text": f"{TEXT} \U0001f600"}), trace)
    assert trace.notices == ("the text holds the sign \U0001f600, which is not spoken",)


def test_a_language_without_a_frontend_is_an_error_of_the_user(tools):
    with pytest.raises(InputError):
        tools.prepare([replace(UTTERANCE, language="xx-none")])
