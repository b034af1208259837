import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
import soxr
import torch

from processors.metrics.families.speech import MODEL_RATE, _distillmos, opinions
from processors.metrics.recognition.labelled_speech import LabelledSpeech
from processors.metrics.recognition.user_models import UserModels
from processors.metrics.registry import METRICS
from tests.processors.metrics.packages import skip_without
from utils.imports import without_modules

dnsmos = pytest.importorskip("speechmos.dnsmos")
pytest.importorskip("jiwer")
DEMO = Path(__file__).parents[4] / "egs" / "_demo" / "LJSpeech-mini"
WORDS = "the cat sat on the mat"
SPEECH = LabelledSpeech(np.zeros(1600, dtype=np.float32), 16000, "The cat sat on the mat.", "en-us")


def edits(words: list[str], heard: list[str]) -> int:
    """Fewest substitutions, deletions and insertions, by trying them."""
    if not words or not heard:
        return len(words) + len(heard)
    if words[0] == heard[0]:
        return edits(words[1:], heard[1:])
    return 1 + min(edits(words[1:], heard[1:]), edits(words[1:], heard), edits(words, heard[1:]))


def hearing(speech: LabelledSpeech, heard: str) -> LabelledSpeech:
    return replace(speech, user_models=UserModels(recogniser=lambda *_: heard))


HEARD = {
    **{"the cat sat on the mat": 0, "the cat sat on mat": 1, "a cat sat on on the mat": 2},
    **{"": 6, "dogs bark and bark at cats and rats": 8},
}


@pytest.mark.parametrize(("heard", "errors"), HEARD.items())
def test_errors_are_counted_per_word(heard, errors):
    assert errors == edits(WORDS.split(), heard.split())
    assert METRICS["wer"].score(hearing(SPEECH, heard)).value == pytest.approx(100 * errors / 6)


def test_a_score_has_percent_its_words_as_weight_and_the_hypothesis():
    value, weight, note = METRICS["wer"].score(hearing(SPEECH, "A CAT sat on the... mat?"))
    assert (value, weight, note) == (pytest.approx(100 / 6), 6, "a cat sat on the mat")


def test_numbers_are_compared_in_words():
    five = replace(SPEECH, text="It is five dollars.")
    assert METRICS["wer"].score(hearing(five, "It is $5"))[:2] == (0, 4)


def test_pocketsphinx_recognises_no_word_in_silence():
    assert METRICS["wer"].score(SPEECH) == (100, 6, "")


def test_without_a_text_or_a_recogniser_there_is_no_score():
    for name, language in (("wer", "de"), ("cer", "ja")):
        assert METRICS[name].score(replace(SPEECH, text="... -")) is None
        assert METRICS[name].score(replace(SPEECH, language=language)) is None
    assert METRICS["wer"].score(replace(SPEECH, text="12")).weight == 1
    german = replace(SPEECH, language="de", text="Ja, gut")
    assert METRICS["wer"].score(hearing(german, "ja gut")).value == 0


def test_recordings_without_transcripts_have_no_score(tmp_path):
    (tmp_path / "a.txt").write_text("the cat")
    spoken = replace(SPEECH, id="a", user_models=UserModels(transcripts=tmp_path))
    assert METRICS["wer"].score(spoken).value == pytest.approx(100 * 4 / 6)
    recorded = UserModels(transcripts=tmp_path / "recorded")
    assert METRICS["wer"].score(replace(spoken, user_models=recorded)) is None


SHORT = LabelledSpeech(np.zeros(1600, dtype=np.float32), 16000, "The cat sat.", "en-us")


@pytest.mark.parametrize(
    ("heard", "errors"),
    [
        ("the cat sat", 0),
        ("the cats sat", 1),  # one letter more
        ("the cat", 4),  # three letters and the space before them
        ("th cat mat", 2),
        ("", 11),
    ],
)
def test_errors_are_counted_per_character(heard, errors):
    assert METRICS["cer"].score(hearing(SHORT, heard)).value == pytest.approx(100 * errors / 11)


def test_a_score_has_percent_its_characters_as_weight_and_the_hypothesis():
    speech = replace(SHORT, user_models=UserModels(recogniser=lambda *_: "The Cats sat"))
    assert METRICS["cer"].score(speech) == (pytest.approx(100 / 11), 11, "the cats sat")


def test_words_without_spaces_between_them_are_compared():
    speech = replace(SHORT, text="今日は晴れ。", language="ja")
    value = METRICS["cer"].score(hearing(speech, "今日は雨"))
    assert value == (pytest.approx(100 * 2 / 5), 5, "今日は雨")


@pytest.fixture(scope="module")
def clip() -> np.ndarray:
    """A recording of 9.7 s at the model's rate."""
    wav, rate = soundfile.read(DEMO / "wavs" / "LJ001-0001.flac", dtype="float32")
    return soxr.resample(wav, rate, MODEL_RATE)


def dnsmos_of(wav: np.ndarray):
    return METRICS["dnsmos"].score(LabelledSpeech(wav.astype(np.float32), MODEL_RATE, "", ""))


def test_a_clip_that_fills_a_window_scores_as_the_package_says(clip):
    expected = dnsmos.run(clip, sr=MODEL_RATE)
    value = dnsmos_of(clip)
    assert value.value == pytest.approx(expected["ovrl_mos"], abs=1e-4)
    assert value.note == (f"speech {expected['sig_mos']:.2f}, background {expected['bak_mos']:.2f}")
    assert 3 < value.value < 3.6


def test_it_is_deterministic_and_sensitive_to_noise(clip):
    noise = np.random.default_rng(0).normal(scale=0.1 * clip.std(), size=len(clip))
    clean = dnsmos_of(clip)
    assert dnsmos_of(clip) == clean
    assert dnsmos_of(clip + noise).value < clean.value - 0.5


def test_a_short_clip_is_repeated_to_fill_one_window(clip):
    part = clip[: 5 * MODEL_RATE]
    assert opinions(part, MODEL_RATE) == opinions(np.tile(part, 2)[: int(9.01 * MODEL_RATE)], 16000)


def test_samples_beyond_full_scale_are_clipped(clip):
    loud = 1.5 * clip / np.abs(clip).max()
    assert dnsmos_of(loud) == dnsmos_of(loud.clip(-1, 1))


def test_silence_and_what_is_too_short_have_no_score(clip):
    assert dnsmos_of(np.zeros(MODEL_RATE)) is None
    assert dnsmos_of(np.zeros(0)) is None
    assert dnsmos_of(clip[: MODEL_RATE // 2 - 1]) is None


def distillmos_of(wav: np.ndarray):
    skip_without("distillmos")
    return METRICS["distillmos"].score(LabelledSpeech(wav.astype(np.float32), MODEL_RATE, "", ""))


def test_distillmos_of_a_recording_of_two_windows_is_the_one_of_the_package(clip):
    skip_without("distillmos")
    with without_modules("torchaudio"):
        import distillmos
    part = clip[: int(8.4 * MODEL_RATE)]
    with torch.inference_mode():
        expected = distillmos.ConvTransformerSQAModel().eval()(torch.from_numpy(part)[None])
    value = distillmos_of(part)
    assert value == (pytest.approx(expected.item(), abs=1e-4), 1, "")
    assert 4 < value.value < 4.8


def test_distillmos_falls_with_noise_and_not_with_the_level(clip):
    part = clip[: 4 * MODEL_RATE]
    noise = np.random.default_rng(0).normal(scale=0.1 * part.std(), size=len(part))
    clean = distillmos_of(part).value
    assert distillmos_of(part + noise).value < clean - 0.8
    assert distillmos_of(0.01 * part).value == pytest.approx(clean, abs=1e-3)


def test_distillmos_of_silence_of_less_than_a_second_and_of_nan_is_none(clip):
    assert distillmos_of(np.zeros(2 * MODEL_RATE)) is None
    assert distillmos_of(clip[: MODEL_RATE - 1]) is None
    assert distillmos_of(np.full(2 * MODEL_RATE, np.nan)) is None


def test_distillmos_neither_needs_nor_leaves_torchaudio():
    skip_without("distillmos")
    _distillmos()
    assert "torchaudio" not in sys.modules
