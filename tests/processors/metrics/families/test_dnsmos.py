from pathlib import Path

import numpy as np
import pytest
import soundfile
import soxr

from processors.metrics.families.dnsmos import MODEL_RATE, opinions, score_dnsmos
from processors.metrics.recognition.labelled_speech import LabelledSpeech

dnsmos = pytest.importorskip("speechmos.dnsmos")
DEMO = Path(__file__).parents[4] / "egs" / "_demo" / "LJSpeech-mini"


@pytest.fixture(scope="module")
def clip() -> np.ndarray:
    """A recording of 9.7 s at the model's rate."""
    wav, rate = soundfile.read(DEMO / "wavs" / "LJ001-0001.flac", dtype="float32")
    return soxr.resample(wav, rate, MODEL_RATE)


def dnsmos_of(wav: np.ndarray):
    return score_dnsmos(LabelledSpeech(wav.astype(np.float32), MODEL_RATE, "", ""))


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
